/* Why it was late: critical paths, and waits for locks.  A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_CAUSES_H
#define STEALSCOPE_QUERY_CAUSES_H

#include "query/query.h"

/* ---- Critical path ---------------------------------------------------------------------------------------------- */

/* How the path came to whoever a piece is about. */
#define PATH_EDGES(X) \
	X(EDGE_START, "start")      /* the subject */ \
	X(EDGE_WAKE, "wake")        /* woke the one before, as a thread */ \
	X(EDGE_IRQ, "irq")          /* an interrupt handler did */ \
	X(EDGE_INJECT, "inject")    /* woke the vCPU whose interrupt did, or is that vCPU, on its way back */ \
	X(EDGE_REQUEST, "request")  /* the guest that asked the one before for something */ \
	X(EDGE_IPI, "ipi")          /* another vCPU */
#define EDGE_CODE(code, name) code,
enum path_edge { PATH_EDGES(EDGE_CODE) PATH_EDGE_COUNT };
#undef EDGE_CODE
extern const char *const path_edge_name[PATH_EDGE_COUNT];
#define PATH_WAIT "wait"             /* FLOW_WAITING on a path: asleep, and the path ends here */

enum { PATH_PROVEN = -1, PATH_NO_EVIDENCE = -2 };

struct path_piece {
	int64_t start, end;          /* ns, closed */
	struct party who;            /* whose time it is; FLOW_WAITING: the timer or handler waited for */
	struct party thief;          /* who had its CPU: of FLOW_PREEMPTING and FLOW_IRQ; else system is -1 */
	uint8_t edge;                /* enum path_edge */
	int64_t evidence;            /* PATH_PROVEN, or ns between the two events taken for cause and effect, ... */
};

struct path_sum {
	struct party who, thief;
	int64_t duration;            /* ns */
	double share;
	uint64_t pieces;
};

struct path {
	int64_t start, end;          /* the window, cut to the life of the thread */
	struct path_piece *piece;    /* tiles it */
	size_t pieces;
	struct path_sum *sum;        /* longest first */
	size_t sums;
	int64_t unknown;             /* ns of it that end in nobody */
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* What made a thread or vCPU last from `from` to `to`: while it runs it itself, while it wants a CPU whoever has it, while
 * it sleeps what was done by whoever ended that sleep, in whatever machine, and so on.  What no event proves, or that
 * stands out as nearest to what it caused, is FLOW_UNKNOWN. */
struct inquiry *path_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                          struct error *err);  /* NULL: error */
void path_take(struct inquiry *q, struct path *out);
int path_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct path *out,
            struct error *err);
void path_release(struct path *p);

/* ---- Waits for locks -------------------------------------------------------------------------------------------- */

/* A thread waited for a lock, or a vCPU spun for something. */
struct lock_wait {
	struct party waiter;         /* tid -1: the vCPU's guest does not tell */
	int32_t vcpu;                /* of which only its exits tell: index into topo->cpu; else -1 */
	int64_t start, end;          /* ns, closed; within the window */
	uint32_t kind;               /* "mutex", "futex", ... or "pause": index into the names */
	struct party holder;         /* who had it, or is suspected; system -1: nobody knows */
	uint32_t suspects;           /* "104 or 105", where several are suspected alike and holder is nobody: a name, or 0 */
	struct party thief;          /* who kept the holder, or else the waiter, longest from its CPU; system -1: nobody */
	int64_t taken;               /* ns that the thief took from the holder, or from whom that waited for */
	int64_t own_taken;           /* ns that anybody took from the waiter itself: woken, or while it spun */
	bool spins;                  /* it did not sleep */
	double suspicion;            /* of a holder that no event names: the part of the wait in which it had no CPU; else 0 */
};

struct lock_list {
	struct lock_wait *wait;      /* longest first */
	size_t waits;
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* Of a thread (also of vCPUs that spin while they have it), a vCPU (as far as it spins), a machine, or all (NULL). */
struct inquiry *locks_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to);
void locks_take(struct inquiry *q, struct lock_list *out);
int locks_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct lock_list *out,
             struct error *err);
/* Has any event named a lock there? */
bool locks_are_named(const struct topo *topo, uint32_t machine);
void locks_release(struct lock_list *l);

#endif
