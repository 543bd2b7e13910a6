#include "query/sums_section.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TRAILER_BYTES 48
#define RECORD_BYTES 24
#define PLACE_BITS 14

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static inline uint8_t *reserve(struct sums_writer *w, size_t n)
{
	if (w->cap - w->len < n) {
		w->cap = 2 * w->cap + n;
		w->buf = mem_resize(w->buf, w->cap, 1);
	}
	return w->buf + w->len;
}

static inline void put(struct sums_writer *w, uint64_t x)
{
	uint8_t *p = reserve(w, 10);
	for (; x >= 0x80; x >>= 7)
		*p++ = (uint8_t)(x | 0x80);
	*p++ = (uint8_t)x;
	w->len = (size_t)(p - w->buf);
}

static void put_fixed(struct sums_writer *w, uint64_t x, size_t bytes)
{
	const uint64_t le = htole64(x);
	memcpy(reserve(w, bytes), &le, bytes);
	w->len += bytes;
}

static uint64_t fixed(const uint8_t *p, size_t bytes)
{
	uint64_t x = 0;
	memcpy(&x, p, bytes);
	return le64toh(x);
}

/* Bytes that are read; after an error, all numbers are 0 and `bad` is set. */
struct input_bytes { const uint8_t *p, *end; bool bad; };

static uint64_t take(struct input_bytes *in)
{
	uint64_t x = 0;
	for (unsigned shift = 0; in->p < in->end && shift < 64; shift += 7) {
		const uint8_t byte = *in->p++;
		x |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return x;
	}
	in->bad = true;
	return 0;
}

/* Returns a number up to `max`. */
static uint64_t take_most(struct input_bytes *in, uint64_t max)
{
	const uint64_t x = take(in);
	in->bad = in->bad || x > max;
	return in->bad ? 0 : x;
}

/* Returns how many bits the intervals' places omit in a block with `ns`: 14 remain. */
static unsigned place_shift(int64_t ns)
{
	const int bits = 64 - __builtin_clzll((uint64_t)ns | 1);
	return bits > PLACE_BITS ? (unsigned)(bits - PLACE_BITS) : 0;
}

