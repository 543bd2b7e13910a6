/* A target's lost time by cause, and the sentences on causes. Private to query/. */
#pragma once

#include "query/query_internal.h"

/* Cause that kept a victim from running. Threads with the same name on one machine are one cause; so are all threads in
 * another VM, or in another group than the victim's. */
enum cause_kind { CAUSE_THREAD, CAUSE_MACHINE, CAUSE_IRQ, CAUSE_OWN, CAUSE_VMM, CAUSE_LIMIT, CAUSE_IDLE_CPU, CAUSE_SLEEP,
	CAUSE_UNKNOWN };

/* Lost time by rank: time that others took comes first, then time that they may have taken. */
enum loss_rank { LOSS_OTHERS, LOSS_UNKNOWN, LOSS_SERVICE, LOSS_OWN, LOSS_RANKS };

struct cause {
	enum cause_kind kind;
	enum loss_rank rank;
	int32_t machine, tid;    /* CAUSE_THREAD and CAUSE_MACHINE: the thread that took most; -1: none */
	uint16_t reason;         /* CAUSE_LIMIT: enum out_reason */
	unsigned threads;        /* number of threads or causes merged into this one */
	const char *name;        /* the thread's or handler's raw name; borrowed; NULL: all the machine's threads */
	int64_t ns, most;        /* ns that it took; that its largest actor took */
	uint64_t intervals;
	struct cause_interval {  /* the longest one */
		struct target row;   /* vCPU or thread */
		struct actor actor;
		const char *name;    /* the actor's raw name; borrowed */
		int64_t start, end;  /* ns, closed */
	} longest;
};

struct cause_list {
	const struct catalog *catalog;
	struct target victim;
	struct cause *cause;     /* largest first, after causes_sort() */
	size_t len, cap;
	int64_t ns;              /* sum, ns */
	int64_t rank_ns[LOSS_RANKS];
};

/* Adds the time that an actor took from the list's victim; the names must outlive the list. */
void causes_add(struct cause_list *l, const struct cause_interval *longest, int64_t ns, uint64_t intervals);
/* Joins threads with equal names; joins all threads on a machine to one cause without a name if no name took most of their
 * time; sorts. */
void causes_sort(struct cause_list *l);
/* Returns how many other VMs or groups took most of the time together, if none took most of that alone; otherwise 0. *ns:
 * their time. */
unsigned causes_spread(const struct cause_list *l, int64_t *ns);
/* Returns a rank's first cause: a considerable pause or migration, otherwise the largest cause. NULL: none. */
const struct cause *causes_first(const struct cause_list *l, unsigned rank, int64_t wanted);
/* Returns the cause in the target's first finding; NULL: nothing delayed it. */
const struct cause *causes_main(const struct cause_list *l, int64_t wanted);
bool cause_is_event(const struct cause *c, int64_t wanted);  /* a pause or migration of some length */
void causes_release(struct cause_list *l);
/* Returns the process of a thread at t; -1: unknown. */
int64_t process_at(const struct catalog *catalog, uint32_t thread, int64_t t);

/* A delay through another thread: the target waited for the helper, which a culprit kept off its CPU. */
struct delay_chain {
	struct target target;
	struct actor self, helper, culprit;  /* self: the target. Their `name` is not set */
	int64_t ns;                     /* ns on the target's critical path; 0: there is no such delay */
	uint64_t intervals;
	bool inferred;                  /* most waits were inferred from the nearest events */
	int64_t start, end;             /* longest interval in which the culprit kept a helper off its CPU ... */
	struct actor at;                /* ... and that helper */
};

#define EXPLAINED_SLEEP 0.01   /* minimum share of the window that a named thread slept, for its critical path */

/* The critical path of a named thread, and the largest delay on it. */
struct sleep_path {
	struct path path;
	struct delay_chain chain;
};

static inline bool same_thread(const struct actor *a, const struct actor *b)
{
	return a->machine == b->machine && a->tid == b->tid;
}

/* Returns true for the activity of another thread than self, the path's target. */
bool path_is_helper(const struct actor *self, const struct actor *actor);
/* Finds the culprit that delayed the helpers on a path most. */
void chain_find(const struct catalog *catalog, const struct target *target, const struct path *p,
                struct delay_chain *out);

/* ---- Sentences ------------------------------------------------------------------------------------------------------ */

double share_of(int64_t ns, int64_t whole);

/* Writes the finding on one cause. wanted: the target's ran + lost, ns. */
void finding_of_cause(struct finding *out, const struct cause_list *l, const struct cause *c, int64_t wanted);
/* Writes the finding on all causes that have the rank of its first cause, c: on c, or on many culprits or VMs if none took
 * most. */
void finding_of_rank(struct finding *out, const struct cause_list *l, const struct cause *c, int64_t wanted);
void finding_of_chain(struct finding *out, const struct catalog *catalog, const struct delay_chain *chain, int64_t life);
void finding_of_locks(struct finding *out, int64_t ns, int64_t waits);  /* adds a clause on lock waits */
void finding_add(struct finding *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the moment's command. */
void finding_set_command(struct finding *out, const struct catalog *catalog);
