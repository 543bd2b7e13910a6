#!/bin/sh
# The pinned seeds of test_truth with clock steps, part 1 of 2.
exec "${builddir:-.}/tests/test_truth" steps 1
