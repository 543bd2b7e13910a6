/* Finds the thread or handler that has the CPU for which a thread or vCPU waits, over time. Private to query/.
 *
 * A resolver holds one cursor ("track") per attribute that it has read. Each step reads the relevant tracks' values at t.
 * The result is valid until the first value ends.
 *
 * Cost: time moves forwards, so each interval is decoded once: linear in the intervals read, with O(log n) jumps over
 * skipped time. A step back costs a seek. Memory: one track per attribute in use. All threads' tracks are freed
 * together when there are THREAD_CACHE_MAX threads. */
#pragma once

#include "base/map.h"
#include "base/strtab.h"
#include "query/query.h"

struct row_track {
	struct history_cursor cursor;
	struct interval iv;      /* interval that contains the latest requested time; start > end: none yet */
	struct interval *ahead;  /* decoded intervals: ahead[ahead_pos .. ahead_len - 1] follow iv */
	unsigned ahead_pos, ahead_len, ahead_cap;
	uint32_t attr;
	bool can_hold, holds;    /* may hold, holds a slice's intervals all in `ahead`: see resolver_hold() */
};

#define RECENT_THREADS 16

struct cpu_tracks {
	struct row_track status, running, interrupt, host_thread, pcpu, exit, out_by, khz;
	uint32_t name;                  /* id of "vCPU0" or "CPU0" in resolver->names */
	/* The latest lookups' results, which seldom change: */
	int64_t lower_number;           /* the outer machine's CPU: number as recorded; HISTORY_NULL: none */
	int lower_cpu;                  /* that CPU's index in catalog->cpu; -1: none */
	int64_t vcpu_tid;               /* TID: the thread that executes the vCPU */
	struct thread_ref *vcpu_thread;
	struct thread_ref *current[RECENT_THREADS];  /* this CPU's current threads, by TID modulo RECENT_THREADS; NULL: none */
};

/* A machine's TID. A host TID may belong to a container in some of its lifetimes. */
struct thread_ref {
	int32_t thread;          /* index into catalog->thread; -1: the history has no such thread */
	int32_t machine, tid;
	int64_t cpu_number;      /* the thread's CPU attribute: latest value */
	int cpu;                 /* the same CPU as an index into catalog->cpu; -1: none */
	struct row_track name;
	int64_t name_value;      /* `name` for which name_id is valid */
	uint32_t name_id;        /* id in resolver->names */
	struct row_track *tracks;  /* by TRACK_*; NULL: not requested yet */
	int64_t woken_in;        /* tracks[TRACK_WOKEN_IN] for which `handler` is valid; HISTORY_NULL: none */
	const char *handler;     /* the waker's context: "thread", or an interrupt handler's name */
	struct thread_ref *in_container;  /* the same TID in the first (in a container: the next) container that contains it;
	                                   * NULL: none */
};
enum { TRACK_STATUS, TRACK_CPU, TRACK_WAKER, TRACK_WOKEN_IN, TRACK_OUT_BY, TRACK_COUNT };

struct resolver {
	const struct catalog *catalog;
	int64_t t0, t1;            /* window for most steps, ns */
	int64_t until;             /* the current step's result is valid up to here, ns */
	int64_t hold_from, hold_to;  /* slice that CPU tracks hold in memory, ns; hold_from > hold_to: none */
	struct row_track **holder; /* tracks that hold the slice */
	size_t holders, holder_cap;
	size_t held, held_max;     /* how many intervals they hold, and the limit: tests use less */
	bool shallow;              /* resolve machines only: no guest threads, no names */
	bool vcpus_only;           /* name the vCPU that has a CPU, not its guest's thread */
	bool no_wakers;            /* do not search for the sleepers' wakers */
	bool no_idle_task;         /* name an idle guest's vCPU instead of its idle task */
	const struct interval *row_status;  /* resolve_gap(): the row's status; otherwise NULL */
	int awaited_cpu;           /* resolve_gap(): pCPU for which the row waits, -1: none; index into catalog->cpu ... */
	int32_t awaited_by;        /* ... and the thread that waits; index into catalog->thread, -1: none */
	struct cpu_tracks **cpu;   /* by index in catalog->cpu; NULL: not requested yet */
	struct map thread_by_tid;  /* (machine << 32 | tid) -> index into `thread` */
	struct thread_ref *recent[RECENT_THREADS];  /* by TID modulo RECENT_THREADS; NULL: none */
	struct thread_ref **thread;
	size_t threads_len, threads_cap;
	struct strtab names;
	uint32_t swapper, not_alive, limit[OUT_REASON_COUNT + 1];  /* ids in names */
	struct map name_by_string; /* the history's string id -> id in names */
	struct map machine_by_string;  /* string id of a reference in the history -> machine index, or -1 */
	int64_t last_waker_string; /* latest lookup in machine_by_string: most wakers belong to one machine */
	int32_t last_waker_machine;
	struct error *err;
};

