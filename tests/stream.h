/* Synthetic stream of state changes with known digests, for tests and benchmarks of history/.
 *
 * Integer arithmetic only. 64 hot attributes ("cpu<i>": a status of 0..5 if i is even, a TID if odd) get four fifths of
 * the changes; the others ("thr<i>": a status) get the rest, lower numbers more often. The gaps between changes are
 * about exponential with a mean of 6004 ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define STREAM_START INT64_C(1700000000000000000)
#define STREAM_HASH UINT64_C(0xCBF29CE484222325)
#define STREAM_STATES 6

struct change_stream {
	uint64_t s, threads;
	int64_t t;
	int32_t *cur;     /* value per attribute, -1: none yet */
	uint32_t attr;    /* attribute of the last change */
	int32_t value;
};

static inline uint64_t stream_random(uint64_t *s)
{
	uint64_t z = *s += 0x9E3779B97F4A7C15ULL;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static inline uint64_t stream_hash(uint64_t h, uint64_t x)
{
	return (h ^ x) * 0x100000001B3ULL;
}

static inline bool stream_init(struct change_stream *g, uint32_t attributes)
{
	*g = (struct change_stream){ .s = 42, .threads = attributes - 64, .t = STREAM_START };
	g->cur = malloc(attributes * sizeof *g->cur);
	for (uint32_t i = 0; g->cur && i < attributes; i++)
		g->cur[i] = -1;
	return g->cur != NULL;
}

static inline void stream_next(struct change_stream *g)
{
	uint64_t r = stream_random(&g->s) | UINT64_C(1) << 20;
	unsigned lz = (unsigned)__builtin_clzll(r);
	uint64_t frac = r << (lz + 1) >> 48;
	uint64_t e16 = ((uint64_t)(lz + 1) << 16) - frac;
	g->t += (int64_t)(1 + (e16 * 4000 >> 16));
	uint64_t q = stream_random(&g->s), x = q >> 32, v = q >> 16 & 0xffff;
	uint64_t idx = (x * x >> 32) * g->threads >> 32;
	bool tid = false;
	if ((q & 1023) < 819) {
		g->attr = (uint32_t)(q >> 10 & 63);
		tid = g->attr & 1;
	} else {
		g->attr = (uint32_t)(64 + idx);
	}
	int64_t c = g->cur[g->attr];
	if (tid) {
		g->value = (int32_t)(1000 + idx);
		if (g->value == c)
			g->value = (int32_t)(1000 + (idx + 1) % g->threads);
	} else if (c < 0) {
		g->value = (int32_t)(v % STREAM_STATES);
	} else {
		g->value = (int32_t)(((uint64_t)c + 1 + v % 5) % STREAM_STATES);
	}
	g->cur[g->attr] = g->value;
}
