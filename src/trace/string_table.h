/* String table of one trace, shared by the threads that decode it.
 *
 * Each thread has a cache, so that it locks the table once per different string, not once per event. The size is
 * limited: after STRING_TABLE_MAX bytes of different strings, new strings are replaced by the empty string. The order of
 * the threads would determine which ones; so load.c restarts with a single thread when the table is full. */
#pragma once

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/strtab.h"

#ifndef STRING_TABLE_MAX
#define STRING_TABLE_MAX ((size_t)24 << 20)
#endif

struct string_table {
	pthread_mutex_t lock;
	struct strtab tab;
	size_t bytes, max_bytes;
	atomic_bool full;
	bool store_event_names;  /* also stores the names of events without a rule, for EV_NAMED */
};

#define RECENT_BITS 7

/* A text of at most 16 bytes, such as a thread name, padded with zeros. */
struct short_text { uint64_t first, last; };

struct string_cache {
	struct string_table *shared;
	struct strtab local;
	uint32_t *global;  /* id in the shared table, by id in the cache */
	size_t cap;
	/* recently used short texts, indexed by hash */
	struct recent_text { struct short_text text; uint32_t id; } recent[1 << RECENT_BITS];
	size_t bytes;
};

void string_table_init(struct string_table *n);
/* Initializes the table of a child process that sends all its strings to its parent: a little larger, so that the parent's
 * table becomes full first. */
void string_table_init_child(struct string_table *n);
void string_table_release(struct string_table *n);

void string_cache_init(struct string_cache *c, struct string_table *shared);
void string_cache_release(struct string_cache *c);
/* Returns the id of the text at s, which ends with a zero or after max_len bytes. */
static inline uint32_t string_cache_put(struct string_cache *c, const char *s, size_t max_len);

/* ---- private */

uint32_t string_cache_lookup(struct string_cache *c, const char *s, size_t max_len);

/* Clears all bytes after the first zero byte of the eight. Returns false if there is no zero byte. */
static inline bool clear_after_zero(uint64_t *bytes)
{
	/* Of the bits in `zeros`, only the lowest one is reliable. */
	const uint64_t zeros = (*bytes - 0x0101010101010101U) & ~*bytes & 0x8080808080808080U;
	if (zeros)
		*bytes &= ((zeros & -zeros) >> 7) - 1;
	return zeros != 0;
}

/* Stores the text at s in *t. Returns false if it is longer than 16 bytes. */
static inline bool short_text_load(struct short_text *t, const char *s, size_t max_len)
{
	uint64_t bytes[2] = { 0, 0 };
	memcpy(bytes, s, max_len < sizeof bytes ? max_len : sizeof bytes);
	*t = (struct short_text){ le64toh(bytes[0]), le64toh(bytes[1]) };
	if (!clear_after_zero(&t->first))
		return clear_after_zero(&t->last) || max_len <= sizeof bytes;
	t->last = 0;
	return true;
}

static inline uint32_t string_cache_put(struct string_cache *c, const char *s, size_t max_len)
{
	struct short_text t;
	if (!short_text_load(&t, s, max_len))
		return string_cache_lookup(c, s, max_len);
	const uint64_t hash = (t.first ^ (t.last << 32 | t.last >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
	struct recent_text *recent = &c->recent[hash >> (64 - RECENT_BITS)];
	if (recent->text.first != t.first || recent->text.last != t.last)
		*recent = (struct recent_text){ t, string_cache_lookup(c, s, max_len) };
	return recent->id;
}
