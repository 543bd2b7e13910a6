/* What a cut keeps of the time around its window, so that answers about the window stay what they are: of a node of the
 * tree (a CPU, a thread) the moments outside at which its attributes are looked at.
 *
 *   - the moment before the window;
 *   - where a sleep, or a wait for a CPU, ends that goes on beyond the window, and who ended it;
 *   - until when a vCPU is entered again that is out of guest mode at the window's end;
 *   - the latest sleeps of vCPUs before the window, by which it is learnt who serves a device (query/irq_source.c).
 *
 * Cost: a few look-ups per thread.  Memory: 16 bytes per moment. */
#ifndef STEALSCOPE_INDEX_CUT_CONTEXT_H
#define STEALSCOPE_INDEX_CUT_CONTEXT_H

#include "history/history.h"

struct kept_moment {
	uint32_t node;
	int64_t t;  /* ns, outside of the window */
};

struct moments {
	struct kept_moment *at;  /* in order of node, then t; without twins */
	size_t len, cap;
};

/* Those of the whole tree for the window [from, to].  The caller releases them, also on failure. */
int moments_find(struct moments *m, const struct history *h, int64_t from, int64_t to, struct error *err);
void moments_release(struct moments *m);

/* The moments of one node: the index of the first, and *n of them. */
size_t moments_of(const struct moments *m, uint32_t node, size_t *n);

#endif
