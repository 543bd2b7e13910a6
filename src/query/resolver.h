/* Finds the thread or handler that has the CPU for which a thread or vCPU waits, over time. Private to query/.
 *
 * A resolver holds one cursor ("track") per attribute that it has read. Each step reads the values of the relevant
 * tracks at t. The result is valid until the first of these values ends.
 *
 * Cost: time moves forwards, so each interval is decoded once: linear in the intervals read, with O(log n) jumps over
 * skipped time. A step back costs a seek. Memory: one track per attribute in use. All tracks of threads are freed
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
	bool can_hold, holds;    /* may hold, holds all intervals of a slice in `ahead`: see resolver_hold() */
};

#define RECENT_THREADS 16

struct cpu_tracks {
	struct row_track status, running, interrupt, host_thread, pcpu, exit, out_by, khz;
	uint32_t name;                  /* id of "vCPU0" or "CPU0" in resolver->names */
	/* Results of the latest lookups, which seldom change: */
	int64_t lower_number;           /* number of the CPU of the outer machine, as recorded; HISTORY_NULL: none */
	int lower_cpu;                  /* index of that CPU in catalog->cpu; -1: none */
	int64_t vcpu_tid;               /* TID of the thread that executes the vCPU */
	struct thread_ref *vcpu_thread;
	struct thread_ref *current[RECENT_THREADS];  /* current threads of this CPU, by TID modulo RECENT_THREADS; NULL: none */
};

/* A TID of a machine. A TID of the host may belong to a container for some of its lifetimes. */
struct thread_ref {
	int32_t thread;          /* index into catalog->thread; -1: the history has no such thread */
	int32_t machine, tid;
	int64_t cpu_number;      /* latest value of the thread's CPU attribute */
	int cpu;                 /* the same CPU as an index into catalog->cpu; -1: none */
	struct row_track name;
	int64_t name_value;      /* value of `name` for which name_id is valid */
	uint32_t name_id;        /* id in resolver->names */
	struct row_track *tracks;  /* tracks of TRACK_*; NULL: not requested yet */
	int64_t woken_in;        /* value of tracks[TRACK_WOKEN_IN] for which `handler` is valid; HISTORY_NULL: none */
	const char *handler;     /* context of the waker: "thread", or the name of an interrupt handler */
	struct thread_ref *in_container;  /* the same TID in the first (in a container: the next) container that contains it;
	                                   * NULL: none */
};
enum { TRACK_STATUS, TRACK_CPU, TRACK_WAKER, TRACK_WOKEN_IN, TRACK_OUT_BY, TRACK_COUNT };

struct resolver {
	const struct catalog *catalog;
	int64_t t0, t1;            /* window of most steps, ns */
	int64_t until;             /* end of the validity of the current step's result, ns */
	int64_t hold_from, hold_to;  /* slice that tracks of CPUs hold in memory, ns; hold_from > hold_to: none */
	struct row_track **holder; /* tracks that hold the slice */
	size_t holders, holder_cap;
	size_t held, held_max;     /* number of their intervals, and its limit: tests use less */
	bool shallow;              /* resolve machines only: no guest threads, no names */
	bool vcpus_only;           /* name the vCPU that has a CPU, not the thread of its guest */
	bool no_wakers;            /* do not search for the wakers of sleepers */
	bool no_idle_task;         /* name the vCPU of an idle guest instead of the guest's idle task */
	const struct interval *row_status;  /* resolve_gap(): status of the row; otherwise NULL */
	int awaited_cpu;           /* resolve_gap(): pCPU for which the row waits, -1: none; index into catalog->cpu ... */
	int32_t awaited_by;        /* ... and the thread that waits; index into catalog->thread, -1: none */
	struct cpu_tracks **cpu;   /* by index of catalog->cpu; NULL: not requested yet */
	struct map thread_by_tid;  /* (machine << 32 | tid) -> index into `thread` */
	struct thread_ref *recent[RECENT_THREADS];  /* by TID modulo RECENT_THREADS; NULL: none */
	struct thread_ref **thread;
	size_t threads_len, threads_cap;
	struct strtab names;
	uint32_t swapper, not_alive, limit[OUT_REASON_COUNT + 1];  /* ids in names */
	struct map name_by_string; /* string id of the history -> id in names */
	struct map machine_by_string;  /* string id of a reference in the history -> index of a machine, or -1 */
	int64_t last_waker_string; /* latest lookup of machine_by_string: most wakers belong to one machine */
	int32_t last_waker_machine;
	struct error *err;
};

