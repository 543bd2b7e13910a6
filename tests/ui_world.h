/* A made-up recording for the tests of the viewer: a host with four CPUs, two VMs, burnP6 in the way of one. */
#ifndef STEALSCOPE_TESTS_UI_WORLD_H
#define STEALSCOPE_TESTS_UI_WORLD_H

#include <stdint.h>

#define UI_WORLD_BEGIN INT64_C(1795176184100000000)  /* 2026-11-20 12:03:04.1 UTC */
#define UI_WORLD_SPAN INT64_C(80000000)              /* ns */

/* Writes the history.  `threads` more threads live in Ubuntu and want its CPU now and then. */
void ui_world_write(const char *path, unsigned threads);

#endif
