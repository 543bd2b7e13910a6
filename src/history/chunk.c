#include "history/chunk.h"

#include "base/hash.h"

void chunk_measure(const struct kept *row, size_t n, uint64_t *less)
{
	for (size_t i = 0; i < n; i++)
		less[i] = (uint64_t)row[i + 1].start - (uint64_t)row[i].start - 1;
}

uint32_t chunk_measure_states(const struct kept *row, size_t n, uint64_t *less, unsigned states, int64_t *sums)
{
	uint32_t told = 0;
	memset(sums, 0, states * sizeof *sums);
	sums[NULL_STATE] = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = (uint64_t)row[i + 1].start - (uint64_t)row[i].start;
		const unsigned v = (unsigned)(row[i].value | row[i].value >> 63) & NULL_STATE;  /* that for null */
		less[i] = ns - 1;
		sums[v] += (int64_t)ns;
		told |= UINT32_C(1) << v;
	}
	return told;
}

struct codes {
	uint64_t dict[CHUNK_DICT_MAX];
	unsigned dict_size;   /* 0: more than CHUNK_DICT_MAX different codes */
	uint64_t place[CHUNK_MAX];
};

/* Looks for few different codes by a small hash table; gives up at the first too many. */
static void find_dict(struct codes *c, const uint64_t *code, size_t n)
{
	uint8_t slot[128] = { 0 };  /* place in the dictionary + 1 */
	c->dict_size = 0;
	unsigned size = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned s = (unsigned)(hash_number(0, code[i]) >> 57);
		while (slot[s] && c->dict[slot[s] - 1] != code[i])
			s = (s + 1) & 127;
		if (!slot[s]) {
			if (size == CHUNK_DICT_MAX)
				return;
			c->dict[size] = code[i];
			slot[s] = (uint8_t)++size;
		}
		c->place[i] = slot[s] - 1u;
	}
	c->dict_size = size;
}

/* How many different ones there are of codes below 64. */
static unsigned count_codes(const uint64_t *code, size_t n)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < n; i++)
		seen |= UINT64_C(1) << code[i];
	return (unsigned)__builtin_popcountll(seen);
}

static unsigned bytes_of(uint64_t x)
{
	return (bits_of(x) + 7) / 8;
}

/* Bytes that a signed number takes, sign bit included; 0 for 0. */
static unsigned signed_bytes(int64_t x)
{
	return x ? (bits_of((uint64_t)(x < 0 ? ~x : x)) + 8) / 8 : 0;
}

static uint8_t *put_low(uint8_t *dst, uint64_t x, unsigned bytes)
{
	put64(dst, x);
	return dst + bytes;
}

/* Values as codes. */
struct coding {
	int64_t base;
	uint64_t most;      /* the largest code */
	bool nulls;
};

static struct coding encode_states(const struct kept *row, uint64_t *code, size_t n, uint32_t states)
{
	const uint32_t told = states & ~(UINT32_C(1) << NULL_STATE);
	const int64_t base = told == states ? __builtin_ctz(states) : -1;
	for (size_t i = 0; i < n; i++)
		code[i] = (uint64_t)((row[i].value | row[i].value >> 63) - base);  /* -1 for null */
	return (struct coding){ base, (uint64_t)((told ? 31 - __builtin_clz(told) : -1) - base), false };
}

/* Code 0 is null.  The least value but that: 0 where there is none but the largest number. */
static struct coding encode_nulls(const struct kept *row, uint64_t *code, size_t n)
{
	int64_t base = INT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (row[i].value != HISTORY_NULL && row[i].value < base)
			base = row[i].value;
	struct coding c = { .base = base == INT64_MAX ? 0 : base, .nulls = true };
	for (size_t i = 0; i < n; i++) {
		code[i] = row[i].value == HISTORY_NULL ? 0 : (uint64_t)row[i].value - (uint64_t)c.base + 1;
		c.most = code[i] > c.most ? code[i] : c.most;
	}
	return c;
}

static struct coding encode_values(const struct kept *row, uint64_t *code, size_t n)
{
	int64_t least = row[0].value, most = row[0].value;
	for (size_t i = 1; i < n; i++) {
		least = row[i].value < least ? row[i].value : least;
		most = row[i].value > most ? row[i].value : most;
	}
	if (least == HISTORY_NULL)
		return encode_nulls(row, code, n);
	for (size_t i = 0; i < n; i++)
		code[i] = (uint64_t)row[i].value - (uint64_t)least;
	return (struct coding){ least, (uint64_t)most - (uint64_t)least, false };
}

/* Is a dictionary of so many codes shorter than all n of them? */
static bool dict_pays(unsigned size, size_t n, uint64_t most)
{
	return size && n * bits_of(size - 1) + 8 * (1 + size * bytes_of(most)) < n * bits_of(most);
}

