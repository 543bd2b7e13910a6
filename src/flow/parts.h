/* Long walks shared out among the processors (base/parallel.h): the window is cut into parts, each walked with cursors
 * of its own (a history may be read by several threads).  Private to flow/. */
#ifndef STEALSCOPE_FLOW_PARTS_H
#define STEALSCOPE_FLOW_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

#define PARTS_MAX 8

/* How many parts are worth it: 1 for what takes a few ms anyway. */
size_t parts_of(const struct history *h, int64_t from, int64_t to);

/* Part i of n of [from, to]. */
void parts_cut(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end);

/* Calls fn(arg, i) for i = 0 .. n - 1, side by side; the first result other than 0. */
int parts_walk(size_t n, int (*fn)(void *arg, size_t i), void *arg);

#endif
