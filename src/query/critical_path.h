/* A critical path as it is walked.  Private to query/. */
#ifndef STEALSCOPE_QUERY_CRITICAL_PATH_H
#define STEALSCOPE_QUERY_CRITICAL_PATH_H

#include "query/query_internal.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/irq_source.h"

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

extern const struct party path_nobody;

/* Who the subject is at t. */
int path_identity(struct walker *w, const struct subject *s, int64_t t, struct party *who);

/* The next piece of the path: one of its own, or more of the last one. */
int path_emit(struct walker *w, const struct path_piece *p);

/* The same for [a, b]: its own time, the wait for a handler of that name, or that nobody knows what the subject did. */
int path_emit_own(struct walker *w, int64_t a, int64_t b, const struct party *who, struct via via);
int path_emit_handler(struct walker *w, uint32_t machine, const char *name, int64_t a, int64_t b, struct via via);
int path_emit_unknown(struct walker *w, const struct subject *s, int64_t a, int64_t b);

/* The same for a part of the resolver's piece p: what the subject did, or who kept it from that. */
int path_emit_piece(struct walker *w, const struct subject *s, const struct piece *p, int64_t a, int64_t b,
                    struct via via);

/* What the subject did from t on, and what was done for it, is added to the path: *end is where that ends, b at most. */
int path_piece(struct walker *w, const struct subject *s, int64_t t, int64_t b, struct via via, int64_t *end);

#endif
