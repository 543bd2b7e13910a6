/* A chunk: up to 256 consecutive intervals of one attribute, in columns.
 *
 *   u8  intervals - 1                 u8  width of a value code (or of a dictionary index)
 *   u8  width of a duration           u8  exceptions among value codes (the dictionary's size, at most 32)
 *   u8  exceptions among durations    u8  CHUNK_DICT | _NULLS | _ALL_DURATIONS | _LINKED | size of the base << 4
 *   base (little-endian, signed, 0..8 bytes); dictionary: u8 bytes per code, the codes;
 *   durations - 1 ns, of all intervals but the last (which ends where the chunk ends); value codes
 *
 * CHUNK_ALL_DURATIONS: the last interval has a duration too, so that readers can sum from either end of the chunk.
 * CHUNK_LINKED: each interval but the first starts together with an interval of another attribute, the leader, which has
 * states. Instead of a duration the chunk stores the number of leader intervals between two starts.
 *
 * A value is base + code. With CHUNK_NULLS code 0 is null and a value is base + code - 1. In chunks of state attributes
 * null is the value -1 (no CHUNK_NULLS), and value codes have no exceptions and are below 32. */
#pragma once

#include "history/column.h"
#include "history/history.h"
#include "history/interval_pool.h"

enum { CHUNK_DICT = 1, CHUNK_NULLS = 2, CHUNK_ALL_DURATIONS = 4, CHUNK_LINKED = 8 };
enum { CHUNK_HEADER = 6, CHUNK_DICT_MAX = 32, CHUNK_ALL_DURATIONS_MIN = 16, CHUNK_SKIP_MAX = 4096 };
#define CHUNK_BYTES_MAX (CHUNK_HEADER + 8 + 2 * COLUMN_BYTES_MAX)  /* followed by 8 bytes of slack */

struct chunk {
	struct packed_column duration, code;  /* duration: of n - 1 intervals, or of n (CHUNK_ALL_DURATIONS) */
	const uint8_t *dict;
	unsigned n;              /* interval count */
	unsigned dict_len, dict_entry_bytes;
	bool nulls, state;
	bool linked;             /* `duration` still holds the leader interval counts of a CHUNK_LINKED */
	uint64_t base;
	int64_t start, end;       /* ns, both included */
	uint8_t computed[8 * CHUNK_MAX];  /* durations - 1 computed from the leader, 64 bits each */
};

/* Writes n intervals of a row as a chunk at dst (capacity CHUNK_BYTES_MAX + 8 bytes); the last interval ends before
 * row[n].start. skipped: numbers of leader intervals for a CHUNK_LINKED; NULL: an ordinary chunk. Returns its size. */
size_t chunk_put(uint8_t *dst, const struct change *row, size_t n, const uint64_t *skipped);
/* The same for an attribute with `states` states. sums: ns in each state, null in sums[NULL_STATE]; *used_states: states
 * that occur, one bit each. */
size_t chunk_put_states(uint8_t *dst, const struct change *row, size_t n, unsigned states, int64_t *sums,
                        uint32_t *used_states);

/* Parses the chunk [p, p + size), which covers [start, end]. Returns NULL, or a description of the damage. 8 bytes after
 * the chunk must be readable. */
const char *chunk_parse(struct chunk *c, const uint8_t *p, size_t size, bool state, int64_t start, int64_t end);

static inline uint64_t get_low(const uint8_t *p, unsigned bytes)
{
	return bytes ? get64(p) & (~UINT64_C(0) >> (64 - 8 * bytes)) : 0;
}

/* Decodes the value of a code (or dictionary index). Returns false if the code is damaged. Inline for loops over all
 * values. */
static inline bool chunk_decode(const struct chunk *c, uint64_t number, int64_t *value)
{
	if (c->dict) {
		if (number >= c->dict_len)
			return false;
		number = get_low(c->dict + number * c->dict_entry_bytes, c->dict_entry_bytes);
	}
	if (c->nulls && !number) {
		*value = HISTORY_NULL;
		return true;
	}
	int64_t v = (int64_t)(c->base + number - c->nulls);
	if (c->state && v == -1)
		v = HISTORY_NULL;
	else if (c->state && (v < 0 || v >= (int64_t)NULL_STATE))
		return false;
	*value = v;
	return true;
}

bool chunk_value(const struct chunk *c, unsigned i, int64_t *value);

/* Computes the start times of the intervals 0 .. count - 1. Returns NULL, or a description of the damage. */
const char *chunk_starts(const struct chunk *c, int64_t *start, unsigned count);
