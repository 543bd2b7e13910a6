/* Who has the CPU that a thread or vCPU wants, walked along time.  Private to flow/.
 *
 * A resolver holds one cursor (a "track") per attribute that it has touched.  A step asks every track concerned for
 * its value at t; the answer holds until the first of these values ends.  Time moves forwards, so every interval is
 * decoded once: cost is linear in the intervals touched, with O(log n) jumps over stretches that nobody asks about.
 * Going back in time is allowed and costs a seek.  Memory: one track per attribute in use; thread tracks are
 * dropped together when there are THREADS_KEPT of them. */
#ifndef STEALSCOPE_FLOW_RESOLVE_H
#define STEALSCOPE_FLOW_RESOLVE_H

#include "base/map.h"
#include "base/strtab.h"
#include "flow/flow.h"

struct track {
	struct history_cursor cursor;
	struct interval iv;  /* the one that holds the moment last asked for; start > end before the first */
	struct interval *ahead;  /* read behind it: ahead[at .. n - 1] of room for `room` */
	unsigned at, n, room;
	uint32_t attr;
};

#define CURRENT_KEPT 16

struct cpu_tracks {
	struct track status, running, interrupt, host_thread, pcpu;
	uint32_t name;       /* "vCPU0" or "CPU0", id in resolver->names */
	/* The last answers, since they seldom change: the CPU below by number, threads by TID. */
	int64_t below_number;
	int below;
	int64_t host_tid;
	struct who *host_who;
	struct who *current[CURRENT_KEPT];  /* threads that it had, by TID modulo */
};

/* A TID of a machine; host threads that belong to a container stand for the container's thread. */
struct who {
	int32_t thread;      /* index into topo->thread, or -1: the history has no such thread */
	int32_t machine, tid;
	struct track name;
	struct track *own;   /* status, cpu, waker: only of threads that were asked for them */
};
enum { OWN_STATUS, OWN_CPU, OWN_WAKER, OWN_TRACKS };

struct resolver {
	const struct topo *topo;
	int64_t t0, t1;            /* time that will be asked for, mostly */
	int64_t until;             /* the answer to the current step holds up to here */
	bool shallow;              /* machines only: no guest threads, no names */
	struct cpu_tracks **cpu;   /* per CPU of topo, made when asked for */
	struct map who_by_tid;     /* machine << 32 | tid -> index into who */
	struct who **who;
	size_t whos, who_cap;
	struct strtab names;
	uint32_t swapper, not_alive;  /* ids in names */
	struct map name_by_string; /* string id of the history -> id in names */
	struct map waker_by_string;  /* string id of the history -> machine << 32 | tid, + 1 << 63 when it is none */
	struct error *err;
};

/* One answer. */
struct piece {
	int32_t system, tid;
	uint32_t name;        /* id in resolver->names */
	int32_t host_thread;  /* the thread of the host that had the pCPU instead: index into topo->thread, or -1 */
	int16_t pcpu;
	uint8_t kind;
};

void resolver_init(struct resolver *r, const struct topo *topo, int64_t t0, int64_t t1, struct error *err);
void resolver_release(struct resolver *r);

int track_move(struct resolver *r, struct track *k, int64_t t);  /* makes k->iv hold t */
struct cpu_tracks *resolver_cpu_new(struct resolver *r, uint32_t cpu);

/* The value of a track at t (HISTORY_NULL when the attribute is absent); cuts r->until.  -1 on error. */
static inline int track_at(struct resolver *r, struct track *k, int64_t t, int64_t *value)
{
	if ((t > k->iv.end || t < k->iv.start) && track_move(r, k, t) < 0)
		return -1;
	if (k->iv.end < r->until)
		r->until = k->iv.end;
	*value = k->iv.value;
	return 0;
}

static inline struct cpu_tracks *resolver_cpu(struct resolver *r, uint32_t cpu)
{
	return r->cpu[cpu] ? r->cpu[cpu] : resolver_cpu_new(r, cpu);
}

struct who *resolver_who(struct resolver *r, uint32_t machine, int32_t tid);
struct track *resolver_own(struct resolver *r, struct who *w);
/* The name of a thread at t as an id in r->names. */
int resolver_name(struct resolver *r, struct who *w, int64_t t, uint32_t *name);
uint32_t resolver_string(struct resolver *r, int64_t value);
/* machine and tid of a Waker value; false when it names no TID. */
bool resolver_waker(struct resolver *r, int64_t value, int32_t *machine, int32_t *tid);

/* What the subject does at t, or who keeps it from it; the answer holds on [t, r->until] at least. */
int resolve_subject(struct resolver *r, const struct subject *s, int64_t t, struct piece *out);

/* The pCPU that a row, which is in a gap with that status (number of the file) at t, waits for, and the thread that
 * waits there (index into topo->thread, or -1); holds on [t, r->until].  0 when it is not as simple as that. */
int resolve_waits_for(struct resolver *r, const struct subject *s, int64_t state, int64_t t, int *cpu, int32_t *self);

/* Calls fn for pieces that tile [from, to] in order.  Stops when fn returns other than 0, and returns that. */
int resolve_walk(struct resolver *r, const struct subject *s, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct piece *p, int64_t start, int64_t end), void *arg);

static inline bool piece_same(const struct piece *a, const struct piece *b)
{
	return a->kind == b->kind && a->tid == b->tid && a->system == b->system && a->name == b->name &&
	       a->pcpu == b->pcpu;
}

#endif
