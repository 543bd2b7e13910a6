/* A sample's culprits: from the keys of the BPF program to names (private to live/). */
#pragma once

#include "base/map.h"
#include "live/victims.h"

#define CULPRIT_OWN 0x7ffffffcu  /* threads of the victim itself; only in samples by process */

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
/* Fills a culprit that is no task: its kind and name. Returns false, with an empty culprit, for all other keys. */
bool culprit_fill_fixed(struct live_culprit *c, u32 key);
/* Returns the index of a culprit in the sample. */
int32_t culprit_index_put(struct culprit_index *x, u32 key, const char *comm);
