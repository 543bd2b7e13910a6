#include "history/column.h"

/* Returns the column width for numbers of this many bits. */
static unsigned pack_width(unsigned bits)
{
	return bits <= 57 ? bits : 64;
}

/* Returns the width with the smallest column: every number costs the width, every longer number an exception. *longest:
 * bits of the longest number. */
static unsigned best_width(const uint64_t *x, size_t n, unsigned *longest)
{
	uint16_t count[65] = { 0 };
	uint64_t bits = 0;
	for (size_t i = 0; i < n; i++) {
		bits |= x[i];
		count[bits_for(x[i])]++;
	}
	const unsigned max = *longest = bits_for(bits);
	size_t best_cost = n * pack_width(max);
	unsigned best = pack_width(max), above = 0;
	/* Stop when the exceptions alone, each 8 + max bits with its low part, cost more than the best column. */
	for (unsigned w = max; w-- > 0 && above * (8 + max) < best_cost;) {
		above += count[w + 1];
		if (w > 57)
			continue;
		const size_t cost = n * w + above * (8 + pack_width(max - w)) + 8;
		if (cost < best_cost) {
			best_cost = cost;
			best = w;
		}
	}
	return best;
}

/* Bit writer: keeps up to 7 bits until their byte is full. */
struct packer {
	uint8_t *dst;
	uint64_t waits;
	unsigned have;           /* waiting bits, 0 .. 7 */
};

/* Appends bits and writes eight bytes without a branch; p->dst advances over whole bytes only. bits: at most 57. */
static inline void pack_bits(struct packer *p, uint64_t x, unsigned bits)
{
	p->waits |= x << p->have;
	put64(p->dst, p->waits);
	const unsigned have = p->have + bits;
	p->dst += have / 8;
	p->waits = have < 64 ? p->waits >> (have & ~7U) : 0;
	p->have = have % 8;
}

/* Joins the low bits of two numbers, x[0] lowest. */
static inline uint64_t join_low_bits(const uint64_t *x, unsigned width, uint64_t mask)
{
	return (x[0] & mask) | (x[1] & mask) << width;
}

/* Packs the low `width` bits of the numbers; several narrow numbers at a time. */
static uint8_t *pack_numbers(uint8_t *dst, const uint64_t *x, size_t n, unsigned width)
{
	if (width == 64) {
		for (size_t i = 0; i < n; i++, dst += 8)
			put64(dst, x[i]);
		return dst;
	}
	const uint64_t mask = (UINT64_C(1) << width) - 1, *const all = x + n;
	uint8_t *const end = dst + packed_bytes(n, width);
	struct packer p = { .dst = dst };
	if (width <= 14)
		for (; all - x >= 4; x += 4)
			pack_bits(&p, join_low_bits(x, width, mask) | join_low_bits(x + 2, width, mask) << 2 * width, 4 * width);
	else if (width <= 28)
		for (; all - x >= 2; x += 2)
			pack_bits(&p, join_low_bits(x, width, mask), 2 * width);
	for (; x < all; x++)
		pack_bits(&p, *x & mask, width);
	put64(p.dst, p.waits);
	return end;
}

uint8_t *column_put_plain(uint8_t *dst, const uint64_t *x, size_t n, uint64_t max, unsigned *width)
{
	*width = pack_width(bits_for(max));
	return pack_numbers(dst, x, n, *width);
}

#define LANES(bits) (UINT64_MAX / ((UINT64_C(1) << (bits)) - 1))  /* a 1 in every bits-th bit */

/* Joins the low bits of eight bytes: neighbouring bytes first, then pairs, then groups of four. */
static inline uint64_t join_bytes(uint64_t x, unsigned width)
{
	const uint64_t one = LANES(16) * 0xff, two = LANES(32) * 0xffff;
	x = (x & one) | (x & ~one) >> (8 - width);
	x = (x & two) | (x & ~two) >> (16 - 2 * width);
	return (x & UINT32_MAX) | (x & ~(uint64_t)UINT32_MAX) >> (32 - 4 * width);
}

uint8_t *column_put_bytes(uint8_t *dst, const uint8_t *x, size_t n, unsigned width)
{
	uint8_t *const end = dst + packed_bytes(n, width);
	struct packer p = { .dst = dst };
	for (; n >= 8; n -= 8, x += 8)
		pack_bits(&p, join_bytes(get64(x), width), 8 * width);
	pack_bits(&p, join_bytes(get64(x) & ((UINT64_C(1) << 8 * n) - 1), width), 8 * width);
	return end;
}

uint8_t *column_put(uint8_t *dst, const uint64_t *x, size_t n, unsigned *width, unsigned *exceptions)
{
	unsigned longest;
	const unsigned w = best_width(x, n, &longest);
	*width = w;
	*exceptions = 0;
	dst = pack_numbers(dst, x, n, w);
	if (w >= longest)
		return dst;
	const uint64_t max = (UINT64_C(1) << w) - 1;
	uint64_t high[CHUNK_MAX];
	size_t m = 0;
	for (size_t from = 0; from < n; from += 64) {
		uint64_t is_long = 0;
		for (size_t i = from + 64 < n ? from + 64 : n; i-- > from;)
			is_long = is_long << 1 | (x[i] > max);
		for (; is_long; is_long &= is_long - 1) {
			const size_t i = from + (unsigned)__builtin_ctzll(is_long);
			high[m++] = x[i] >> w;
			*dst++ = (uint8_t)i;
		}
	}
	const unsigned high_width = pack_width(longest - w);
	*dst++ = (uint8_t)high_width;
	*exceptions = (unsigned)m;
	return pack_numbers(dst, high, m, high_width);
}

int column_parse(struct packed_column *c, const uint8_t *p, const uint8_t *limit, unsigned n, unsigned width,
                 unsigned exceptions, const uint8_t **end)
{
	*c = (struct packed_column){ .packed = p, .n = n, .width = width, .exceptions = exceptions };
	size_t remaining = (size_t)(limit - p), bytes = packed_bytes(n, width);
	if (!width_ok(width) || bytes > remaining)
		return -1;
	p += bytes;
	remaining -= bytes;
	*end = p;
	if (!exceptions)
		return 0;
	if (exceptions > n || width == 64 || remaining < exceptions + 1u)
		return -1;
	c->exception = p;
	for (unsigned i = 0; i < exceptions; i++)
		if (p[i] >= n || (i && p[i] <= p[i - 1]))
			return -1;
	c->high_width = p[exceptions];
	p += exceptions + 1;
	remaining -= exceptions + 1;
	bytes = packed_bytes(exceptions, c->high_width);
	if (!width_ok(c->high_width) || bytes > remaining)
		return -1;
	c->high = p;
	*end = p + bytes;
	return 0;
}

uint64_t column_one(const struct packed_column *c, unsigned i)
{
	uint64_t x = packed_get(c->packed, c->width, i);
	for (unsigned e = 0; e < c->exceptions && c->exception[e] <= i; e++)
		if (c->exception[e] == i)
			x |= packed_get(c->high, c->high_width, e) << c->width;
	return x;
}
