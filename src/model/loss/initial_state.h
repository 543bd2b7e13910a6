/* Prescan: determines a machine's state before the first event that shows it, at the beginning of a trace and after
 * each loss.
 *
 * A trace records changes. The first event that names a thread also shows its state before that event: a thread that is
 * switched out ran, a thread that is woken slept, a thread that is switched in waited. The prescan collects these first
 * events, so that the history has states from the beginning. A loss begins a new epoch: earlier results are invalid, and
 * the next event of each thread counts as its first. The end of all losses begins another epoch. The prescan reads at
 * most PRESCAN_EVENTS events. Memory: 40 to 80 bytes per TID during the prescan, and the threads named in each epoch. */
#pragma once

#include "base/base.h"
#include "model/loss/sleep_across_loss.h"
#include "model/inference/idle_inference.h"
#include "model/loss/unseen_handlers.h"
#include "model/state/vcpu.h"
#include "trace/trace.h"

#define PRESCAN_EVENTS 1000000

struct prescan_thread {
	int32_t tid, pid, cpu;      /* pid, cpu: -1: unknown */
	uint32_t comm;              /* string id; 0: unknown */
	int8_t sched;               /* state at the beginning of the epoch: enum thread_state */
	bool dumped;                /* first named by a state dump */
	bool pending;               /* placement unknown (migrated, or listed as runnable in the state dump); resolved by its
	                             * next event */
	bool mentioned_before;      /* named by an event of an earlier epoch */
	bool switched_in;           /* known only from a switch to it: it was queued, or, where that is not recorded, slept
	                             * or was created */
	bool is_offline;            /* vCPU that the hypervisor did not let run */
	bool renamed;               /* the name in later events was not its name at the beginning */
	uint32_t pid_ns, cgroup_ns; /* inode numbers of its namespaces; 0: unknown */
};

struct prescan_cpu {
	bool seen;           /* has events before its first loss */
	bool lost;           /* has a loss */
	bool silent;         /* has no event at all */
	bool nowhere;        /* not recorded at all, as in struct trace_cpu */
	bool mode_known;
	bool has_run_state;  /* a run state showed the current thread */
	int32_t tid, pid;    /* current thread at the beginning; -1: unknown; 0: idle */
	uint32_t comm;
	uint32_t runnable_threads;  /* threads that the state dump lists as runnable here, if it is silent */
	enum vcpu_mode mode; /* mode of that thread if it is a vCPU */
	int32_t vm;          /* on a hypervisor with run states: process of the VM on this CPU; 0: none, or unknown */
	int32_t pid_tid;     /* thread of the last event with a PID; -1: none */
	size_t pid_epoch;    /* epoch of that event */
	size_t epoch;        /* epoch of its last event */
	int64_t next;        /* thread of its last switch; -1: none, or events were lost since */
};

struct prescan {
	struct prescan_thread *thread; /* threads of epoch e: thread[epoch[e]] to thread[epoch[e + 1] - 1] */
	size_t threads, thread_cap;
	size_t *epoch;
	size_t epochs, epoch_cap;      /* epoch 0, the beginning, exists since the first event */
	struct prescan_cpu *cpu;       /* CPUs at the beginning of the trace */
	uint32_t cpus;
	int64_t lost_until;            /* end of the losses read so far, ns, the machine's clock */
	bool lost_pending;             /* the current event is before lost_until */
	uint64_t switches, wakeups, wakings, migrations, forks;
	unsigned hidden;               /* switches from another thread than the previous switch was to */
	unsigned asked;                /* kinds of events requested by the recorder, as in trace_info */
	struct proved_sleeps proved_sleeps;
	struct unseen_handlers handlers;
	struct idle_stats idle_stats;
	struct map seen;               /* TID -> epoch << 40 | (index in thread + 1); index 0: created in that epoch */
	struct map entered;            /* process of a VM of a hypervisor with run states: it has VM entries */
};

#define PRESCAN_INIT { .thread = NULL, .proved_sleeps = PROVED_SLEEPS_INIT, .handlers = UNSEEN_HANDLERS_INIT, \
	.idle_stats = IDLE_STATS_INIT }

void prescan_release(struct prescan *s);
void prescan_feed(struct prescan *s, const struct event *ev);
void prescan_add_silent(struct prescan *s, uint32_t cpu);  /* Adds a CPU without events. */
void prescan_finish(struct prescan *s);  /* Computes the results; called after the last event. */
/* Returns the thread's state before the event that named it: enum thread_state. */
int8_t prescan_thread_state(const struct prescan *s, const struct prescan_thread *th);
/* Returns true if VM entries of the vCPU's VM are recorded; tid: vcpu_thread_id(). s: may be NULL. */
bool prescan_has_entries(const struct prescan *s, int64_t tid);
/* Returns true if the trace does not record that CPU, and so not its runqueue. */
bool prescan_is_unrecorded(const struct prescan *s, int64_t cpu);
/* Returns the state that an EV_PROCESS shows for a live thread: enum thread_state. */
int8_t dumped_thread_state(const struct event *ev);
/* Gets an epoch's threads: thread[*from] to thread[*to - 1]. */
void prescan_epoch(const struct prescan *s, size_t epoch, size_t *from, size_t *to);
/* Reads the beginning of a trace. Returns 0, or -1 with *err set. */
int prescan_read(struct prescan *s, const struct trace *trace, const struct clock_map *clock, struct error *err);
