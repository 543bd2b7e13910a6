/* Time that victims ran while the other CPU of their core was busy (private to live/). */
#pragma once

#include "live/culprits.h"
#include "live/source.h"

/* Returns by CPU, below root: 1 + the other CPU of its core, 0: the core has one CPU, or more than two. The caller frees
 * it. NULL: all are 0. */
u32 *shared_cores_siblings(const char *root, unsigned cpus);
/* Finds the main sharer of each victim among the pairs of a period. */
void shared_cores_add(struct culprit_index *x, const struct bpf_pair *pair, size_t n);
/* Fills the shared time of a victim in a period; v: its record at the period's end. */
void shared_cores_take(struct live_vcpu *u, struct live_thread *t, const struct live_victim *v, bool has_siblings);
