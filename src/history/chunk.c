#include "history/chunk.h"

#include "base/hash.h"

/* Dictionary of a chunk; size 0: none. */
struct dict {
	unsigned size;
	uint64_t code[CHUNK_DICT_MAX];
};

/* Collects the distinct codes in a small hash table; d->size is 0 if there are more than CHUNK_DICT_MAX. index:
 * dictionary index of each of the n codes. */
static void find_dict(struct dict *d, const uint64_t *code, size_t n, uint64_t *index)
{
	uint8_t slot[128] = { 0 };  /* index in the dictionary + 1; 0: free */
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
		index[i] = slot[s] - 1u;
	}
	d->size = size;
}

/* Counts the distinct codes, which are below 64. */
static unsigned count_codes(const uint64_t *code, size_t n)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < n; i++)
		seen |= UINT64_C(1) << code[i];
	return (unsigned)__builtin_popcountll(seen);
}

static unsigned bytes_for(uint64_t x)
{
	return (bits_for(x) + 7) / 8;
}

/* Returns the bytes of a signed number with its sign bit; 0 for 0. */
static unsigned signed_bytes(int64_t x)
{
	return x ? (bits_for((uint64_t)(x < 0 ? ~x : x)) + 8) / 8 : 0;
}

static uint8_t *put_low(uint8_t *dst, uint64_t x, unsigned bytes)
{
	put64(dst, x);
	return dst + bytes;
}

/* Encoding of values: value = base + code. */
struct coding {
	int64_t base;
	uint64_t max_code;       /* largest code */
	bool nulls;
};

/* Encodes values with nulls as code 0 and others as value - base + 1; base: the smallest value except null. */
static struct coding encode_nulls(const struct change *row, uint64_t *code, size_t n)
{
	int64_t base = INT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (row[i].value != HISTORY_NULL && row[i].value < base)
			base = row[i].value;
	struct coding c = { .base = base == INT64_MAX ? 0 : base, .nulls = true };
	for (size_t i = 0; i < n; i++) {
		code[i] = row[i].value == HISTORY_NULL ? 0 : (uint64_t)row[i].value - (uint64_t)c.base + 1;
		c.max_code = code[i] > c.max_code ? code[i] : c.max_code;
	}
	return c;
}

static struct coding encode_values(const struct change *row, uint64_t *code, size_t n)
{
	int64_t min_value = row[0].value, max_code = row[0].value;
	for (size_t i = 1; i < n; i++) {
		min_value = row[i].value < min_value ? row[i].value : min_value;
		max_code = row[i].value > max_code ? row[i].value : max_code;
	}
	if (min_value == HISTORY_NULL)
		return encode_nulls(row, code, n);
	for (size_t i = 0; i < n; i++)
		code[i] = (uint64_t)row[i].value - (uint64_t)min_value;
	return (struct coding){ min_value, (uint64_t)max_code - (uint64_t)min_value, false };
}

/* Returns true if a dictionary makes the encoding of the n codes shorter. */
static bool dict_is_shorter(unsigned size, size_t n, uint64_t max_code)
{
	return size && n * bits_for(size - 1) + 8 * (1 + size * bytes_for(max_code)) < n * bits_for(max_code);
}

/* Writes a chunk up to its codes. less: durations - 1, or leader interval numbers. Returns the position of the codes. */
static uint8_t *put_until_codes(uint8_t *dst, size_t n, const struct coding *as, const struct dict *d, unsigned flags,
                                const uint64_t *less, size_t durations)
{
	unsigned base_bytes = signed_bytes(as->base), width, exceptions = 0;
	dst[0] = (uint8_t)(n - 1);
	dst[5] = (uint8_t)(flags | (d->size ? CHUNK_DICT : 0) | (as->nulls ? CHUNK_NULLS : 0) | base_bytes << 4);
	uint8_t *p = put_low(dst + CHUNK_HEADER, (uint64_t)as->base, base_bytes);
	if (d->size) {
		const unsigned dict_entry_bytes = bytes_for(as->max_code);
		*p++ = (uint8_t)dict_entry_bytes;
		for (unsigned i = 0; i < d->size; i++)
			p = put_low(p, d->code[i], dict_entry_bytes);
	}
	p = column_put(p, less, durations, &width, &exceptions);
	dst[1] = (uint8_t)width;
	dst[2] = (uint8_t)exceptions;
	return p;
}

/* Fills less[] with the durations - 1, and returns it. */
static const uint64_t *row_durations(const struct change *row, size_t n, uint64_t *less)
{
	for (size_t i = 0; i < n; i++)
		less[i] = (uint64_t)row[i + 1].start - (uint64_t)row[i].start - 1;
	return less;
}

