#include "history/chunk.h"

#include "base/hash.h"

/* Empty, or that of a chunk. */
struct dict {
	unsigned size;
	uint64_t code[CHUNK_DICT_MAX];
};

/* Looks for few different codes by a small hash table; gives up at the first too many.  place: of each code. */
static void find_dict(struct dict *d, const uint64_t *code, size_t n, uint64_t *place)
{
	uint8_t slot[128] = { 0 };  /* place in the dictionary + 1 */
	d->size = 0;
	unsigned size = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned s = (unsigned)(hash_number(0, code[i]) >> 57);
		while (slot[s] && d->code[slot[s] - 1] != code[i])
			s = (s + 1) & 127;
		if (!slot[s]) {
			if (size == CHUNK_DICT_MAX)
				return;
			d->code[size] = code[i];
			slot[s] = (uint8_t)++size;
		}
		place[i] = slot[s] - 1u;
	}
	d->size = size;
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

/* Of a chunk all but its codes, whose place it returns.  less: of durations that it has, or what an echo has. */
static uint8_t *put_head(uint8_t *dst, size_t n, const struct coding *as, const struct dict *d, unsigned flags,
                         const uint64_t *less, size_t durations)
{
	unsigned base_bytes = signed_bytes(as->base), width, exceptions = 0;
	dst[0] = (uint8_t)(n - 1);
	dst[5] = (uint8_t)(flags | (d->size ? CHUNK_DICT : 0) | (as->nulls ? CHUNK_NULLS : 0) | base_bytes << 4);
	uint8_t *p = put_low(dst + CHUNK_HEADER, (uint64_t)as->base, base_bytes);
	if (d->size) {
		const unsigned dict_bytes = bytes_of(as->most);
		*p++ = (uint8_t)dict_bytes;
		for (unsigned i = 0; i < d->size; i++)
			p = put_low(p, d->code[i], dict_bytes);
	}
	p = column_put(p, less, durations, &width, &exceptions);
	dst[1] = (uint8_t)width;
	dst[2] = (uint8_t)exceptions;
	return p;
}

/* Durations - 1, put there. */
static const uint64_t *lengths(const struct kept *row, size_t n, uint64_t *less)
{
	for (size_t i = 0; i < n; i++)
		less[i] = (uint64_t)row[i + 1].start - (uint64_t)row[i].start - 1;
	return less;
}

size_t chunk_put(uint8_t *dst, const struct kept *row, size_t n, const uint64_t *skipped)
{
	uint64_t code[CHUNK_MAX], place[CHUNK_MAX], less[CHUNK_MAX];
	const struct coding as = encode_values(row, code, n);
	unsigned width, extra = 0;
	struct dict d;
	d.size = 0;
	if (as.most > 63 || dict_pays(count_codes(code, n), n, as.most))
		find_dict(&d, code, n, place);
	d.size = dict_pays(d.size, n, as.most) ? d.size : 0;
	uint8_t *p = put_head(dst, n, &as, &d, skipped ? CHUNK_ECHO : 0, skipped ? skipped : lengths(row, n, less), n - 1);
	p = d.size ? column_put_plain(p, place, n, d.size - 1, &width) : column_put(p, code, n, &width, &extra);
	dst[3] = (uint8_t)width;
	dst[4] = (uint8_t)(d.size ? d.size : extra);
	return (size_t)(p - dst);
}

/* What is measured of states. */
struct measured {
	uint64_t less[CHUNK_MAX];
	uint8_t state[CHUNK_MAX + 8];    /* null is NULL_STATE */
	uint8_t first[NULL_STATE + 1];   /* those that there are, as they come */
	unsigned states;
	uint32_t told;
};

static void measure(struct measured *m, const struct kept *row, size_t n, int64_t *sums)
{
	uint32_t told = 0;
	unsigned states = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = (uint64_t)row[i + 1].start - (uint64_t)row[i].start;
		const unsigned v = (unsigned)(row[i].value | row[i].value >> 63) & NULL_STATE;
		m->less[i] = ns - 1;
		m->state[i] = (uint8_t)v;
		sums[v] += (int64_t)ns;
		if (!(told >> v & 1)) {
			told |= UINT32_C(1) << v;
			m->first[states++] = (uint8_t)v;
		}
	}
	m->told = told;
	m->states = states;
}

size_t chunk_put_states(uint8_t *dst, const struct kept *row, size_t n, unsigned states, int64_t *sums, uint32_t *told)
{
	struct measured m;
	struct dict d;
	d.size = 0;
	memset(sums, 0, states * sizeof *sums);
	sums[NULL_STATE] = 0;
	measure(&m, row, n, sums);
	*told = m.told;
	const uint32_t others = m.told & ~(UINT32_C(1) << NULL_STATE);
	const int64_t base = others == m.told ? __builtin_ctz(others) : -1;
	const struct coding as = { base, (uint64_t)((others ? 31 - __builtin_clz(others) : -1) - base), false };
	if (dict_pays(m.states, n, as.most)) {
		uint8_t place[NULL_STATE + 1];
		for (; d.size < m.states; d.size++) {
			d.code[d.size] = (uint64_t)(m.first[d.size] - base) & NULL_STATE;
			place[m.first[d.size]] = (uint8_t)d.size;
		}
		for (size_t i = 0; i < n; i++)
			m.state[i] = place[m.state[i]];
	} else {
		const uint64_t every = UINT64_C(0x0101010101010101), up = (uint64_t)(NULL_STATE + 1 - base) * every;
		for (size_t i = 0; i < n; i += 8)
			put64(m.state + i, (get64(m.state + i) + up) & NULL_STATE * every);
	}
	const bool whole = n >= CHUNK_WHOLE_MIN;
	uint8_t *p = put_head(dst, n, &as, &d, whole ? CHUNK_WHOLE : 0, m.less, n - !whole);
	const unsigned width = bits_of(d.size ? d.size - 1 : as.most);
	dst[3] = (uint8_t)width;
	dst[4] = (uint8_t)d.size;
	return (size_t)(column_put_bytes(p, m.state, n, width) - dst);
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
