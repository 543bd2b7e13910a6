#!/bin/sh
# Prints a file as a C array of this name.
set -eu
echo "static const unsigned char $2[] __attribute__((aligned(8))) = {"
od -An -v -tx1 "$1" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g' | tr -d '\n'
echo '};'
