/* Sums of gaps by culprit in a window, for the queries that need them. Private to query/.
 *
 * The blocks of the history (sums_section.h) give the sums of the whole blocks in the window; sweeps (steal_sweep.h) give
 * those of the parts before and after them. Without blocks (damage, other rules, rows that have none), sweeps give all.
 * The catalog keeps the sums of the latest windows, so that several questions about a window compute them once. */
#pragma once

#include "query/steal_sweep.h"
#include "query/stepped_query.h"

/* Sums of a window, of the rows that questions asked for. */
struct window_store {
	struct window_store *next;
	int64_t from, to;
	struct actors actors;      /* culprits; their names are numbers of `names` */
	struct strtab names;
	bool *has;                 /* by row number: its sums are known */
	struct gap_block sums;     /* of rows with gaps, finished: gaps at the edges are cut there */
};

struct window_gaps {
	const struct gap_rows *rows;
	struct window_store *store;  /* taken from the catalog */
	struct gap_rows missing;   /* rows without sums in the store */
	uint32_t *number;          /* their numbers, ascending */
	bool planned, swept;
	struct gap_block blocks;   /* sums of the whole blocks; start > end: none */
	struct window_part {
		struct sweep sweep;
		bool open;
		struct gap_block sums;
		int64_t from, to;
	} part[PARTS_MAX];
	size_t parts;
	struct gap_block sums;     /* of the missing rows */
};

/* Rows without repetition; borrowed. The query has one part. */
void window_gaps_init(struct window_gaps *w, const struct gap_rows *rows);
/* For struct query_kind: */
int window_gaps_walk(struct window_gaps *w, struct query *q, size_t i, struct budget *budget, struct error *err);
int window_gaps_join(struct window_gaps *w, struct query *q);
/* Returns the sums of a row; without gaps, empty ones. */
const struct gap_sum *window_gaps_of(const struct window_gaps *w, const struct catalog *catalog, const struct target *row);
/* Gives the sums back to the catalog: at the end of join(), so that the next question finds them. */
void window_gaps_release(struct window_gaps *w, const struct catalog *catalog);

struct window_stores *window_stores_new(void);
void window_stores_free(struct window_stores *s);  /* NULL is allowed */

/* Puts the culprits of a sweep into *actors and *names, and their numbers there into the sums of a block. */
void culprits_renumber(const struct sweep *sweep, struct gap_block *block, struct actors *actors, struct strtab *names);

/* Rows with sums in histories: the vCPUs of all VMs, all threads that execute no vCPU (see gap_is_own_thread()). */
void sums_rows_list(struct gap_rows *rows, const struct catalog *catalog);
