/* A chunk: up to 256 consecutive intervals of one attribute, in columns.
 *
 *   u8  intervals - 1                 u8  width of a value code (of a place in the dictionary)
 *   u8  width of a duration           u8  exceptions among value codes (size of the dictionary, at most 32)
 *   u8  exceptions among durations    u8  CHUNK_DICT | _NULLS | _WHOLE | _ECHO | size of the base << 4
 *   base (little-endian, signed, 0..8 bytes); dictionary: u8 bytes per code, the codes;
 *   durations - 1 ns, of all intervals but the last (which ends where the chunk ends); value codes
 *
 * CHUNK_WHOLE: the last interval has its duration too, so that sums can be taken from either end of the chunk.
 * CHUNK_ECHO: each interval but the first starts with one of another attribute, the leader, which is one of states.  In
 * place of a duration stands how many intervals of the leader start between an interval and the next one.
 *
 * A value is base + code.  With CHUNK_NULLS code 0 is null and a value is base + code - 1.  In chunks of state
 * attributes null is the value -1 (no CHUNK_NULLS), and value codes have no exceptions and are below 32. */
#ifndef STEALSCOPE_HISTORY_CHUNK_H
#define STEALSCOPE_HISTORY_CHUNK_H

#include "history/column.h"
#include "history/history.h"
#include "history/interval_pool.h"

enum { CHUNK_DICT = 1, CHUNK_NULLS = 2, CHUNK_WHOLE = 4, CHUNK_ECHO = 8 };
enum { CHUNK_HEADER = 6, CHUNK_DICT_MAX = 32, CHUNK_WHOLE_MIN = 16, CHUNK_SKIP_MAX = 4096 };
#define CHUNK_BYTES_MAX (CHUNK_HEADER + 8 + 2 * COLUMN_BYTES_MAX)  /* and 8 bytes of slack behind it */

struct chunk {
	struct packed_column duration, code;  /* duration: of n - 1 intervals, or of n */
	const uint8_t *dict;
	unsigned n;               /* intervals */
	unsigned dict_size, dict_bytes;
	bool nulls, state;
	bool echo;                /* `duration` is still that of a CHUNK_ECHO */
	uint64_t base;
	int64_t start, end;       /* ns, both included */
	uint8_t told[8 * CHUNK_MAX];  /* durations that the leader told, 64 bits each */
};

/* Writes n intervals of a row, the last of which ends before row[n].start, as a chunk at dst (CHUNK_BYTES_MAX + 8 bytes of
 * room); returns its size.  skipped: of an echo, what stands in the place of durations; or NULL. */
size_t chunk_put(uint8_t *dst, const struct kept *row, size_t n, const uint64_t *skipped);
/* The same of an attribute with so many states.  sums: ns in each of them, and of null in sums[NULL_STATE]; *told: a bit
 * for each that is there. */
size_t chunk_put_states(uint8_t *dst, const struct kept *row, size_t n, unsigned states, int64_t *sums, uint32_t *told);

/* Finds the parts of the chunk [p, p + size) that covers [start, end].  NULL or what is wrong with it.
 * 8 bytes behind the chunk must be readable. */
const char *chunk_parse(struct chunk *c, const uint8_t *p, size_t size, bool state, int64_t start, int64_t end);

static inline uint64_t get_low(const uint8_t *p, unsigned bytes)
{
	return bytes ? get64(p) & (~UINT64_C(0) >> (64 - 8 * bytes)) : 0;
}

/* Value of the interval with that code number (place in the column); false: damaged.  Inline for who reads them all. */
static inline bool chunk_decode(const struct chunk *c, uint64_t number, int64_t *value)
{
	if (c->dict) {
		if (number >= c->dict_size)
			return false;
		number = get_low(c->dict + number * c->dict_bytes, c->dict_bytes);
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

/* Start times of the intervals 0 .. count - 1 into start[]; NULL or what is wrong. */
const char *chunk_starts(const struct chunk *c, int64_t *start, unsigned count);

#endif
