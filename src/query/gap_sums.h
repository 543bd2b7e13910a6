/* Sums of the gaps of rows in a window: number, longest, histogram of lengths, time by culprit. Private to query/.
 *
 * Sums of adjacent windows are joined exactly: a gap that touches an edge is kept apart as `head` or `tail`, until the
 * window on the other side of the edge continues it. So is the culprit's interval at the edge. */
#pragma once

#include "query/query.h"

/* Interval of one culprit at an edge of the window; ns = 0: none; the length of the window if it fills that. */
struct edge_interval { uint32_t culprit; int64_t ns; };

/* Sums of one row. The gap at an edge is not in `gaps`, `longest` and `length`, the culprit's interval there not in its
 * `intervals` and `longest`. */
struct gap_sum {
	int64_t head, tail;      /* ns of the gap at the begin and at the end of the window, 0: none; the length of the window
	                          * if one gap fills it */
	struct edge_interval first, last;  /* within head and tail */
	uint64_t gaps;
	int64_t longest, longest_start;  /* ns, and its time; the first one if several are equal */
	struct culprit_ns *culprit;  /* ascending, of all gaps */
	struct length_count { uint32_t bucket, count; } *length;  /* ascending; see length_bucket() */
	uint32_t culprits, lengths;
};

/* Sums of all rows of a window with gaps there, ascending by row. */
struct gap_block {
	int64_t start, end;      /* ns, both included */
	int64_t precision;       /* see struct culprit_sums */
	struct gap_block_row { uint32_t row; struct gap_sum sum; } *row;
	size_t rows, cap;
};

/* Number of a row in blocks: CPUs as in the catalog, then threads. */
uint32_t gap_row_number(const struct catalog *catalog, const struct target *row);

/* Appends the sums of b, whose window follows that of a. Empties b. */
void gap_block_append(struct gap_block *a, struct gap_block *b);
/* The same for one row; a_ns, b_ns: lengths of the windows; b_start: begin of the second one. */
void gap_sum_append(struct gap_sum *a, int64_t a_ns, struct gap_sum *b, int64_t b_ns, int64_t b_start);
/* Ends the gaps at the edges of the window. */
void gap_sum_finish(struct gap_sum *s, int64_t start, int64_t end);
/* Adds the sums of another row in the same window, both finished. */
void gap_sum_add(struct gap_sum *s, const struct gap_sum *other);
/* Adds intervals that follow those of `to`: their number and the longest one. */
static inline void culprit_add_later(struct culprit_ns *to, uint32_t n, int64_t longest, int64_t start)
{
	to->intervals += n;
	if (longest > to->longest) {
		to->longest = longest;
		to->longest_start = start;
	}
}
/* Sorts the culprits of all rows after their numbers, all below n, were changed, and joins equal ones. */
void gap_block_sort_culprits(struct gap_block *b, size_t n);
void gap_sum_copy(struct gap_sum *to, const struct gap_sum *from);
void gap_sum_release(struct gap_sum *s);
void gap_block_release(struct gap_block *b);

/* Log-linear buckets: the lengths in a bucket differ by less than 1/64. */
#define LENGTH_BUCKETS 3776
uint32_t length_bucket(int64_t ns);
int64_t bucket_length(uint32_t bucket);  /* middle of the bucket: differs from its lengths by at most 1/128 */

/* Sums of one row in many adjacent windows: an entry for each culprit and bucket, so that each window is added at the cost
 * of its own sums. */
struct gap_total {
	struct gap_sum sum;
	int64_t ns;              /* length of the windows so far */
	uint64_t *has_culprit, has_length[LENGTH_BUCKETS / 64 + 1];  /* bit sets of the entries in use */
};
void gap_total_init(struct gap_total *t, uint32_t culprits);
void gap_total_append(struct gap_total *t, const struct gap_sum *b, int64_t b_ns, int64_t b_start);
void gap_total_take(struct gap_total *t, struct gap_sum *out);  /* moves the sums; the next ones begin */
void gap_total_release(struct gap_total *t);

/* Percentile of the lengths by nearest rank, ns; differs from the exact one by at most 1/128. 0 without gaps. */
int64_t gap_sum_percentile(const struct gap_sum *s, size_t percent);