/* A target's state at a time: the actor that has the CPU, or keeps the target from running. */
struct resolution {
	struct actor actor;   /* actor.name is an id in resolver->names */
	int32_t host_thread;  /* host thread that has the pCPU: index into catalog->thread; -1: none */
	int16_t pcpu;         /* -1: unknown */
};

void resolver_init(struct resolver *r, const struct catalog *catalog, int64_t t0, int64_t t1, struct error *err);
void resolver_release(struct resolver *r);
void resolver_trim(struct resolver *r);  /* frees all threads' tracks if there are too many; for use between steps */

/* From now on, a CPU track that is read in [from, to] is decoded for this whole slice at once: for queries that walk the
 * slice many times, row after row. With more than held_max intervals (24 bytes each), tracks are read on as without a
 * slice. Slices follow each other in time. */
void resolver_hold(struct resolver *r, int64_t from, int64_t to);

int track_move(struct resolver *r, struct row_track *k, int64_t t);  /* moves k->iv to the interval that contains t */

/* Finds the last interval before t with a state in the mask, as history_prev(). Returns 1, 0 = none, -1 = error. Cheap
 * for intervals near t, which are decoded already. */
int track_prev(struct resolver *r, struct row_track *k, int64_t t, uint64_t mask, struct interval *iv);
static inline bool state_is_in(uint64_t mask, int64_t value)
{
	return value >= 0 && value < HISTORY_STATES && mask >> value & 1;
}

struct cpu_tracks *resolver_cpu_new(struct resolver *r, uint32_t cpu);
struct thread_ref *resolver_thread_find(struct resolver *r, uint32_t machine, int32_t tid);
struct row_track *thread_tracks_new(struct resolver *r, struct thread_ref *w);
uint32_t resolver_name_id(struct resolver *r, int64_t value);

/* The functions below are called for every interval; their frequent cases are inline. */

/* Sets *value to a track's value at t (HISTORY_NULL if the attribute is absent), and limits r->until to that value's end.
 * Returns -1 on error. */
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

/* Returns the machine whose CPUs a machine's threads use (for a container its whole); -1: none. */
static inline int32_t cpu_machine(const struct catalog *t, uint32_t machine)
{
	return t->machine[machine].whole;
}

static inline struct thread_ref *resolver_thread(struct resolver *r, uint32_t machine, int32_t tid)
{
	struct thread_ref *w = r->recent[(uint32_t)tid % RECENT_THREADS];
	return w && w->tid == tid && w->machine == (int32_t)machine ? w : resolver_thread_find(r, machine, tid);
}

static inline struct row_track *thread_tracks(struct resolver *r, struct thread_ref *w)
{
	return w->tracks ? w->tracks : thread_tracks_new(r, w);
}

/* Sets *name to a thread's name at t, as an id in r->names. */
static inline int resolver_thread_name(struct resolver *r, struct thread_ref *w, int64_t t, uint32_t *name)
{
	int64_t value;
	if (track_at(r, &w->name, t, &value) < 0)
		return -1;
	if (value != w->name_value) {
		w->name_id = resolver_name_id(r, value);
		w->name_value = value;
	}
	*name = w->name_id;
	return 0;
}