size_t chunk_put(uint8_t *dst, const uint64_t *less, const struct kept *row, size_t n, uint32_t states, bool echo)
{
	uint64_t code[CHUNK_MAX];
	const struct coding as = states ? encode_states(row, code, n, states) : encode_values(row, code, n);
	struct codes c;
	bool dict = as.most > 63 || dict_pays(states ? (unsigned)__builtin_popcount(states) : count_codes(code, n), n, as.most);
	if (dict) {
		find_dict(&c, code, n);
		dict = dict_pays(c.dict_size, n, as.most);
	}

	const bool whole = states && n >= CHUNK_WHOLE_MIN;
	unsigned base_bytes = signed_bytes(as.base), width, exceptions = 0;
	dst[0] = (uint8_t)(n - 1);
	dst[5] = (uint8_t)((dict ? CHUNK_DICT : 0) | (as.nulls ? CHUNK_NULLS : 0) | (whole ? CHUNK_WHOLE : 0) |
	                   (echo ? CHUNK_ECHO : 0) | base_bytes << 4);
	uint8_t *p = put_low(dst + CHUNK_HEADER, (uint64_t)as.base, base_bytes);
	if (dict) {
		const unsigned dict_bytes = bytes_of(as.most);
		*p++ = (uint8_t)dict_bytes;
		for (unsigned i = 0; i < c.dict_size; i++)
			p = put_low(p, c.dict[i], dict_bytes);
	}
	p = column_put(p, less, n - !whole, &width, &exceptions);
	dst[1] = (uint8_t)width;
	dst[2] = (uint8_t)exceptions;
	if (dict)
		p = column_put_plain(p, c.place, n, c.dict_size - 1, &width);
	else if (states)
		p = column_put_plain(p, code, n, as.most, &width);
	else
		p = column_put(p, code, n, &width, &exceptions);
	dst[3] = (uint8_t)width;
	dst[4] = (uint8_t)(dict ? c.dict_size : states ? 0 : exceptions);
	return (size_t)(p - dst);
}

const char *chunk_parse(struct chunk *c, const uint8_t *p, size_t size, bool state, int64_t start, int64_t end)
{
	const uint8_t *limit = p + size;
	if (size < CHUNK_HEADER)
		return "a chunk is too short";
	unsigned flags = p[5], base_bytes = flags >> 4, extra = p[4];
	c->n = p[0] + 1u;
	c->state = state;
	c->nulls = flags & CHUNK_NULLS;
	c->echo = flags & CHUNK_ECHO;
	c->start = start;
	c->end = end;
	c->dict = NULL;
	c->dict_size = 0;
	if (base_bytes > 8 || (state && (c->nulls || c->echo)) || (c->echo && flags & CHUNK_WHOLE))
		return "a chunk has an unknown form";
	const uint8_t *at = p + CHUNK_HEADER;
	if ((size_t)(limit - at) < base_bytes)
		return "a chunk is too short";
	unsigned shift = base_bytes ? 64 - 8 * base_bytes : 0;
	c->base = base_bytes ? (uint64_t)((int64_t)(get64(at) << shift) >> shift) : 0;
	at += base_bytes;
	if (flags & CHUNK_DICT) {
		if (extra > CHUNK_DICT_MAX || at == limit || *at > 8 || (size_t)(limit - at) < 1u + extra * *at)
			return "the dictionary of a chunk does not fit";
		c->dict_bytes = *at++;
		c->dict = at;
		c->dict_size = extra;
		at += extra * c->dict_bytes;
		extra = 0;
	}
	if (column_parse(&c->duration, at, limit, c->n - !(flags & CHUNK_WHOLE), p[1], p[2], &at) ||
	    column_parse(&c->code, at, limit, c->n, p[3], extra, &at) || at != limit)
		return "the columns of a chunk do not fit";
	if (state && (c->code.width > 5 || extra))
		return "a chunk of states has wide values";
	return NULL;
}

bool chunk_value(const struct chunk *c, unsigned i, int64_t *value)
{
	return chunk_decode(c, column_one(&c->code, i), value);
}

const char *chunk_starts(const struct chunk *c, int64_t *start, unsigned count)
{
	uint64_t less[CHUNK_MAX];
	uint64_t at = (uint64_t)c->start, left = (uint64_t)c->end - (uint64_t)c->start;
	column_get(&c->duration, less, count ? count - 1 : 0);
	for (unsigned i = 0; i < count; i++) {
		start[i] = (int64_t)at;
		if (i + 1 == count)
			break;
		if (less[i] >= left)
			return "the intervals of a chunk are longer than the chunk";
		at += less[i] + 1;
		left -= less[i] + 1;
	}
	return NULL;
}
