/* Who has the CPU that a thread or vCPU wants, walked along time.  Private to query/.
 *
 * A resolver holds one cursor (a "track") per attribute that it has touched.  A step asks every track concerned for
 * its value at t; the answer holds until the first of these values ends.  Time moves forwards, so every interval is
 * decoded once: cost is linear in the intervals touched, with O(log n) jumps over stretches that nobody asks about.
 * Going back in time is allowed and costs a seek.  Memory: one track per attribute in use; thread tracks are
 * dropped together when there are THREADS_KEPT of them. */
#ifndef STEALSCOPE_QUERY_RESOLVER_H
#define STEALSCOPE_QUERY_RESOLVER_H

#include "base/map.h"
#include "base/strtab.h"
#include "query/query.h"

struct row_track {
	struct history_cursor cursor;
	struct interval iv;  /* the one that holds the moment last asked for; start > end before the first */
	struct interval *ahead;  /* read behind it: ahead[at .. n - 1] of room for `room` */
	unsigned at, n, room;
	uint32_t attr;
};

#define CURRENT_KEPT 16

struct cpu_tracks {
	struct row_track status, running, interrupt, host_thread, pcpu, exit, out_by;
	uint32_t name;       /* "vCPU0" or "CPU0", id in resolver->names */
	/* The last answers, since they seldom change: the CPU below by number, threads by TID. */
	int64_t below_number;
	int below;
	int64_t host_tid;
	struct who *host_who;
	struct who *current[CURRENT_KEPT];  /* threads that it had, by TID modulo */
};

/* A TID of a machine.  A TID of the host is one of a container, too, in those of its lives that are spent in one. */
struct who {
	int32_t thread;      /* index into topo->thread, or -1: the history has no such thread */
	int32_t machine, tid;
	int64_t cpu_number;  /* that its CPU row last told, and which CPU that is, or -1 */
	int cpu;
	struct row_track name;
	int64_t named;       /* the value of it whose id in resolver->names is name_id */
	uint32_t name_id;
	struct row_track *own;  /* status, cpu, waker: only of threads that were asked for them */
	int64_t woken_in;    /* the value of own[OWN_WOKEN_IN] whose text is handler; HISTORY_NULL: none was asked for */
	const char *handler;
	struct who *boxed;   /* of the host: the same TID in a container, in the next one ...; or NULL */
};
enum { OWN_STATUS, OWN_CPU, OWN_WAKER, OWN_WOKEN_IN, OWN_TRACKS };

struct resolver {
	const struct topo *topo;
	int64_t t0, t1;            /* time that will be asked for, mostly */
	int64_t until;             /* the answer to the current step holds up to here */
	bool shallow;              /* machines only: no guest threads, no names */
	bool no_wakers;            /* of who waits it is not asked for whom */
	bool no_idlers;            /* a vCPU whose guest is idle stands for itself, not for the guest's idle task */
	struct cpu_tracks **cpu;   /* per CPU of topo, made when asked for */
	struct map who_by_tid;     /* machine << 32 | tid -> index into who */
	struct who *recent[CURRENT_KEPT];  /* by TID modulo, or NULL */
	struct who **who;
	size_t whos, who_cap;
	struct strtab names;
	uint32_t swapper, not_alive, limit[OUT_REASON_COUNT + 1];  /* ids in names */
	struct map name_by_string; /* string id of the history -> id in names */
	struct map machine_by_string;  /* of references: string id of the history -> index of a machine, or -1 */
	int64_t last_string;       /* the last one, since most wakers are of one machine */
	int32_t last_machine;
	struct error *err;
};

/* One answer. */
struct piece {
	struct party who;     /* its name is an id in resolver->names */
	int32_t host_thread;  /* the thread of the host that had the pCPU instead: index into topo->thread, or -1 */
	int16_t pcpu;
};

void resolver_init(struct resolver *r, const struct topo *topo, int64_t t0, int64_t t1, struct error *err);
void resolver_release(struct resolver *r);

int track_move(struct resolver *r, struct row_track *k, int64_t t);  /* makes k->iv hold t */

/* The last interval that ends before t with a state of the mask, as history_prev(): 1, 0 = there is none, -1.  Those near t
 * are at hand. */
int track_prev(struct resolver *r, struct row_track *k, int64_t t, uint64_t mask, struct interval *iv);
static inline bool state_in(uint64_t mask, int64_t value)
{
	return value >= 0 && value < HISTORY_STATES && mask >> value & 1;
}