/* Sets *machine to that to which thread w belongs at t: its container, or its own machine if it is in none. */
int resolver_machine(struct resolver *r, const struct thread_ref *w, int64_t t, int32_t *machine);

/* Decodes the attribute "Woken By". Returns false if it does not name a known thread. */
bool resolver_waker(struct resolver *r, int64_t value, int32_t *machine, int32_t *tid);

/* Finds the thread that executes vCPU v at t; NULL: none. */
int resolver_vcpu_thread(struct resolver *r, uint32_t v, int64_t t, struct thread_ref **out);

/* Finds the vCPU that a thread executes at t; -1: none. */
int resolver_find_vcpu(struct resolver *r, const struct thread_ref *w, int64_t t, int *vcpu);
static inline int resolver_vcpu(struct resolver *r, const struct thread_ref *w, int64_t t, int *vcpu)
{
	*vcpu = -1;
	return w->thread < 0 || r->catalog->thread[w->thread].role < 0 ? 0 : resolver_find_vcpu(r, w, t, vcpu);
}

/* Returns the index of a machine's CPU `number` in catalog->cpu; -1: none. */
int resolver_cpu_index(const struct resolver *r, int32_t machine, int64_t number);

/* Finds the outer machine's CPU on which vCPU v runs or is queued; -1: none. */
int resolver_find_lower_cpu(struct resolver *r, uint32_t v, int64_t t, int64_t number, int *cpu);
static inline int resolver_lower_cpu(struct resolver *r, uint32_t v, int64_t t, int *cpu)
{
	struct cpu_tracks *c = resolver_cpu(r, v);
	int64_t number;
	if (track_at(r, &c->pcpu, t, &number) < 0)
		return -1;
	*cpu = c->lower_cpu;
	return number != c->lower_number || number == HISTORY_NULL ? resolver_find_lower_cpu(r, v, t, number, cpu) : 0;
}

static inline bool is_host(const struct catalog *t, uint32_t machine)
{
	return t->machine[machine].kind != MACHINE_VM;
}

static inline int vcpu_state(const struct resolver *r, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? VCPU_UNKNOWN : r->catalog->vcpu_state[value];
}

static inline int thread_state(const struct resolver *r, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? THREAD_UNKNOWN : r->catalog->thread_state[value];
}

/* Finds the actor at t: the target if it runs, otherwise the actor that keeps it from running. Valid at least up to
 * r->until. */
int resolve_target(struct resolver *r, const struct target *target, int64_t t, struct resolution *out);

/* Sets *lost to true if the target lost time at t. */
int resolve_lost(struct resolver *r, const struct target *target, int64_t t, bool *lost);

/* Finds the actor that keeps vCPU v, which is idle for its guest, off its CPU at t; FLOW_IDLE_CPU: none. */
int resolve_idle(struct resolver *r, uint32_t v, int64_t t, struct resolution *out);

/* As resolve_target(), for a row in a gap; status: its status interval that contains t. If it waits for a pCPU that any
 * thread may have, stops there: returns 1 with its index in catalog->cpu, and with the thread that waits, an index into
 * catalog->thread, -1: none. The result is valid on [t, r->until]. Returns 0 with *out filled, or -1 on error. */
int resolve_gap(struct resolver *r, const struct target *target, const struct interval *status, int64_t t,
                struct resolution *out, int *cpu, int32_t *waiting);

/* Finds the pCPU on which a row, which runs at t, runs; -1: unknown. The result is valid on [t, r->until]. */
int resolve_occupied_cpu(struct resolver *r, const struct target *target, int64_t t, int *cpu);

/* Calls fn for resolutions that tile [from, to] in order. If fn returns other than 0, stops and returns that. */
int resolve_walk(struct resolver *r, const struct target *target, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct resolution *p, int64_t start, int64_t end), void *arg);

static inline bool resolution_same(const struct resolution *a, const struct resolution *b)
{
	return actor_same(&a->actor, &b->actor) && a->pcpu == b->pcpu;
}
