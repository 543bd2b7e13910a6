#include "query/gap_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "base/number.h"

#define LINEAR_BITS 6                    /* a power of two has 2^6 buckets */
#define LINEAR (INT64_C(1) << LINEAR_BITS)

uint32_t gap_row_number(const struct catalog *catalog, const struct target *row)
{
	return row->kind == TARGET_CPU ? row->index : catalog->cpus + row->index;
}

/* ---- Histogram ------------------------------------------------------------------------------------------------- --- */

uint32_t length_bucket(int64_t ns)
{
	if (ns < LINEAR)
		return ns > 0 ? (uint32_t)ns : 0;
	const int power = 63 - __builtin_clzll((uint64_t)ns);
	return (uint32_t)((power - LINEAR_BITS + 1) * LINEAR + ((ns >> (power - LINEAR_BITS)) & (LINEAR - 1)));
}

int64_t bucket_length(uint32_t bucket)
{
	if (bucket < LINEAR)
		return bucket;
	const unsigned shift = bucket / LINEAR - 1;
	const int64_t low = (LINEAR + bucket % LINEAR) << shift;
	return low + (INT64_C(1) << shift) / 2;
}

int64_t gap_sum_percentile(const struct gap_sum *s, size_t percent)
{
	uint64_t rank = s->gaps ? percentile_index(s->gaps, percent) : 0;
	if (s->gaps == 0 || rank + 1 == s->gaps)
		return s->longest;
	uint32_t i = 0;
	for (; i + 1 < s->lengths && rank >= s->length[i].count; i++)
		rank -= s->length[i].count;
	return min64(bucket_length(s->length[i].bucket), s->longest);
}

/* ---- Sums of a row --------------------------------------------------------------------------------------------- --- */

/* Adds intervals of any time. */
static inline void add_intervals(struct culprit_ns *to, uint32_t n, int64_t longest, int64_t start)
{
	culprit_add_later(to, n, longest, start);
	if (longest == to->longest && start < to->longest_start)
		to->longest_start = start;
}

static inline void culprit_join(struct culprit_ns *to, const struct culprit_ns *from)
{
	to->ns += from->ns;
	add_intervals(to, from->intervals, from->longest, from->longest_start);
}

static inline void length_join(struct length_count *to, const struct length_count *from)
{
	to->count += from->count;
}

/* Joins two sorted arrays without double entries: entries with equal keys are joined. */
#define JOIN_SORTED(type, a, n_a, b, n_b, key, join) \
	do { \
		type *joined = mem_new((n_a) + (n_b), sizeof *joined); \
		uint32_t n = 0, i = 0, k = 0; \
		while (i < (n_a) || k < (n_b)) { \
			const bool from_a = i < (n_a) && (k == (n_b) || (a)[i].key <= (b)[k].key); \
			const type *next = from_a ? &(a)[i++] : &(b)[k++]; \
			if (n && joined[n - 1].key == next->key) \
				join(&joined[n - 1], next); \
			else \
				joined[n++] = *next; \
		} \
		free(a); \
		(a) = joined; \
		(n_a) = n; \
	} while (0)

static void add_culprits(struct gap_sum *a, const struct gap_sum *b)
{
	if (b->culprits)
		JOIN_SORTED(struct culprit_ns, a->culprit, a->culprits, b->culprit, b->culprits, culprit, culprit_join);
}

static void add_lengths(struct gap_sum *a, const struct gap_sum *b)
{
	if (b->lengths)
		JOIN_SORTED(struct length_count, a->length, a->lengths, b->length, b->lengths, bucket, length_join);
}

static void set_longest(struct gap_sum *s, int64_t ns, int64_t start)
{
	if (ns > s->longest || (ns == s->longest && start < s->longest_start)) {
		s->longest = ns;
		s->longest_start = start;
	}
}

static void add_gap(struct gap_sum *s, int64_t ns, int64_t start)
{
	struct length_count one = { length_bucket(ns), 1 };
	size_t at = 0;
	BISECT(at, s->lengths, s->length[at].bucket < one.bucket);
	if (at < s->lengths && s->length[at].bucket == one.bucket)
		s->length[at].count++;
	else
		add_lengths(s, &(struct gap_sum){ .length = &one, .lengths = 1 });
	set_longest(s, ns, start);
	s->gaps++;
}

static void add_gaps(struct gap_sum *s, const struct gap_sum *other)
{
	if (other->gaps)
		set_longest(s, other->longest, other->longest_start);
	s->gaps += other->gaps;
}

void gap_sum_add(struct gap_sum *s, const struct gap_sum *other)
{
	add_culprits(s, other);
	add_lengths(s, other);
	add_gaps(s, other);
}

