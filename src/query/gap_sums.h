/* Gap sums by row in a window: number, longest, histogram by length, time by culprit. Private to query/.
 *
 * Adjacent windows' sums are joined exactly: a gap that touches an edge is kept apart as `head` or `tail`, until the window
 * on the edge's other side continues it. So is the culprit's interval at the edge. */
#pragma once

#include "query/query.h"

/* One culprit's interval at the window's edge; ns: 0: none; the window's length if it fills the window. */
struct edge_interval { uint32_t culprit; int64_t ns; };

/* One row's sums. The gap at an edge is not in `gaps`, `longest` and `length`, the culprit's interval there not in its
 * `intervals` and `longest`. */
struct gap_sum {
	int64_t head, tail;      /* the gap at the window's begin, at its end, ns; 0: none; the window's length if one gap
	                          * fills it */
	struct edge_interval first, last;  /* within head and tail */
	uint64_t gaps;
	int64_t longest, longest_start;  /* ns, and its time; the first one if several are equal */
	struct culprit_ns *culprit;  /* ascending, for all gaps */
	struct length_count { uint32_t bucket, count; } *length;  /* ascending; see length_bucket() */
	uint32_t culprits, lengths;
};

/* The sums for all rows that have gaps in a window, ascending by row. */
struct gap_block {
	int64_t start, end;      /* ns, both included */
	int64_t precision;       /* see struct culprit_sums */
	struct gap_block_row { uint32_t row; struct gap_sum sum; } *row;
	size_t rows, cap;
};

/* Returns a row's number in blocks: CPUs as in the catalog, then threads. */
uint32_t gap_row_number(const struct catalog *catalog, const struct target *row);

/* Appends b's sums; its window follows a's. Empties b. */
void gap_block_append(struct gap_block *a, struct gap_block *b);
/* The same for one row; a_ns, b_ns: the windows' lengths; b_start: when the second one begins. */
void gap_sum_append(struct gap_sum *a, int64_t a_ns, struct gap_sum *b, int64_t b_ns, int64_t b_start);
/* Ends the gaps at the window's edges. */
void gap_sum_finish(struct gap_sum *s, int64_t start, int64_t end);
/* Adds another row's sums in the same window, both finished. */
void gap_sum_add(struct gap_sum *s, const struct gap_sum *other);
/* Adds intervals that follow those in `to`: their number and the longest one. */
static inline void culprit_add_later(struct culprit_ns *to, uint32_t n, int64_t longest, int64_t start)
{
	to->intervals += n;
	if (longest > to->longest) {
		to->longest = longest;
		to->longest_start = start;
	}
}
/* Sorts all rows' culprits after their numbers, all below n, were changed, and joins equal ones. */
void gap_block_sort_culprits(struct gap_block *b, size_t n);
void gap_sum_copy(struct gap_sum *to, const struct gap_sum *from);
void gap_sum_release(struct gap_sum *s);
void gap_block_release(struct gap_block *b);

/* Log-linear buckets: the lengths in a bucket differ by less than 1/64. */
#define LENGTH_BUCKETS 3776
uint32_t length_bucket(int64_t ns);
int64_t bucket_length(uint32_t bucket);  /* the bucket's middle: differs from its lengths by at most 1/128 */

/* One row's sums in many adjacent windows: an entry for each culprit and bucket, so that to add a window costs only its own
 * sums. */
struct gap_total {
	struct gap_sum sum;
	int64_t ns;              /* the windows' length so far */
	uint64_t *has_culprit, has_length[LENGTH_BUCKETS / 64 + 1];  /* bit sets: entries in use */
};
void gap_total_init(struct gap_total *t, uint32_t culprits);
void gap_total_append(struct gap_total *t, const struct gap_sum *b, int64_t b_ns, int64_t b_start);
void gap_total_take(struct gap_total *t, struct gap_sum *out);  /* moves the sums; the next ones begin */
void gap_total_release(struct gap_total *t);

/* Returns a percentile over the lengths by nearest rank, ns; at most 1/128 off the exact one. 0 without gaps. */
int64_t gap_sum_percentile(const struct gap_sum *s, size_t percent);
