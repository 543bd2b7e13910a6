/* What the host's threads wanted, and what its scheduler would have made of it.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_SCHEDULER_REPLAY_H
#define STEALSCOPE_COMPARE_WHATIF_SCHEDULER_REPLAY_H

#include "compare/whatif/wait_graph.h"
#include "compare/whatif/cgroup_weights.h"
#include "compare/diff/ledger.h"

#define WAIT_LENGTHS 48  /* half octaves, from a us to 16 s */

/* So much work on a CPU, then asleep. */
struct replay_burst {
	int64_t work;            /* ns */
	int64_t sleep;           /* ns; INT64_MAX: for good */
	int64_t wake;            /* when the sleep was over, as recorded */
	bool quota;              /* it did not sleep, its quota was used up */
	bool within;             /* a request that began before the sleep ended after it: the sleep is a part of its service */
};

/* From `time` on it runs, and has done `work` before. */
struct run_stretch { int64_t time, work; };

/* A CPU that a task was on. */
struct replay_left {
	int64_t last;            /* moment */
	unsigned stuck;          /* waits since then through which it was idle */
};

struct replay_task {
	uint32_t thread;         /* index into topo->thread: one of the host's */
	uint64_t seen;           /* CPUs that it was on, a bit each */
	unsigned first;          /* the first of them */
	struct replay_burst *burst;
	size_t bursts, burst_cap;
	struct run_stretch *ran;  /* as recorded: of threads that are followed */
	size_t rans, ran_cap;
	int64_t waited;          /* ns runnable without a CPU, as recorded */
	double lengths[WAIT_LENGTHS];  /* ns of it, by how long each wait was */
	int64_t unknown;         /* ns of which nothing is known */
	bool follow;
	unsigned stuck, looked;  /* waits through which another CPU was idle; of so many that were looked at */
	struct replay_left *was_on;  /* by CPU, while it is read */
	/* What is changed. */
	bool gone, unlimited;
	uint64_t may;            /* CPUs */
	double weight;           /* 1: nice 0 */
	uint32_t kin;            /* of those who are told under one name: the number of that */
	int32_t group;           /* the innermost, in wants->group; -1: none is known */
	/* The replay's answer. */
	struct run_stretch *again;  /* of followed ones */
	size_t agains, again_cap;
	double waits[DIFF_SLICES];   /* ns, by slices of the window */
	double lengths_again[WAIT_LENGTHS];
	/* The replay's own. */
	int64_t left, done, since;
	double v;
	size_t at;
	unsigned cpu;
	uint8_t state;
};

#define DISPATCH_MOST 100000  /* ns */
#define DISPATCH_STEP 100
#define TICKS 4               /* those that kernels are built with */
#define TICK_PARTS 100

struct wants {
	const struct topo *topo;
	int64_t from, to;        /* ns, closed */
	struct replay_task *task;
	size_t tasks, cap;
	uint32_t kins;           /* names */
	struct replay_group *group;
	size_t groups, group_cap;
	size_t grouped;          /* tasks whose groups are known */
	struct contests *contests;  /* who waits for whom is noted there; NULL: it is not */
	uint32_t *task_of;       /* by index into topo->thread; UINT32_MAX: none */
	unsigned cpus;           /* of the host; numbers below 64 */
	int64_t dispatch;        /* ns from a wake-up to the work on an idle CPU: the median of those below DISPATCH_MOST */
	uint64_t dispatches[DISPATCH_MOST / DISPATCH_STEP];  /* by length: how many */
	uint32_t turns[TICKS][TICK_PARTS];  /* who had to go while it could run: when, within the tick */
	int64_t tick, phase;     /* ns: the CPUs look whose turn it is at phase + n x tick; 0: nothing tells */
};

/* thread_demand.c: reads what every thread of the host did.  Those that are a vCPU are followed. */
int wants_read(struct wants *w, const struct topo *topo, int64_t from, int64_t to, struct error *err);
void wants_release(struct wants *w);
struct replay_task *wants_task(const struct wants *w, uint32_t thread);  /* or NULL */
/* Under what its waits are told: its VM, or its name; escaped. */
void task_name(const struct wants *w, const struct replay_task *t, char out[SUBJECT_TEXT]);
/* It was seen on one CPU alone, and: waited for that while others were idle; nothing tells whether it may leave. */
bool task_is_pinned(const struct replay_task *t);
bool task_may_be_pinned(const struct replay_task *t);
/* ns of work that a followed task had done at t. */
int64_t task_work_at(const struct replay_task *t, int64_t at);

/* How a CPU is shared: see scheduler_replay.c. */
struct rules {
	int64_t slice, credit;   /* ns */
	int64_t tick, phase;     /* ns: turns end at phase + n x tick alone; tick 0: at any time */
	int64_t balance;         /* ns: so often a CPU takes one that waits for the busiest; 0: never */
	bool open;               /* sleeps between requests end when they did; else all last as long as they did */
	bool by_clock;           /* open: those within requests, too */
};

unsigned wait_length(int64_t ns);                /* the index in `lengths` */
double task_waits(const struct replay_task *t);  /* ns, in the replay */
/* Cost: O(log n) for each burst and each slice.  Fills `again` and `waits` of every task. */
void replay_run(struct wants *w, const struct rules *rules);
/* When a followed task has done so much work; `begins`: and goes on.  INT64_MIN: never. */
int64_t task_time_of(const struct replay_task *t, int64_t work, bool begins);
/* When a followed task runs first in the replay, from `at` on.  INT64_MIN: never. */
int64_t task_runs_from(const struct replay_task *t, int64_t at);

#endif
