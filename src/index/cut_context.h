/* Context of a cut: the times outside the window that answers about the window depend on. For each node of the tree (a
 * CPU, a thread):
 *
 * - the time just before the window;
 * - the end of a sleep or wait for a CPU that continues after the window, and the waker;
 * - for a vCPU outside guest mode at the end of the window: the time until its next VM entry;
 * - the last sleeps of vCPUs before the window, from which query/irq_source.c infers the thread that emulates a device.
 *
 * Cost: a few look-ups per thread. Memory: 16 bytes per time. */
#ifndef STEALSCOPE_INDEX_CUT_CONTEXT_H
#define STEALSCOPE_INDEX_CUT_CONTEXT_H

#include "history/history.h"

struct context_time {
	uint32_t node;
	int64_t t;  /* time outside the window, ns */
};

struct cut_context {
	struct context_time *at;  /* sorted by node, then t; without duplicates */
	size_t len, cap;
};

/* Collects the times of all nodes for the window [from, to]. The caller releases *m, also on failure. Returns 0 or -1. */
int cut_context_find(struct cut_context *m, const struct history *h, int64_t from, int64_t to, struct error *err);
void cut_context_release(struct cut_context *m);

/* Returns the index of the node's first time, and the number of its times in *n. */
size_t cut_context_find_node(const struct cut_context *m, uint32_t node, size_t *n);

#endif