/* Counts an interval that no longer touches an edge. */
static void add_interval(struct gap_sum *s, const struct edge_interval *e, int64_t start)
{
	size_t at = 0;
	BISECT(at, s->culprits, s->culprit[at].culprit < e->culprit);
	if (at < s->culprits && s->culprit[at].culprit == e->culprit)
		add_intervals(&s->culprit[at], 1, e->ns, start);
}

/* Joins the intervals at the edge between two windows. */
static void join_edges(struct gap_sum *a, int64_t a_ns, const struct gap_sum *b, int64_t b_ns, int64_t b_start)
{
	const bool a_full = a->first.ns == a_ns, b_full = b->first.ns == b_ns;
	const struct edge_interval last = a->last;
	if (a_ns == 0) {
		a->first = b->first;
		a->last = b->last;
		return;
	}
	if (last.ns && b->first.ns && last.culprit == b->first.culprit) {
		const struct edge_interval joined = { last.culprit, last.ns + b->first.ns };
		if (!a_full && !b_full)
			add_interval(a, &joined, b_start - last.ns);
		a->first = a_full ? joined : a->first;
		a->last = b_full ? joined : b->last;
		return;
	}
	if (last.ns && !a_full)
		add_interval(a, &last, b_start - last.ns);
	if (b->first.ns && !b_full)
		add_interval(a, &b->first, b_start);
	a->last = b->last;
}

/* Joins the gaps at the edge between two windows, whose sums were added before. Returns the length of the gap that ends
 * there, 0: none. */
static int64_t join_at_edge(struct gap_sum *a, int64_t a_ns, const struct gap_sum *b, int64_t b_ns, int64_t b_start)
{
	const bool a_full = a->head == a_ns, b_full = b->head == b_ns;
	const int64_t joined = a_full || b_full ? 0 : a->tail + b->head;
	join_edges(a, a_ns, b, b_ns, b_start);
	if (joined)
		add_gap(a, joined, b_start - a->tail);
	a->head = a_full ? a_ns + b->head : a->head;
	a->tail = b_full ? a->tail + b_ns : b->tail;
	return joined;
}

void gap_sum_append(struct gap_sum *a, int64_t a_ns, struct gap_sum *b, int64_t b_ns, int64_t b_start)
{
	gap_sum_add(a, b);
	join_at_edge(a, a_ns, b, b_ns, b_start);
}

void gap_sum_finish(struct gap_sum *s, int64_t start, int64_t end)
{
	const bool full = s->head == end - start + 1, one = s->first.ns == end - start + 1;
	if (s->head) {
		add_gap(s, s->head, start);
		add_interval(s, &s->first, start);
	}
	if (s->tail && !full)
		add_gap(s, s->tail, end + 1 - s->tail);
	if (s->tail && !one)
		add_interval(s, &s->last, end + 1 - s->last.ns);
	s->head = s->tail = s->first.ns = s->last.ns = 0;
}

void gap_sum_copy(struct gap_sum *to, const struct gap_sum *from)
{
	*to = *from;
	to->culprit = mem_new(to->culprits, sizeof *to->culprit);
	to->length = mem_new(to->lengths, sizeof *to->length);
	if (to->culprits)
		memcpy(to->culprit, from->culprit, to->culprits * sizeof *to->culprit);
	if (to->lengths)
		memcpy(to->length, from->length, to->lengths * sizeof *to->length);
}

void gap_sum_release(struct gap_sum *s)
{
	free(s->culprit);
	free(s->length);
	*s = (struct gap_sum){ 0 };
}

/* ---- Sum of many windows ---------------------------------------------------------------------------------------- --- */

static inline void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= UINT64_C(1) << i % 64;
}

void gap_total_init(struct gap_total *t, uint32_t culprits)
{
	*t = (struct gap_total){ .sum = { .culprits = culprits, .lengths = LENGTH_BUCKETS } };
	t->sum.culprit = mem_new(culprits, sizeof *t->sum.culprit);
	t->sum.length = mem_new(LENGTH_BUCKETS, sizeof *t->sum.length);
	t->has_culprit = mem_new(culprits / 64 + 1, sizeof *t->has_culprit);
	for (uint32_t i = 0; i < culprits; i++)
		t->sum.culprit[i].culprit = i;
	for (uint32_t i = 0; i < LENGTH_BUCKETS; i++)
		t->sum.length[i].bucket = i;
}

void gap_total_append(struct gap_total *t, const struct gap_sum *b, int64_t b_ns, int64_t b_start)
{
	struct gap_sum *a = &t->sum;
	for (uint32_t i = 0; i < b->culprits; i++) {
		set_bit(t->has_culprit, b->culprit[i].culprit);
		culprit_join(&a->culprit[b->culprit[i].culprit], &b->culprit[i]);
	}
	for (uint32_t i = 0; i < b->lengths; i++) {
		set_bit(t->has_length, b->length[i].bucket);
		a->length[b->length[i].bucket].count += b->length[i].count;
	}
	add_gaps(a, b);
	const int64_t joined = join_at_edge(a, t->ns, b, b_ns, b_start);
	if (joined)
		set_bit(t->has_length, length_bucket(joined));
	t->ns += b_ns;
}

