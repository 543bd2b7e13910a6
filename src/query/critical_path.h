/* State of the search for a critical path. Private to query/. */
#pragma once

#include "query/query_internal.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/irq_source.h"

struct path_link {
	enum path_edge edge;
	int64_t evidence;
};

#define SUMS_RECENT 16

/* Sums of the intervals found until now, by actor and culprit. */
struct path_ledger {
	struct actors actors;
	struct map row;      /* (number of the actor, number of the culprit) -> index into path->sum */
	size_t cap, last;    /* last: index of the sum of the latest interval */
	size_t recent[SUMS_RECENT];  /* index into path->sum + 1, by hash: a path alternates between few sums; 0: free */
};

struct path_walker {
	struct query q;
	const struct catalog *catalog;
	struct resolver r;
	struct path out;
	size_t cap;
	struct path_ledger ledger;
	struct target target;
	int64_t t;        /* start of the next interval, ns */
	int depth;
	struct thread_ref *waiter;  /* sleeper to whose waker the current time is attributed; NULL: none */
	struct irq_sources irq_sources;
	uint64_t asleep;  /* states of threads that mean BLOCKED: bit n = state number n of the history */
	struct error *err;
};

/* Returns the index into path->sum of the sum to which the interval belongs; adds the sum if it is new. */
size_t path_sum_of(struct path_ledger *l, struct path *p, const struct path_interval *interval);

extern const struct actor path_no_actor;

/* Fills *who with the actor that stands for the target at t (its machine, TID and name). */
int path_identity(struct path_walker *w, const struct target *target, int64_t t, struct actor *actor);

/* Appends an interval to the path, or extends the last one. */
int path_emit(struct path_walker *w, const struct path_interval *interval);

/* The path_emit_*() functions append [a, b] as: time of the actor itself; wait for the handler of that name; unknown. */
int path_emit_own(struct path_walker *w, int64_t a, int64_t b, const struct actor *actor, struct path_link via);
int path_emit_handler(struct path_walker *w, uint32_t machine, const char *name, int64_t a, int64_t b,
                      struct path_link via);
int path_emit_unknown(struct path_walker *w, const struct target *target, int64_t a, int64_t b);

/* Appends [a, b] according to the resolution p: the target's own activity, or the actor that kept it from running. */
int path_emit_resolution(struct path_walker *w, const struct target *target, const struct resolution *p, int64_t a,
                         int64_t b, struct path_link via);

/* Appends the target's activity, or the causes of its wait, from t up to *end, which is at most b. */
int path_append(struct path_walker *w, const struct target *target, int64_t t, int64_t b, struct path_link via,
                int64_t *end);
