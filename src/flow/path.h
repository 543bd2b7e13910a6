/* A critical path as it is walked.  Private to flow/. */
#ifndef STEALSCOPE_FLOW_PATH_H
#define STEALSCOPE_FLOW_PATH_H

#include "flow/flow_private.h"
#include "flow/inquiry.h"
#include "flow/party.h"
#include "flow/raiser.h"

struct via {
	enum path_edge edge;
	int64_t evidence;
};

#define SUMS_RECENT 16

/* The pieces so far, added up by whose time it was and who took it. */
struct path_ledger {
	struct parties parties;
	struct map row;      /* numbers of both parties -> index into path->sum */
	size_t cap, last;    /* last: that of the last piece */
	size_t recent[SUMS_RECENT];  /* index + 1, by hash: a path alternates between few */
};

struct walker {
	struct inquiry q;
	const struct topo *topo;
	struct resolver r;
	struct path out;
	size_t cap;
	struct path_ledger ledger;
	struct subject whose;
	int64_t t;        /* where it goes on */
	int depth;
	struct who *waiter;  /* the thread whose sleep is being handed over, or NULL */
	struct raisers raisers;
	uint64_t asleep;  /* bits of the file's thread states that mean BLOCKED */
	struct error *err;
};

/* The sum that a piece belongs to: an index into path->sum. */
size_t path_sum_of(struct path_ledger *l, struct path *p, const struct path_piece *piece);

/* What the subject did from t on, and what was done for it, is added to the path: *end is where that ends, b at most. */
int path_piece(struct walker *w, const struct subject *s, int64_t t, int64_t b, struct via via, int64_t *end);

#endif
