/* Causes of delays: critical paths and lock waits. A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_CAUSES_H
#define STEALSCOPE_QUERY_CAUSES_H

#include "query/query.h"

/* ---- Critical path ---------------------------------------------------------------------------------------------- */

/* Relation between the actor of an interval and the actor of the following interval. */
#define PATH_EDGES(X) \
	X(EDGE_START, "start")      /* the actor is the target */ \
	X(EDGE_WAKE, "wake")        /* a thread that woke the next actor */ \
	X(EDGE_IRQ, "irq")          /* an interrupt handler that woke the next actor */ \
	X(EDGE_INJECT, "inject")    /* the vCPU that received the interrupt which woke the next actor, or its waker */ \
	X(EDGE_REQUEST, "request")  /* a guest that requested something from the next actor */ \
	X(EDGE_IPI, "ipi")          /* another vCPU that sent an inter-processor interrupt */
#define EDGE_CODE(code, name) code,
enum path_edge { PATH_EDGES(EDGE_CODE) PATH_EDGE_COUNT };
#undef EDGE_CODE
extern const char *const path_edge_name[PATH_EDGE_COUNT];
#define PATH_WAIT "wait"             /* kind in csv and json for FLOW_WAITING on a path: the actor sleeps, and the search
                                      * for causes ends here */

enum { PATH_PROVEN = -1, PATH_NO_EVIDENCE = -2 };

struct path_interval {
	int64_t start, end;          /* ns, closed */
	struct actor actor;            /* actor to which the time is attributed; FLOW_WAITING: the timer or handler that it
	                                * waited for */
	struct actor culprit;          /* FLOW_PREEMPTING and FLOW_IRQ: actor that had the CPU; other kinds: machine is -1 */
	uint8_t edge;                /* enum path_edge */
	int64_t evidence;            /* PATH_PROVEN, PATH_NO_EVIDENCE, or ns between the two events that were taken for cause
	                              * and effect */
};

struct path_sum {
	struct actor actor, culprit;
	int64_t duration;            /* ns */
	double share;
	uint64_t intervals;
};

struct path {
	int64_t start, end;          /* the window, cut to the lifetime of the target */
	struct path_interval *interval;    /* tiles the window */
	size_t intervals;
	struct path_sum *sum;        /* longest first */
	size_t sums;
	int64_t unknown;             /* ns of the window without a known actor */
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for the causes of the time that a thread or vCPU took from `from` to `to`. While the target runs, the
 * cause is the target; while it waits for a CPU, the culprit that has the CPU; while it sleeps, the activity of its
 * waker, in any machine, recursively. FLOW_UNKNOWN: no event proves the cause, and no event is close enough to infer it.
 * Returns NULL on error. */
struct query *path_open(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to,
                        struct error *err);  /* NULL: error */
void path_take(struct query *q, struct path *out);
int path_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, struct path *out,
            struct error *err);
void path_release(struct path *p);

/* ---- Lock waits ------------------------------------------------------------------------------------------------- */

/* A wait of a thread for a lock, or the spinning of a vCPU. */
struct lock_wait {
	struct actor waiter;         /* tid -1: unknown, the vCPU's guest has no trace */
	int32_t vcpu;                /* vCPU that spins, if only VM exits show the wait: index into catalog->cpu; -1: lock
	                              * events show the wait */
	int64_t start, end;          /* ns, closed; within the window */
	uint32_t kind;               /* "mutex", "futex", ... or "pause" (spinning): index into the names */
	struct actor holder;         /* owner of the lock, or the suspected owner; machine -1: unknown */
	uint32_t suspects;           /* name of the candidates, "104 or 105", if several holders are equally likely and
	                              * `holder` is unset; otherwise 0 */
	struct actor culprit;          /* actor that kept the holder off the CPU longest, or the waiter if the holder lost
	                                * nothing; machine -1: none */
	int64_t culprit_ns;               /* ns that the culprit took from the holder, or from the thread that the holder
	                                   * waited for */
	int64_t waiter_lost_ns;           /* ns that the waiter itself lost: after its wakeup, or while it spun */
	bool spins;                  /* spinning, not asleep */
	double suspicion;            /* if no event names the holder: share of the wait in which the suspect had no CPU;
	                              * otherwise 0 */
};

struct lock_list {
	struct lock_wait *wait;      /* longest first */
	size_t waits;
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for the lock waits of a thread (and of vCPUs that spin while the thread is current), a vCPU (spinning
 * only), a machine, or all machines (NULL). */
struct query *locks_open(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to);
void locks_take(struct query *q, struct lock_list *out);
int locks_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, struct lock_list *out,
             struct error *err);
/* Returns true if the history contains lock events of the machine. */
bool locks_have_events(const struct catalog *catalog, uint32_t machine);
void locks_release(struct lock_list *l);

#endif
