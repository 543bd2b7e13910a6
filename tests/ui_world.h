/* An artificial recording for the tests of the viewer: a host with four CPUs and two VMs; burnP6 on the host competes
 * with one of them. */
#pragma once

#include <stdint.h>

#define UI_WORLD_BEGIN INT64_C(1795176184100000000)  /* 2026-11-20 12:03:04.1 UTC */
#define UI_WORLD_SPAN INT64_C(80000000)              /* ns */

/* Writes the history to path. threads: number of additional threads of Ubuntu that compete for its CPU. */
void ui_world_write(const char *path, unsigned threads);
