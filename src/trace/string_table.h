/* The strings of one trace, shared by the threads that decode it.
 *
 * Each thread keeps a cache, so that the shared table is locked once per thread and different string, not per event.
 * Bounded: past NAMES_LARGEST bytes of different strings, further ones become the empty string.  Which these are depends on
 * who comes first: then one thread alone decodes it all (load.c). */
#ifndef STEALSCOPE_TRACE_STRING_TABLE_H
#define STEALSCOPE_TRACE_STRING_TABLE_H

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#define NAMES_NEAR_BITS 7

/* A text of 16 bytes at most, as names of threads are; what is behind it is zero. */
struct short_text { uint64_t first, last; };

struct name_cache {
	struct names *shared;
	struct strtab local;
	uint32_t *global;  /* of each local id */
	size_t cap;
	struct near_name { struct short_text text; uint32_t id; } near[1 << NAMES_NEAR_BITS];  /* of late */
	size_t bytes;
};

void names_init(struct names *n);
void names_init_child(struct names *n);  /* of which all are told to a parent: its own is full first, and says so */
void names_release(struct names *n);

void name_cache_init(struct name_cache *c, struct names *shared);
void name_cache_release(struct name_cache *c);
/* The id of the text that begins at s and ends with a zero, or after `most` bytes. */
static inline uint32_t name_cache_put(struct name_cache *c, const char *s, size_t most);

/* ---- inside */

uint32_t name_cache_look(struct name_cache *c, const char *s, size_t most);

/* Clears what stands behind the first zero of eight bytes; false: there is none. */
static inline bool end_with_zero(uint64_t *bytes)
{
	const uint64_t zeros = (*bytes - 0x0101010101010101U) & ~*bytes & 0x8080808080808080U;  /* the lowest bit is true */
	if (zeros)
		*bytes &= ((zeros & -zeros) >> 7) - 1;
	return zeros != 0;
}

/* False: it is longer. */
static inline bool take_short(struct short_text *t, const char *s, size_t most)
{
	uint64_t bytes[2] = { 0, 0 };
	memcpy(bytes, s, most < sizeof bytes ? most : sizeof bytes);
	*t = (struct short_text){ le64toh(bytes[0]), le64toh(bytes[1]) };
	if (!end_with_zero(&t->first))
		return end_with_zero(&t->last) || most <= sizeof bytes;
	t->last = 0;
	return true;
}

static inline uint32_t name_cache_put(struct name_cache *c, const char *s, size_t most)
{
	struct short_text t;
	if (!take_short(&t, s, most))
		return name_cache_look(c, s, most);
	const uint64_t hash = (t.first ^ (t.last << 32 | t.last >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
	struct near_name *near = &c->near[hash >> (64 - NAMES_NEAR_BITS)];
	if (near->text.first != t.first || near->text.last != t.last)
		*near = (struct near_name){ t, name_cache_look(c, s, most) };
	return near->id;
}

#endif
