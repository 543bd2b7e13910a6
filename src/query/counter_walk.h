/* Instructions and cycles of rows, and of the time beside each sharer of their core. Private to query/. */
#pragma once

#include "query/culprit.h"
#include "query/query_internal.h"

struct counter_row { struct core_counts all, alone, shared; };

/* Counts of a row in the intervals in which another CPU of the core ran nothing but the sharer. */
struct counter_sharer {
	size_t row;
	struct actor actor;  /* its name is an id in walk->r.names */
	struct core_counts counts;
};

struct counter_walk {
	const struct catalog *catalog;
	const struct gap_rows *rows;
	int64_t from, to;
	struct resolver r;
	struct map row_index;        /* kind << 32 | index of a target -> 1 + index of its row */
	struct counter_row *row;     /* by index of rows->row */
	struct actors sharers;
	struct map pair;             /* row << 32 | index in sharers -> 1 + index in `sharer` */
	struct counter_sharer *sharer;
	size_t sharer_len, sharer_cap;
	struct neighbour { uint32_t actor; int64_t ns; } *neighbour;  /* users of the other CPUs in the current interval */
	size_t neighbours, neighbour_cap;
};

/* Sums the counts of all rows in a window. Linear in the CPUs' switches. Returns -1 on error. Release the walk also
 * then. */
int counter_walk_run(struct counter_walk *w, const struct catalog *catalog, const struct gap_rows *rows, int64_t from,
                     int64_t to, struct error *err);
void counter_walk_release(struct counter_walk *w);
void core_counts_add(struct core_counts *to, const struct core_counts *from);