size_t chunk_put(uint8_t *dst, const struct change *row, size_t n, const uint64_t *skipped)
{
	uint64_t code[CHUNK_MAX], index[CHUNK_MAX], less[CHUNK_MAX];
	const struct coding as = encode_values(row, code, n);
	unsigned width, extra = 0;
	struct dict d;
	d.size = 0;
	if (as.max_code > 63 || dict_is_shorter(count_codes(code, n), n, as.max_code))
		find_dict(&d, code, n, index);
	d.size = dict_is_shorter(d.size, n, as.max_code) ? d.size : 0;
	uint8_t *p = put_until_codes(dst, n, &as, &d, skipped ? CHUNK_LINKED : 0,
	                             skipped ? skipped : row_durations(row, n, less), n - 1);
	p = d.size ? column_put_plain(p, index, n, d.size - 1, &width) : column_put(p, code, n, &width, &extra);
	dst[3] = (uint8_t)width;
	dst[4] = (uint8_t)(d.size ? d.size : extra);
	return (size_t)(p - dst);
}

/* Durations and states of a chunk. */
struct measured {
	uint64_t less[CHUNK_MAX];
	uint8_t state[CHUNK_MAX + 8];  /* NULL_STATE: null */
	uint8_t first[NULL_STATE + 1];  /* used states, in order of appearance */
	unsigned states;
	uint32_t used;  /* states that occur, one bit each */
};

static void measure_states(struct measured *m, const struct change *row, size_t n, int64_t *sums)
{
	uint32_t used_states = 0;
	unsigned states = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t ns = (uint64_t)row[i + 1].start - (uint64_t)row[i].start;
		const unsigned v = (unsigned)(row[i].value | row[i].value >> 63) & NULL_STATE;
		m->less[i] = ns - 1;
		m->state[i] = (uint8_t)v;
		sums[v] += (int64_t)ns;
		if (!(used_states >> v & 1)) {
			used_states |= UINT32_C(1) << v;
			m->first[states++] = (uint8_t)v;
		}
	}
	m->used = used_states;
	m->states = states;
}

size_t chunk_put_states(uint8_t *dst, const struct change *row, size_t n, unsigned states, int64_t *sums,
                        uint32_t *used_states)
{
	struct measured m;
	struct dict d;
	d.size = 0;
	memset(sums, 0, states * sizeof *sums);
	sums[NULL_STATE] = 0;
	measure_states(&m, row, n, sums);
	*used_states = m.used;
	const uint32_t non_null = m.used & ~(UINT32_C(1) << NULL_STATE);
	const int64_t base = non_null == m.used ? __builtin_ctz(non_null) : -1;
	const struct coding as = { base, (uint64_t)((non_null ? 31 - __builtin_clz(non_null) : -1) - base), false };
	if (dict_is_shorter(m.states, n, as.max_code)) {
		uint8_t index[NULL_STATE + 1];
		for (; d.size < m.states; d.size++) {
			d.code[d.size] = (uint64_t)(m.first[d.size] - base) & NULL_STATE;
			index[m.first[d.size]] = (uint8_t)d.size;
		}
		for (size_t i = 0; i < n; i++)
			m.state[i] = index[m.state[i]];
	} else {
		const uint64_t every = UINT64_C(0x0101010101010101), up = (uint64_t)(NULL_STATE + 1 - base) * every;
		for (size_t i = 0; i < n; i += 8)
			put64(m.state + i, (get64(m.state + i) + up) & NULL_STATE * every);
	}
	const bool all_durations = n >= CHUNK_ALL_DURATIONS_MIN;
	uint8_t *p = put_until_codes(dst, n, &as, &d, all_durations ? CHUNK_ALL_DURATIONS : 0, m.less, n - !all_durations);
	const unsigned width = bits_for(d.size ? d.size - 1 : as.max_code);
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
	c->linked = flags & CHUNK_LINKED;
	c->start = start;
	c->end = end;
	c->dict = NULL;
	c->dict_len = 0;
	if (base_bytes > 8 || (state && (c->nulls || c->linked)) || (c->linked && flags & CHUNK_ALL_DURATIONS))
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
		c->dict_entry_bytes = *at++;
		c->dict = at;
		c->dict_len = extra;
		at += extra * c->dict_entry_bytes;
		extra = 0;
	}
	if (column_parse(&c->duration, at, limit, c->n - !(flags & CHUNK_ALL_DURATIONS), p[1], p[2], &at) ||
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
	uint64_t at = (uint64_t)c->start, remaining = (uint64_t)c->end - (uint64_t)c->start;
	column_get(&c->duration, less, count ? count - 1 : 0);
	for (unsigned i = 0; i < count; i++) {
		start[i] = (int64_t)at;
		if (i + 1 == count)
			break;
		if (less[i] >= remaining)
			return "the intervals of a chunk are longer than the chunk";
		at += less[i] + 1;
		remaining -= less[i] + 1;
	}
	return NULL;
}
