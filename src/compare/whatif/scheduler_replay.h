/* Demand of the host's threads, and its replay by the scheduler model. Private to compare/. */
#pragma once

#include "compare/whatif/wait_graph.h"
#include "compare/whatif/cgroup_weights.h"
#include "compare/diff/ledger.h"

#define WAIT_LENGTHS 48  /* classes of wait lengths: half octaves from 1 us to 16 s */

/* A burst of work on a CPU, and the sleep that follows. */
struct replay_burst {
	int64_t work;            /* CPU time, ns */
	int64_t sleep;           /* the sleep's duration, ns; INT64_MAX: forever */
	int64_t wake;            /* time at which the recorded sleep ended */
	bool throttled;          /* not a sleep: the task was throttled by its quota */
	bool in_request;         /* a request was in flight during the whole sleep: the sleep is part of its service */
};

/* Start of an interval in which a task runs: the time, and the CPU time consumed before it, ns. */
struct run_interval { int64_t time, work; };

/* Use of one host CPU by a task. */
struct cpu_use {
	int64_t last_use;        /* end of the last use, ns */
	unsigned idle_waits;     /* later waits during which this CPU was idle */
};

struct replay_task {
	uint32_t thread;         /* index into catalog->thread: a host thread */
	uint64_t used_cpus;      /* bit mask of the host CPUs that the task ran on */
	unsigned first_cpu;      /* CPU that it ran on first */
	struct replay_burst *burst;
	size_t bursts, burst_cap;
	struct run_interval *ran;  /* vCPU threads only: recorded intervals of running, and a last entry for the end of the
	                            * window */
	size_t n_ran, ran_cap;
	int64_t waited;          /* recorded time runnable without a CPU, ns */
	double wait_by_length[WAIT_LENGTHS];  /* the same by the wait's length: index from wait_length() */
	int64_t unknown;         /* recorded time in an unknown state, ns */
	bool is_vcpu;
	unsigned pin_evidence, waits_checked;  /* examined waits during which a CPU was idle that the task never
	                                        * used; examined wait count */
	struct cpu_use *cpu_use;  /* by CPU number; only while the demand is read */
	/* ---- Inputs that changes modify */
	bool removed, quota_lifted;
	uint64_t allowed_cpus;   /* bit mask of the CPUs that the task may use */
	double weight;           /* weight; 1 = nice 0 */
	uint32_t name_group;     /* number of the name under which the task is reported */
	int32_t group;           /* innermost cgroup, index into host_demand.group; -1: unknown */
	/* ---- Results of the replay */
	struct run_interval *replayed;  /* vCPU threads only: intervals of running */
	size_t n_replayed, replayed_cap;
	double replayed_waits[DIFF_SLICES];  /* time waited, ns, by the window's slice */
	double replayed_by_length[WAIT_LENGTHS];
	/* ---- State during the replay */
	int64_t remaining, work_done, since;
	double vruntime;
	size_t burst_index;
	unsigned cpu;
	uint8_t state;
};

#define DISPATCH_MAX 100000  /* ns */
#define DISPATCH_STEP 100
#define TICKS 4               /* tick periods tried */
#define TICK_PARTS 100

struct host_demand {
	const struct catalog *catalog;
	int64_t from, to;        /* ns, both ends included */
	struct replay_task *task;
	size_t tasks, cap;
	uint32_t name_groups;    /* different report names */
	struct replay_group *group;
	size_t groups, group_cap;
	size_t grouped;          /* tasks with known groups */
	struct wait_graph *waits_for;  /* receives the waits between tasks of each replay; NULL: not recorded */
	uint32_t *task_index;    /* each thread's task: by index into catalog->thread; UINT32_MAX: none */
	unsigned cpus;           /* highest CPU number of the host + 1; at most 64 */
	int64_t dispatch;        /* dispatch latency of an idle CPU, ns: median of the recorded ones below DISPATCH_MAX */
	uint64_t dispatch_histogram[DISPATCH_MAX / DISPATCH_STEP];  /* histogram of dispatch latencies */
	uint32_t slice_ends[TICKS][TICK_PARTS];  /* ends of long waits by phase within each tick period */
	int64_t tick, phase;     /* CPUs reschedule at phase + n x tick, ns; tick 0: unknown */
};

/* Reads the demand of every thread of the host (thread_demand.c). For vCPU threads it also stores the intervals of
 * running. */
int demand_read(struct host_demand *d, const struct catalog *catalog, int64_t from, int64_t to, struct error *err);
void demand_release(struct host_demand *d);
struct replay_task *demand_task(const struct host_demand *d, uint32_t thread);  /* or NULL */
/* Writes the name used in reports, escaped: a vCPU thread's VM, or the name of another thread. */
void task_name(const struct host_demand *d, const struct replay_task *t, char out[TARGET_TEXT]);
/* Returns true if the task ran on a single CPU, and there were too few waits for it while others were idle to decide
 * whether it is pinned. */
bool task_may_be_pinned(const struct replay_task *t);
/* Returns the CPU time that a vCPU task had consumed at time `at` of the recording, since the window's start, ns. */
int64_t task_work_at(const struct replay_task *t, int64_t at);

/* Parameters of the scheduler model: see scheduler_replay.c. */
struct sched_params {
	int64_t slice, credit;   /* ns */
	int64_t tick, phase;     /* slices end only at phase + n x tick, ns; tick 0: at any time */
	int64_t balance;         /* period of moves from the busiest CPU, ns; 0: no moves */
	bool open;               /* open loop: sleeps between requests end at their recorded time; closed loop: every sleep
	                          * keeps its length */
	bool by_clock;           /* open loop: sleeps within requests also end at their recorded time */
};

unsigned wait_length(int64_t ns);                /* class of a wait length, index into wait_by_length */
double task_waits(const struct replay_task *t);  /* total wait of the task in the last replay, ns */
/* Replays the demand. Fills the results of every task. Cost: O(log n) per burst and slice. */
void replay_run(struct host_demand *d, const struct sched_params *params);
/* Returns the time at which a vCPU task has consumed `work` ns in the last replay; INT64_MIN: never. `begins`: the time
 * at which it goes on to run after that, not the work's end before. */
int64_t task_time_at_work(const struct replay_task *t, int64_t work, bool begins);
/* Returns the first time at or after `at` at which a vCPU task runs in the last replay; INT64_MIN: never. */
int64_t task_next_run(const struct replay_task *t, int64_t at);