/* Returns the time of a culprit's intervals that do not touch the edges in a block with `ns`. */
static int64_t inner_time(const struct gap_sum *s, const struct culprit_ns *c, int64_t ns)
{
	const int64_t first = s->first.ns && s->first.culprit == c->culprit ? s->first.ns : 0;
	return c->ns - first - (s->last.ns && s->last.culprit == c->culprit && s->first.ns < ns ? s->last.ns : 0);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_edge(struct sums_writer *w, const struct edge_interval *e)
{
	put(w, e->culprit);
	put(w, (uint64_t)e->ns);
}

static void put_culprit(struct sums_writer *w, const struct gap_sum *s, uint32_t i, int64_t start, int64_t ns)
{
	const struct culprit_ns *c = &s->culprit[i];
	const bool many = c->intervals > 1;
	put(w, 2 * (uint64_t)(c->culprit - (i ? s->culprit[i - 1].culprit : 0)) + many);
	put(w, (uint64_t)c->ns);
	if (many) {
		put(w, c->intervals);
		put(w, (uint64_t)c->longest);
	}
	if (c->intervals)
		put(w, (uint64_t)(c->longest_start - start) >> place_shift(ns));
}

static void put_sum(struct sums_writer *w, const struct gap_sum *s, int64_t start, int64_t ns)
{
	put(w, (uint64_t)s->head);
	put(w, (uint64_t)s->tail);
	put(w, s->gaps);
	if (s->gaps) {
		put(w, (uint64_t)s->longest);
		put(w, (uint64_t)(s->longest_start - start));
	}
	if (s->head)
		put_edge(w, &s->first);
	if (s->tail)
		put_edge(w, &s->last);
	put(w, s->culprits);
	for (uint32_t i = 0; i < s->culprits; i++)
		put_culprit(w, s, i, start, ns);
	put(w, s->lengths);
	for (uint32_t i = 0, last = 0; i < s->lengths; last = s->length[i++].bucket) {
		const bool many = s->length[i].count > 1;
		put(w, 2 * (s->length[i].bucket - last) + many);
		if (many)
			put(w, s->length[i].count);
	}
}

/* Puts a row, its byte count first. */
static void put_row(struct sums_writer *w, const struct gap_block_row *row, uint32_t last, int64_t start, int64_t ns)
{
	put(w, row->row - last);
	const size_t at = w->len;
	put_sum(w, &row->sum, start, ns);
	const size_t size = w->len - at;
	put(w, size);
	uint8_t number[10];
	const size_t n = w->len - at - size;
	memcpy(number, w->buf + at + size, n);
	memmove(w->buf + at + n, w->buf + at, size);
	memcpy(w->buf + at, number, n);
}

static int flush(struct sums_writer *w, struct error *err)
{
	const int status = history_write_derived(w->b, w->buf, w->len, err);
	w->offset += w->len;
	w->len = 0;
	return status;
}

static int write_level(struct sums_writer *w, unsigned k, struct gap_block *block, struct error *err)
{
	struct sums_level *level = &w->level[k], *above = &w->level[k + 1];
	const uint64_t offset = w->offset;
	put(w, block->rows);
	for (size_t i = 0; i < block->rows; i++)
		put_row(w, &block->row[i], i ? block->row[i - 1].row : 0, block->start, block->end - block->start + 1);
	*ARRAY_PUSH(level->record, level->records, level->cap) = (struct block_record){ block->start, offset, w->len };
	if (flush(w, err))
		return -1;
	if (k + 1 == SUMS_LEVELS) {
		gap_block_release(block);
		return 0;
	}
	if (above->blocks++) {
		gap_block_append(&above->next, block);
	} else {
		above->next = *block;
		*block = (struct gap_block){ 0 };
	}
	if (above->blocks < SUMS_FAN_OUT)
		return 0;
	above->blocks = 0;
	return write_level(w, k + 1, &above->next, err);
}

int sums_write_block(struct sums_writer *w, struct gap_block *block, struct error *err)
{
	return write_level(w, 0, block, err);
}

static void put_culprits(struct sums_writer *w, const struct actors *culprits, const struct strtab *names)
{
	for (size_t i = 0; i < culprits->len; i++) {
		const struct actor *p = &culprits->actor[i];
		const char *name = strtab_get(names, p->name);
		const size_t len = strlen(name);
		put(w, p->kind);
		put(w, p->reason);
		put(w, (uint32_t)p->machine + 1);
		put(w, (uint32_t)p->tid + 1);
		put(w, len);
		memcpy(reserve(w, len), name, len);
		w->len += len;
	}
}

int sums_write_end(struct sums_writer *w, const struct history *h, const struct actors *culprits,
                   const struct strtab *names, struct error *err)
{
	unsigned levels = 1;
	for (; w->level[levels - 1].records > 1 && levels < SUMS_LEVELS; levels++) {
		struct sums_level *level = &w->level[levels];
		const bool rest = level->blocks > 0;
		level->blocks = 0;
		if (rest && write_level(w, levels, &level->next, err))
			return -1;
	}
	const uint64_t culprits_at = w->offset;
	put_culprits(w, culprits, names);
	const uint64_t directory = w->offset + w->len;
	for (unsigned k = 0; k < levels; k++)
		put_fixed(w, w->level[k].records, 8);
	for (unsigned k = 0; k < levels; k++)
		for (size_t i = 0; i < w->level[k].records; i++) {
			const struct block_record *r = &w->level[k].record[i];
			put_fixed(w, (uint64_t)r->start, 8);
			put_fixed(w, r->offset, 8);
			put_fixed(w, r->size, 8);
		}
	put_fixed(w, SUMS_MAGIC, 4);
	put_fixed(w, SUMS_RULES, 4);
	put_fixed(w, levels, 4);
	put_fixed(w, culprits->len, 4);
	put_fixed(w, (uint64_t)history_begin(h), 8);
	put_fixed(w, (uint64_t)history_end(h), 8);
	put_fixed(w, culprits_at, 8);
	put_fixed(w, directory, 8);
	return flush(w, err);
}

void sums_writer_release(struct sums_writer *w)
{
	for (unsigned k = 0; k < SUMS_LEVELS; k++) {
		free(w->level[k].record);
		gap_block_release(&w->level[k].next);
	}
	free(w->buf);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool read_culprits(struct sums_section *s, const struct catalog *catalog, uint64_t offset, uint64_t size,
                          struct actors *culprits, struct strtab *names)
{
	const uint8_t *p = size ? history_derived(s->h, offset, size) : NULL;
	struct input_bytes in = { p, p ? p + size : NULL, size && !p };
	for (uint32_t i = 0; i < s->culprits && !in.bad; i++) {
		struct actor actor = { .kind = (uint16_t)take_most(&in, FLOW_KIND_COUNT - 1) };
		actor.reason = (uint16_t)take_most(&in, OUT_REASON_COUNT);
		actor.machine = (int32_t)take_most(&in, catalog->machines) - 1;
		actor.tid = (int32_t)take_most(&in, INT32_MAX) - 1;
		const size_t len = (size_t)take_most(&in, STRTAB_MAX);
		if (in.bad || (size_t)(in.end - in.p) < len)
			return false;
		char name[STRTAB_MAX + 1] = "";
		memcpy(name, in.p, len);
		in.p += len;
		actor.name = strtab_put(names, name);
		if (actors_put(culprits, &actor) != i)
			return false;
	}
	return !in.bad;
}

/* Checks the directory: blocks ascend, and begin with the window. */
static bool read_directory(struct sums_section *s, uint64_t offset, uint64_t size)
{
	const uint8_t *p = history_derived(s->h, offset, size);
	uint64_t at = 8 * s->levels;
	for (unsigned k = 0; p && k < s->levels; k++) {
		s->level[k].records = size >= at ? fixed(p + 8 * k, 8) : UINT64_MAX;
		const uint64_t below = k ? s->level[k - 1].records : 0;
		if (s->level[k].records > (size - at) / RECORD_BYTES || s->level[k].records == 0 ||
		    (k && s->level[k].records != (below + SUMS_FAN_OUT - 1) / SUMS_FAN_OUT))
			return false;
		s->level[k].record = p + at;
		at += RECORD_BYTES * s->level[k].records;
	}
	for (uint64_t i = 0; p && i < s->level[0].records; i++) {
		const int64_t start = (int64_t)fixed(s->level[0].record + RECORD_BYTES * i, 8);
		const int64_t last = i ? (int64_t)fixed(s->level[0].record + RECORD_BYTES * (i - 1), 8) : 0;
		if (i ? start <= last || start > history_end(s->h) : start != history_begin(s->h))
			return false;
	}
	return p && s->level[s->levels - 1].records == 1;
}

bool sums_open(struct sums_section *s, const struct catalog *catalog, struct actors *culprits, struct strtab *names)
{
	const struct history *h = catalog->h;
	const uint64_t size = history_derived_size(h);
	*s = (struct sums_section){ .h = h };
	const uint8_t *p = size >= TRAILER_BYTES ? history_derived(h, size - TRAILER_BYTES, TRAILER_BYTES) : NULL;
	if (!p || fixed(p, 4) != SUMS_MAGIC || fixed(p + 4, 4) != SUMS_RULES)
		return false;
	s->levels = (unsigned)fixed(p + 8, 4);
	s->culprits = (uint32_t)fixed(p + 12, 4);
	const uint64_t culprits_at = fixed(p + 32, 8), directory = fixed(p + 40, 8);
	if (!s->levels || s->levels > SUMS_LEVELS || (int64_t)fixed(p + 16, 8) != history_begin(h) ||
	    (int64_t)fixed(p + 24, 8) != history_end(h) || culprits_at > directory || directory > size - TRAILER_BYTES)
		return false;
	return read_directory(s, directory, size - TRAILER_BYTES - directory) &&
	       read_culprits(s, catalog, culprits_at, directory - culprits_at, culprits, names);
}

size_t sums_blocks(const struct sums_section *s)
{
	return (size_t)s->level[0].records;
}

int64_t sums_block_start(const struct sums_section *s, size_t i)
{
	return i < s->level[0].records ? (int64_t)fixed(s->level[0].record + RECORD_BYTES * i, 8) : history_end(s->h) + 1;
}

/* Reads the interval at an edge with a gap that lasts `ns`. */
static struct edge_interval take_edge(struct input_bytes *in, const struct sums_section *s, int64_t ns)
{
	struct edge_interval e = { 0 };
	if (ns) {
		e.culprit = (uint32_t)take_most(in, s->culprits);
		e.ns = (int64_t)take_most(in, (uint64_t)ns);
	}
	return e;
}

/* Reads the intervals for a culprit in `out`, in a block with `ns`. */
static void take_intervals(struct input_bytes *in, const struct gap_sum *out, struct culprit_ns *c, bool many,
                           int64_t start, int64_t ns)
{
	const int64_t inner = inner_time(out, c, ns);
	in->bad = in->bad || inner < 0;
	c->intervals = inner > 0;
	c->longest = inner;
	if (many) {
		c->intervals = (uint32_t)take_most(in, UINT32_MAX);
		c->longest = (int64_t)take_most(in, (uint64_t)inner);
	}
	if (c->intervals)
		c->longest_start = start + (int64_t)(take_most(in, (uint64_t)ns >> place_shift(ns)) << place_shift(ns));
}

/* Reads a row's sums in a block with `ns`. */
static void take_sum(struct input_bytes *in, const struct sums_section *s, int64_t start, int64_t ns, struct gap_sum *out)
{
	uint64_t rest = (uint64_t)ns, gaps = 0, number = 0, delta;
	out->head = (int64_t)take_most(in, rest);
	out->tail = (int64_t)take_most(in, rest);
	out->gaps = take_most(in, rest);
	if (out->gaps) {
		out->longest = (int64_t)take_most(in, rest);
		out->longest_start = start + (int64_t)take_most(in, rest);
	}
	out->first = take_edge(in, s, out->head);
	out->last = take_edge(in, s, out->tail);
	out->culprits = (uint32_t)take_most(in, s->culprits);
	for (uint32_t i = 0; i < out->culprits && !in->bad; i++) {
		delta = take_most(in, 2 * (s->culprits - 1 - number) + 1);
		number += delta / 2;
		out->culprit[i] = (struct culprit_ns){ .culprit = (uint32_t)number, .ns = (int64_t)take_most(in, rest) };
		rest -= (uint64_t)out->culprit[i].ns;
		take_intervals(in, out, &out->culprit[i], delta % 2, start, ns);
	}
	out->lengths = (uint32_t)take_most(in, LENGTH_BUCKETS);
	number = 0;
	for (uint32_t i = 0; i < out->lengths && !in->bad; i++) {
		delta = take_most(in, 2 * (LENGTH_BUCKETS - 1 - number) + 1);
		number += delta / 2;
		out->length[i] = (struct length_count){ (uint32_t)number, delta % 2 ? (uint32_t)take_most(in, UINT32_MAX) : 1 };
		gaps += out->length[i].count;
	}
	in->bad = in->bad || gaps != out->gaps;
}

/* A block whose rows are read one after the other. */
struct block_reader {
	struct input_bytes in;
	int64_t start, ns;
	uint64_t rows, number;   /* rows after the current one; the current row's number */
	struct input_bytes sum;  /* the current row's */
};

static void next_row(struct block_reader *b)
{
	if (b->rows == 0) {
		b->number = UINT64_MAX;
		return;
	}
	b->rows--;
	b->number += take_most(&b->in, UINT32_MAX - b->number);
	const uint64_t bytes = take_most(&b->in, (uint64_t)(b->in.end - b->in.p));
	b->sum = (struct input_bytes){ b->in.p, b->in.p + bytes, b->in.bad };
	b->in.p += bytes;
	b->rows = b->in.bad ? 0 : b->rows;
}

static bool open_block(const struct sums_section *s, unsigned k, size_t i, int64_t start, int64_t end,
                       struct block_reader *b)
{
	const uint8_t *r = s->level[k].record + RECORD_BYTES * i;
	const uint64_t size = fixed(r + 16, 8);
	const uint8_t *p = history_derived(s->h, fixed(r + 8, 8), size);
	*b = (struct block_reader){ { p, p ? p + size : NULL, !p || (int64_t)fixed(r, 8) != start }, start, end - start + 1,
		0, 0, { 0 } };
	b->rows = take(&b->in);
	next_row(b);
	return !b->in.bad;
}

/* Opens the largest blocks, at any level, that tile the blocks [from, to) at level 0. */
static struct block_reader *open_blocks(const struct sums_section *s, size_t from, size_t to, size_t *n)
{
	const size_t blocks = sums_blocks(s);
	struct block_reader *b = NULL;
	size_t cap = 0;
	bool sound = true;
	for (*n = 0; from < to && sound;) {
		unsigned k = 0;
		size_t size = 1, next = from + 1;
		while (k + 1 < s->levels && from % (size * SUMS_FAN_OUT) == 0) {
			const size_t end = from + size * SUMS_FAN_OUT < blocks ? from + size * SUMS_FAN_OUT : blocks;
			if (end > to)
				break;
			k++;
			size *= SUMS_FAN_OUT;
			next = end;
		}
		struct block_reader *added = ARRAY_PUSH(b, *n, cap);
		sound = open_block(s, k, from / size, sums_block_start(s, from), sums_block_start(s, next) - 1, added);
		from = next;
	}
	if (!sound)
		free(b);
	return sound ? b : NULL;
}

/* Reads a block's current row into `scratch`. */
static bool read_sum(const struct sums_section *s, struct block_reader *b, struct gap_sum *scratch)
{
	*scratch = (struct gap_sum){ .culprit = scratch->culprit, .length = scratch->length };
	take_sum(&b->sum, s, b->start, b->ns, scratch);
	return !b->sum.bad;
}

/* Reads a row's sum over all blocks. *found: it has one. Returns false if they are damaged. */
static bool read_row(const struct sums_section *s, struct block_reader *b, size_t n, uint32_t row, struct gap_sum *scratch,
                     struct gap_total *total, struct gap_sum *out, bool *found)
{
	static const struct gap_sum none;
	*found = false;
	for (size_t i = 0; i < n; i++) {
		while (b[i].number < row)
			next_row(&b[i]);
		const bool is_there = b[i].number == row;
		if (b[i].in.bad || (is_there && !read_sum(s, &b[i], scratch)))
			return false;
		*found |= is_there;
		if (n > 1)
			gap_total_append(total, is_there ? scratch : &none, b[i].ns, b[i].start);
	}
	if (*found && n > 1)
		gap_total_take(total, out);
	else if (*found)
		gap_sum_copy(out, scratch);
	else
		total->ns = 0;
	return true;
}

bool sums_read(const struct sums_section *s, size_t from, size_t to, const uint32_t *row, size_t rows,
               struct gap_block *out)
{
	struct gap_sum scratch = { .culprit = mem_new(s->culprits, sizeof *scratch.culprit),
		.length = mem_new(LENGTH_BUCKETS, sizeof *scratch.length) };
	struct gap_total total = { 0 };
	struct gap_sum sum;
	size_t n;
	struct block_reader *b = open_blocks(s, from, to, &n);
	bool sound = b != NULL, found;
	if (n > 1)
		gap_total_init(&total, s->culprits);
	for (size_t i = 0; i < rows && sound; i++) {
		sound = read_row(s, b, n, row[i], &scratch, &total, &sum, &found);
		if (found && sound)
			*ARRAY_PUSH(out->row, out->rows, out->cap) = (struct gap_block_row){ row[i], sum };
	}
	for (size_t i = 0; i < n && sound; i++) {
		const int64_t precision = (INT64_C(1) << place_shift(b[i].ns)) - 1;
		out->precision = precision > out->precision ? precision : out->precision;
		out->end = b[i].start + b[i].ns - 1;
	}
	gap_sum_release(&scratch);
	gap_total_release(&total);
	free(b);
	return sound;
}
