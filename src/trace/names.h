/* The strings of one trace, shared by the threads that decode it.
 *
 * Each thread keeps a cache, so that the shared table is locked once per thread and different string, not per event.
 * Bounded: past NAMES_LARGEST bytes of different strings, further ones become the empty string.  Which these are depends on
 * who comes first: then one thread alone decodes it all (load.c). */
#ifndef STEALSCOPE_TRACE_NAMES_H
#define STEALSCOPE_TRACE_NAMES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strtab.h"

#ifndef NAMES_LARGEST
#define NAMES_LARGEST ((size_t)24 << 20)
#endif

struct names {
	pthread_mutex_t lock;
	struct strtab tab;
	size_t bytes, most;
	atomic_bool full;
	bool of_events;  /* also of those that a layout does not name: EV_NAMED */
};

#define NAMES_NEAR 128

struct name_cache {
	struct names *shared;
	struct strtab local;
	uint32_t *global;  /* of each local id */
	size_t cap;
	struct near_name { const char *text; uint32_t id; } near[NAMES_NEAR];  /* of late, by a few of their characters */
	size_t bytes;
};

void names_init(struct names *n);
void names_init_child(struct names *n);  /* of which all are told to a parent: its own is full first, and says so */
void names_release(struct names *n);

void name_cache_init(struct name_cache *c, struct names *shared);
void name_cache_release(struct name_cache *c);
uint32_t name_cache_put(struct name_cache *c, const char *s);

#endif