/* Moves the entries of a bit set to a new array, and clears them. */
#define TAKE_ENTRIES(to, n_to, from, key, bits, n_bits) \
	do { \
		uint32_t n = 0; \
		for (size_t word = 0; word <= (n_bits) / 64; word++) \
			n += (uint32_t)__builtin_popcountll((bits)[word]); \
		(to) = mem_new(n, sizeof *(to)); \
		for (uint32_t word = 0; word <= (n_bits) / 64; (bits)[word++] = 0) \
			for (uint64_t rest = (bits)[word]; rest; rest &= rest - 1) { \
				const uint32_t i = 64 * word + (uint32_t)__builtin_ctzll(rest); \
				(to)[(n_to)++] = (from)[i]; \
				memset(&(from)[i], 0, sizeof *(from)); \
				(from)[i].key = i; \
			} \
	} while (0)

void gap_total_take(struct gap_total *t, struct gap_sum *out)
{
	struct gap_sum *a = &t->sum;
	*out = *a;
	out->culprits = out->lengths = 0;
	TAKE_ENTRIES(out->culprit, out->culprits, a->culprit, culprit, t->has_culprit, a->culprits);
	TAKE_ENTRIES(out->length, out->lengths, a->length, bucket, t->has_length, a->lengths);
	*a = (struct gap_sum){ .culprit = a->culprit, .length = a->length, .culprits = a->culprits, .lengths = a->lengths };
	t->ns = 0;
}

void gap_total_release(struct gap_total *t)
{
	gap_sum_release(&t->sum);
	free(t->has_culprit);
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------- --- */

void gap_block_release(struct gap_block *b)
{
	for (size_t i = 0; i < b->rows; i++)
		gap_sum_release(&b->row[i].sum);
	free(b->row);
	*b = (struct gap_block){ 0 };
}

/* Lists the sums of all rows by culprit, and moves them to their rows in this order. */
void gap_block_sort_culprits(struct gap_block *b, size_t n)
{
	size_t *end = mem_new(n + 1, sizeof *end), sums = 0;  /* by culprit: end of its sums in the list */
	for (size_t i = 0; i < b->rows; i++)
		for (uint32_t k = 0; k < b->row[i].sum.culprits; k++)
			end[b->row[i].sum.culprit[k].culprit + 1]++;
	for (size_t i = 0; i < n; i++)
		sums = end[i + 1] += end[i];
	struct { size_t row; struct culprit_ns sum; } *list = mem_new(sums, sizeof *list);
	for (size_t i = 0; i < b->rows; i++) {
		struct gap_sum *s = &b->row[i].sum;
		for (uint32_t k = 0; k < s->culprits; k++) {
			const size_t at = end[s->culprit[k].culprit]++;
			list[at].row = i;
			list[at].sum = s->culprit[k];
		}
		s->culprits = 0;
	}
	for (size_t i = 0; i < sums; i++) {
		struct gap_sum *s = &b->row[list[i].row].sum;
		if (s->culprits && s->culprit[s->culprits - 1].culprit == list[i].sum.culprit)
			culprit_join(&s->culprit[s->culprits - 1], &list[i].sum);
		else
			s->culprit[s->culprits++] = list[i].sum;
	}
	free(list);
	free(end);
}

void gap_block_append(struct gap_block *a, struct gap_block *b)
{
	const int64_t a_ns = a->end - a->start + 1, b_ns = b->end - b->start + 1;
	struct gap_block_row *row = mem_new(a->rows + b->rows, sizeof *row);
	size_t n = 0, i = 0, k = 0;
	while (i < a->rows || k < b->rows) {
		const bool in_a = i < a->rows && (k == b->rows || a->row[i].row <= b->row[k].row);
		const bool in_b = k < b->rows && (i == a->rows || b->row[k].row <= a->row[i].row);
		struct gap_sum empty = { 0 }, *next = in_b ? &b->row[k].sum : &empty;
		row[n] = in_a ? a->row[i] : (struct gap_block_row){ .row = b->row[k].row };
		gap_sum_append(&row[n++].sum, a_ns, next, b_ns, b->start);
		i += in_a;
		k += in_b;
	}
	free(a->row);
	a->row = row;
	a->rows = a->cap = n;
	a->end = b->end;
	a->precision = a->precision > b->precision ? a->precision : b->precision;
	gap_block_release(b);
}
