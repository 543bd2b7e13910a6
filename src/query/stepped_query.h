/* Runs queries in steps, over a window that is divided among the processors. Private to query/.
 *
 * The window is divided into parts. Each part has cursors of its own (several threads may read a history). A step
 * continues all parts in parallel. When all parts have reached their ends, they are joined. The answer depends neither
 * on the steps nor on the parts. */
#pragma once

#include <stddef.h>

#include "query/query.h"

#define PARTS_MAX 8

/* Time limit of a part in the current step. */
struct budget {
	int64_t until;        /* end, ns, monotonic; INT64_MAX: no limit */
	unsigned calls;
};

bool budget_over(const struct budget *b);
static inline bool budget_spent(struct budget *b)  /* reads the clock in one of 64 calls */
{
	return b->until != INT64_MAX && ++b->calls % 64 == 0 && budget_over(b);
}

struct query_kind {
	/* Continues part i in [part[i].from, part[i].to]. Returns 1 at the part's end, 0 if the budget is spent, -1 on
	 * error. */
	int (*walk)(struct query *q, size_t i, struct budget *b, struct error *err);
	/* Called when all parts are done. Returns 1 if the answer is ready, 0 if the parts must run again, -1 on error. */
	int (*join)(struct query *q, struct error *err);
	void (*close)(struct query *q);  /* releases the members that this kind of query adds, and an answer not taken */
	size_t answer, answer_bytes;     /* place of the answer in the query's struct, and its size: ANSWER(type, member) */
};

#define ANSWER(type, member) offsetof(type, member), sizeof((type *)0)->member

/* Common state of a query; the first member of the struct of each kind. */
struct query {
	const struct query_kind *kind;
	const struct catalog *catalog;
	int64_t from, to;     /* window, ns; from > to: empty */
	size_t parts;
	bool answered;
	int64_t until;        /* end of the current step, ns, monotonic clock */
	struct query_part {
		int64_t from, to;
		double done;      /* progress, 0 .. 1 */
		bool at_end;
		struct error err;
	} part[PARTS_MAX];
};

/* The window is cut to the history. parts: part count; 0: query_parts(). */
void query_init(struct query *q, const struct query_kind *kind, const struct catalog *catalog, int64_t from, int64_t to,
                size_t parts);
size_t query_parts(const struct query *q);  /* returns the part count, by the length of the window and the number of
                                             * processors */
/* query_step() until a time of the monotonic clock; for queries that run another one. */
int query_step_until(struct query *q, int64_t until, struct error *err);
void query_restart(struct query *q);  /* lets all parts start again; for join() */

/* Computes the bounds of part i of n of [from, to]. */
void part_bounds(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end);