/* State of a target at a time: the actor that has the CPU, or keeps the target from running. */
struct resolution {
	struct actor actor;   /* actor.name is an id in resolver->names */
	int32_t host_thread;  /* host thread that has the pCPU: index into catalog->thread; -1: none */
	int16_t pcpu;         /* -1: unknown */
};

void resolver_init(struct resolver *r, const struct catalog *catalog, int64_t t0, int64_t t1, struct error *err);
void resolver_release(struct resolver *r);
void resolver_trim(struct resolver *r);  /* frees all tracks of threads if there are too many; for use between steps */

/* From now on, a track of a CPU that is read in [from, to] is decoded for this whole slice at once: for queries that walk
 * the slice many times, row after row. With more than held_max intervals of 24 bytes, tracks are read on as without a
 * slice. Slices follow each other in time. */
void resolver_hold(struct resolver *r, int64_t from, int64_t to);

int track_move(struct resolver *r, struct row_track *k, int64_t t);  /* moves k->iv to the interval that contains t */

/* Finds the last interval before t with a state of the mask, as history_prev(). Returns 1, 0 = none, -1 = error. Cheap
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

/* Sets *value to the value of a track at t (HISTORY_NULL if the attribute is absent), and limits r->until to the end of
 * that value. Returns -1 on error. */
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

/* Returns the machine that owns the CPUs of a machine's threads (of a container: its whole); -1: none. */
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

/* Sets *name to the name of a thread at t, as an id in r->names. */
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

/* Decodes a value of the attribute "Woken By". Returns false if it does not name a known thread. */
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

/* Returns the index in catalog->cpu of CPU `number` of a machine; -1: none. */
int resolver_cpu_index(const struct resolver *r, int32_t machine, int64_t number);

/* Finds the CPU of the outer machine on which vCPU v runs or is queued; -1: none. */
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
int resolve_target(struct resolver *r, const struct target *s, int64_t t, struct resolution *out);

/* Sets *lost to true if the target lost time at t. */
int resolve_lost(struct resolver *r, const struct target *s, int64_t t, bool *lost);

/* Finds the actor that keeps vCPU v, which is idle for its guest, off its CPU at t; FLOW_IDLE_CPU: none. */
int resolve_idle(struct resolver *r, uint32_t v, int64_t t, struct resolution *out);

/* As resolve_target(), for a row in a gap; status: the interval of its status that contains t. If it waits for a pCPU that
 * any thread may have, stops there: returns 1 with its index in catalog->cpu, and the index in catalog->thread of the
 * thread that waits, -1: none. The result is valid on [t, r->until]. Returns 0 with *out filled, or -1 on error. */
int resolve_gap(struct resolver *r, const struct target *s, const struct interval *status, int64_t t,
                struct resolution *out, int *cpu, int32_t *waiting);

/* Finds the pCPU on which a row, which runs at t, runs; -1: unknown. The result is valid on [t, r->until]. */
int resolve_occupied_cpu(struct resolver *r, const struct target *s, int64_t t, int *cpu);

/* Calls fn for resolutions that tile [from, to] in order. If fn returns other than 0, stops and returns that. */
int resolve_walk(struct resolver *r, const struct target *s, int64_t from, int64_t to,
                 int (*fn)(void *arg, const struct resolution *p, int64_t start, int64_t end), void *arg);

static inline bool resolution_same(const struct resolution *a, const struct resolution *b)
{
	return actor_same(&a->actor, &b->actor) && a->pcpu == b->pcpu;
}
