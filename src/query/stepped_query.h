/* Questions in steps, over a window that is shared out among the processors.  Private to query/.
 *
 * The window is cut into parts, each walked with cursors of its own (a history may be read by several threads), a step
 * goes on in all of them side by side, and when all are at their ends they are joined.  What comes out does not depend
 * on the steps or the parts. */
#ifndef STEALSCOPE_QUERY_STEPPED_QUERY_H
#define STEALSCOPE_QUERY_STEPPED_QUERY_H

#include "query/query.h"

#define PARTS_MAX 8

/* How long a part may work in this step. */
struct budget {
	int64_t until;        /* ns, monotonic; INT64_MAX: to the end */
	unsigned calls;
};

bool budget_over(const struct budget *b);
static inline bool budget_spent(struct budget *b)  /* at most one look at the clock in 64 calls */
{
	return b->until != INT64_MAX && ++b->calls % 64 == 0 && budget_over(b);
}

struct inquiry_kind {
	/* Goes on with part i in [part[i].from, part[i].to].  1 = it is done, 0 = the budget is spent, -1 = error. */
	int (*walk)(struct inquiry *q, size_t i, struct budget *b, struct error *err);
	/* When all parts are done.  1 = answered, 0 = they begin again, -1 = error. */
	int (*join)(struct inquiry *q, struct error *err);
	void (*close)(struct inquiry *q);  /* releases what the kind holds */
};

/* The first member of what a kind holds of a question. */
struct inquiry {
	const struct inquiry_kind *kind;
	const struct topo *topo;
	int64_t from, to;     /* from > to: nothing is asked for */
	size_t parts;
	bool answered;
	int64_t until;        /* of the step at work */
	struct inquiry_part {
		int64_t from, to;
		double done;      /* 0 .. 1 */
		bool at_end;
		struct error err;
	} part[PARTS_MAX];
};

/* `parts` 0: as many as the window is worth. */
void inquiry_init(struct inquiry *q, const struct inquiry_kind *kind, const struct topo *topo, int64_t from, int64_t to,
                  size_t parts);
size_t inquiry_parts(const struct inquiry *q);  /* as many as its window is worth */
void inquiry_restart(struct inquiry *q);  /* in join(): all parts from their beginnings */

/* Part i of n of [from, to]. */
void parts_cut(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end);

#endif