struct cpu_tracks *resolver_cpu_new(struct resolver *r, uint32_t cpu);
struct who *resolver_who_find(struct resolver *r, uint32_t machine, int32_t tid);
struct row_track *resolver_own_new(struct resolver *r, struct who *w);
uint32_t resolver_string(struct resolver *r, int64_t value);

/* What is asked of every piece: the usual answers stand here, without a call. */

/* The value of a track at t (HISTORY_NULL when the attribute is absent); cuts r->until.  -1 on error. */
static inline int track_at(struct resolver *r, struct row_track *k, int64_t t, int64_t *value)
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

/* The machine whose CPUs a machine's threads run on: a container has none of its own.  -1: there is none. */
static inline int32_t cpus_of(const struct topo *t, uint32_t machine)
{
	if (t->machine[machine].kind != MACHINE_CONTAINER)
		return (int32_t)machine;
	return t->machine[0].kind == MACHINE_HOST ? 0 : -1;
}

static inline struct who *resolver_who(struct resolver *r, uint32_t machine, int32_t tid)
{
	struct who *w = r->recent[(uint32_t)tid % CURRENT_KEPT];
	return w && w->tid == tid && w->machine == (int32_t)machine ? w : resolver_who_find(r, machine, tid);
}

static inline struct row_track *resolver_own(struct resolver *r, struct who *w)
{
	return w->own ? w->own : resolver_own_new(r, w);
}

/* The name of a thread at t as an id in r->names. */
static inline int resolver_name(struct resolver *r, struct who *w, int64_t t, uint32_t *name)
{
	int64_t value;
	if (track_at(r, &w->name, t, &value) < 0)
		return -1;
	if (value != w->named) {
		w->name_id = resolver_string(r, value);
		w->named = value;
	}
	*name = w->name_id;
	return 0;
}

/* machine and tid of a "Woken By" value; false when it names none that is known. */
bool resolver_waker(struct resolver *r, int64_t value, int32_t *machine, int32_t *tid);

/* The thread that executes vCPU v at t, or NULL. */
int resolver_host(struct resolver *r, uint32_t v, int64_t t, struct who **out);

/* The vCPU that a thread executes at t, or -1. */
int resolver_vcpu_of(struct resolver *r, const struct who *w, int64_t t, int *vcpu);
static inline int resolver_vcpu(struct resolver *r, const struct who *w, int64_t t, int *vcpu)
{
	*vcpu = -1;
	return w->thread < 0 || r->topo->thread[w->thread].role < 0 ? 0 : resolver_vcpu_of(r, w, t, vcpu);
}

/* The CPU of the machine below that vCPU v runs on or is queued on, or -1. */
int resolver_below(struct resolver *r, uint32_t v, int64_t t, int *cpu);

/* CPU `number` of a machine, each as a history has it, as an index into topo->cpu; -1: there is none. */
int resolver_cpu_index(const struct resolver *r, int32_t machine, int64_t number);

static inline bool is_host(const struct topo *t, uint32_t machine)
{
	return t->machine[machine].kind != MACHINE_VM;
}

static inline int vcpu_state(const struct resolver *r, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? VCPU_UNKNOWN : r->topo->vcpu_state[value];
}

static inline int thread_state(const struct resolver *r, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? THREAD_UNKNOWN : r->topo->thread_state[value];
}

/* What the subject does at t, or who keeps it from it; the answer holds on [t, r->until] at least. */
int resolve_subject(struct resolver *r, const struct subject *s, int64_t t, struct piece *out);

/* Was the subject kept from running at t? */
int resolve_lost(struct resolver *r, const struct subject *s, int64_t t, bool *lost);

/* Who keeps vCPU v, which is idle as far as its guest tells, from its CPU at t; FLOW_IDLE_CPU: nobody. */
int resolve_idle(struct resolver *r, uint32_t v, int64_t t, struct piece *out);

/* The pCPU that a row, which is in a gap with that status (number of the file) at t, waits for, and the thread that
 * waits there (index into topo->thread, or -1); holds on [t, r->until].  0 when it is not as simple as that. */
int resolve_waits_for(struct resolver *r, const struct subject *s, int64_t state, int64_t t, int *cpu, int32_t *self);

/* Calls fn for pieces that tile [from, to] in order.  Stops when fn returns other than 0, and returns that. */
int resolve_walk(struct resolver *r, const struct subject *s, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct piece *p, int64_t start, int64_t end), void *arg);

static inline bool piece_same(const struct piece *a, const struct piece *b)
{
	return party_same(&a->who, &b->who) && a->pcpu == b->pcpu;
}

#endif
