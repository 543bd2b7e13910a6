#include "history/column.h"

/* The width that makes the column smallest: every number costs it, every longer number costs an exception. */
static unsigned best_width(const uint64_t *x, unsigned n, unsigned max, bool may_except)
{
	unsigned best = max <= 57 ? max : 64;
	if (!may_except)
		return best;
	uint16_t count[65];
	memset(count, 0, (max + 1) * sizeof *count);
	for (unsigned i = 0; i < n; i++)
		count[bits_of(x[i])]++;
	unsigned best_cost = n * best;
	unsigned above = 0;
	/* A number that is longer than one width costs 8 bits more than the longest by any that is narrower still. */
	for (unsigned w = max; w-- > 0 && above * (8 + max) < best_cost;) {
		above += count[w + 1];
		if (w > 57)
			continue;
		unsigned high = max - w <= 57 ? max - w : 64;
		unsigned cost = n * w + above * (8 + high) + 8;
		if (cost < best_cost) {
			best_cost = cost;
			best = w;
		}
	}
	return best;
}

/* Packs the low `width` bits of the numbers. */
static uint8_t *pack(uint8_t *dst, const uint64_t *x, unsigned n, unsigned width)
{
	if (width == 64) {
		for (unsigned i = 0; i < n; i++, dst += 8)
			put64(dst, x[i]);
		return dst;
	}
	uint64_t mask = (UINT64_C(1) << width) - 1, acc = 0;
	unsigned have = 0;
	uint8_t *end = dst + packed_bytes(n, width);
	for (unsigned i = 0; i < n; i++) {
		uint64_t v = x[i] & mask;
		acc |= v << have;
		have += width;
		if (have >= 64) {
			put64(dst, acc);
			dst += 8;
			have -= 64;
			acc = have ? v >> (width - have) : 0;
		}
	}
	if (have)
		put64(dst, acc);
	return end;
}

uint8_t *column_put(uint8_t *dst, const uint64_t *x, unsigned n, uint64_t bits, bool may_except,
                    unsigned *width, unsigned *exceptions)
{
	const unsigned longest = bits_of(bits), w = best_width(x, n, longest, may_except);
	*width = w;
	*exceptions = 0;
	dst = pack(dst, x, n, w);
	if (w >= longest)
		return dst;
	uint64_t high[CHUNK_MAX];
	unsigned m = 0;
	for (unsigned i = 0; i < n; i++) {  /* without a branch: nobody can foresee it */
		const bool is_long = x[i] >> w;
		high[m] = x[i] >> w;
		*dst = (uint8_t)i;
		m += is_long;
		dst += is_long;
	}
	unsigned high_width = longest - w <= 57 ? longest - w : 64;
	*dst++ = (uint8_t)high_width;
	*exceptions = m;
	return pack(dst, high, m, high_width);
}

int column_parse(struct packed_column *c, const uint8_t *p, const uint8_t *limit, unsigned n, unsigned width,
                 unsigned exceptions, const uint8_t **end)
{
	*c = (struct packed_column){ .packed = p, .n = n, .width = width, .exceptions = exceptions };
	size_t room = (size_t)(limit - p), bytes = packed_bytes(n, width);
	if (!width_ok(width) || bytes > room)
		return -1;
	p += bytes;
	room -= bytes;
	*end = p;
	if (!exceptions)
		return 0;
	if (exceptions > n || width == 64 || room < exceptions + 1u)
		return -1;
	c->place = p;
	for (unsigned i = 0; i < exceptions; i++)
		if (p[i] >= n || (i && p[i] <= p[i - 1]))
			return -1;
	c->high_width = p[exceptions];
	p += exceptions + 1;
	room -= exceptions + 1;
	bytes = packed_bytes(exceptions, c->high_width);
	if (!width_ok(c->high_width) || bytes > room)
		return -1;
	c->high = p;
	*end = p + bytes;
	return 0;
}

uint64_t column_one(const struct packed_column *c, unsigned i)
{
	uint64_t x = packed_get(c->packed, c->width, i);
	for (unsigned e = 0; e < c->exceptions && c->place[e] <= i; e++)
		if (c->place[e] == i)
			x |= packed_get(c->high, c->high_width, e) << c->width;
	return x;
}
