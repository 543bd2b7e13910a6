/* A sample's culprits: from the keys of the BPF program to names (private to live/). */
#ifndef STEALSCOPE_LIVE_CULPRITS_H
#define STEALSCOPE_LIVE_CULPRITS_H

#include "base/map.h"
#include "live/victims.h"

/* Borrows all but by_key. */
struct culprit_index {
	const struct live_threads *threads;
	const int32_t *slot_thread;  /* by slot: index into threads; -1: none */
	const char *root;
	struct live_sample *s;
	struct map by_key;           /* key -> index in s->culprit */
	size_t cap;
};

void culprit_name_thread(char name[LIVE_NAME], const struct live_thread *v);
/* Returns the index of a culprit in the sample. */
int32_t culprit_index_put(struct culprit_index *x, u32 key, const char *comm);

#endif
