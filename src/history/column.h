/* A column: up to 256 unsigned numbers, bit-packed with a few exceptions.
 *
 * Number i has `width` bits (0 .. 57, or 64), from bit i * width, least significant bit first. Longer numbers are
 * exceptions: after the packed numbers follow the indices of the exceptions (one byte each, ascending), the width of
 * their high parts (one byte), and the packed high parts. Reading any number is O(1) plus its exceptions, and reading a
 * column needs no branch per number. Durations suit this well: most are similar and a few are very long. */
#pragma once

#include "base/base.h"
#include "history/format.h"

struct packed_column {
	const uint8_t *packed;
	const uint8_t *exception;  /* the exceptions' indices */
	const uint8_t *high;   /* packed high parts */
	unsigned n, width, exceptions, high_width;
};

#define COLUMN_BYTES_MAX (8 * CHUNK_MAX + CHUNK_MAX + 1 + 8 * CHUNK_MAX)  /* followed by 8 bytes of slack */

static inline unsigned bits_for(uint64_t x)
{
	return (63U ^ (unsigned)__builtin_clzll(x | 1)) + (x != 0);  /* without a branch */
}

static inline bool width_ok(unsigned width)
{
	return width <= 57 || width == 64;
}

static inline size_t packed_bytes(size_t n, unsigned width)
{
	return (n * width + 7) / 8;
}

/* Returns number i of a packed array. Reads 8 bytes, starting at the byte with the first bit of the number. */
static inline uint64_t packed_get(const uint8_t *packed, unsigned width, unsigned i)
{
	size_t bit = (size_t)i * width;
	uint64_t x = get64(packed + bit / 8);
	return width == 64 ? x : x >> bit % 8 & ((UINT64_C(1) << width) - 1);
}

/* Writes the n numbers of x at dst (capacity COLUMN_BYTES_MAX + 8 bytes). Returns the column's end. */
uint8_t *column_put(uint8_t *dst, const uint64_t *x, size_t n, unsigned *width, unsigned *exceptions);
/* The same without exceptions. max: the largest number. */
uint8_t *column_put_plain(uint8_t *dst, const uint64_t *x, size_t n, uint64_t max, unsigned *width);
/* The same for numbers of one byte, with 8 readable bytes after the last one. width: at most 7, enough for all numbers. */
uint8_t *column_put_bytes(uint8_t *dst, const uint8_t *x, size_t n, unsigned width);

/* Parses a column that begins at p; *end: its end. Returns -1 if it does not fit before `limit`. */
int column_parse(struct packed_column *c, const uint8_t *p, const uint8_t *limit, unsigned n, unsigned width,
                 unsigned exceptions, const uint8_t **end);

/* Reads eight numbers, starting at index `from`, into x[0 .. 7] and returns their sum (below 2^60 without exceptions;
 * the width is at most 57). *exception: as for column_part(). Unrolled: reading columns takes most of its time here. */
static inline __attribute__((always_inline)) uint64_t column_eight(const struct packed_column *c, uint64_t x[8],
                                                                   unsigned from, unsigned *exception)
{
	unsigned w = c->width;
	const uint8_t *p = c->packed;
	size_t bit = (size_t)from * w;
	uint64_t mask = (UINT64_C(1) << w) - 1, sum = 0;
#define COLUMN_STEP(j) \
	x[j] = get64(p + (bit + (j) * w) / 8) >> (bit + (j) * w) % 8 & mask, sum += x[j]
	COLUMN_STEP(0);
	COLUMN_STEP(1);
	COLUMN_STEP(2);
	COLUMN_STEP(3);
	COLUMN_STEP(4);
	COLUMN_STEP(5);
	COLUMN_STEP(6);
	COLUMN_STEP(7);
#undef COLUMN_STEP
	for (; *exception < c->exceptions && c->exception[*exception] < from + 8; ++*exception) {
		uint64_t high = packed_get(c->high, c->high_width, *exception) << w;
		x[c->exception[*exception] - from] |= high;
		/* Saturates on overflow: such durations exceed every window. */
		sum = sum + high < sum ? UINT64_MAX >> 1 : sum + high;
	}
	return sum;
}

/* Reads the numbers [from, to) into x[0 ..]. *exception: index of the first exception at or after `from`; advanced to
 * the first one at or after `to`. */
static inline void column_part(const struct packed_column *c, uint64_t *x, unsigned from, unsigned to,
                               unsigned *exception)
{
	if (c->width == 64) {
		for (unsigned i = from; i < to; i++)
			x[i - from] = get64(c->packed + 8 * (size_t)i);
		return;
	}
	const unsigned w = c->width, n = to - from;
	const uint64_t mask = (UINT64_C(1) << w) - 1;
	const uint8_t *p = c->packed;
	size_t bit = (size_t)from * w;
	unsigned i = 0;
	/* With these widths, 8 bytes contain several numbers. */
	if (w <= 7)
		for (; i + 8 <= n; i += 8, bit += 8 * w) {
			const uint64_t one = get64(p + bit / 8) >> bit % 8, two = one >> w, three = two >> w, four = three >> w,
				five = four >> w, six = five >> w, seven = six >> w;
			x[i] = one & mask;
			x[i + 1] = two & mask;
			x[i + 2] = three & mask;
			x[i + 3] = four & mask;
			x[i + 4] = five & mask;
			x[i + 5] = six & mask;
			x[i + 6] = seven & mask;
			x[i + 7] = seven >> w & mask;
		}
	else if (w <= 19)
		for (; i + 3 <= n; i += 3, bit += 3 * w) {
			const uint64_t three = get64(p + bit / 8) >> bit % 8, two = three >> w;
			x[i] = three & mask;
			x[i + 1] = two & mask;
			x[i + 2] = two >> w & mask;
		}
	else if (w <= 28)
		for (; i + 2 <= n; i += 2, bit += 2 * w) {
			const uint64_t two = get64(p + bit / 8) >> bit % 8;
			x[i] = two & mask;
			x[i + 1] = two >> w & mask;
		}
	for (; i < n; i++, bit += w)
		x[i] = get64(p + bit / 8) >> bit % 8 & mask;
	const uint64_t high_mask = c->high_width < 64 ? (UINT64_C(1) << c->high_width) - 1 : UINT64_MAX;
	unsigned e = *exception;
	bit = (size_t)e * c->high_width;
	for (; e < c->exceptions && c->exception[e] < to; e++, bit += c->high_width)
		x[c->exception[e] - from] |= (get64(c->high + bit / 8) >> bit % 8 & high_mask) << w;
	*exception = e;
}

/* Reads the first `count` numbers into x. */
static inline void column_get(const struct packed_column *c, uint64_t *x, unsigned count)
{
	column_part(c, x, 0, count, &(unsigned){ 0 });
}

uint64_t column_one(const struct packed_column *c, unsigned i);
