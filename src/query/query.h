/* Queries on a history: machines and threads, execution flow, gaps, steal matrix, VM exits, waits. They only read the
 * history.
 *
 * Ownership: query_take() and query_answer() return answers, and *_of() functions fill structs, which the caller releases
 * with their *_release() function. The catalog is borrowed and must outlive queries and answers. All times are ns on the
 * host's clock; intervals are closed. Functions that return int return -1 on error, with *err set.
 *
 * Contents:
 *   Groups, Machines, CPUs and threads, Queries in steps, Execution flow (paper, Algorithms 1 and 2, Eq. 3),
 *   Gaps and steal, Gaps, one after the other, Victims, Gap lists, Steal matrix: victims and culprits, VM exits,
 *   Critical path, Lock waits, Shared cores, Culprit sums, Culprits waiting, Idle vCPUs' wakers, Halt polling,
 *   Preempted code in the guest's kernel, Periodic timers, The viewer's queries, Text, Findings */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/notes.h"
#include "base/progress.h"
#include "base/schema.h"
#include "base/states.h"
#include "history/history.h"

/* ---- Groups ------------------------------------------------------------------------------------------ */

/* Control groups on the host, or on the only machine; there, groups with threads have the kind MACHINE_CONTAINER. */

/* Texts are raw and borrowed from the history. */
struct catalog_group {
	const char *path, *name, *cpus;         /* name: for people; cpus: its CPU set, "": unknown */
	int64_t quota_ns, period_ns;            /* quota_ns 0: no limit */
	int64_t periods, throttled, throttled_ns;  /* by cpu.stat, see base/control_groups.h; -1: unknown */
};

struct catalog;
struct target;

/* Finds an attribute's last value that is not null; HISTORY_NULL: none. Returns 0 or -1. */
int attribute_last_value(const struct catalog *catalog, uint32_t attr, int64_t *value, struct error *err);
/* Finds a process ("process:java", "process:14770", "Debian/process:init": all processes with that name), or a control
 * group with other groups in it, whose sum it is. Returns 1 and the target; 0: the text is neither, but may be a thread
 * in one ("process:java/151"), which catalog_find_targets() finds then; -1 with *err. A process with one thread is this
 * thread, unless as_machine. May open the catalog again: other targets and actors become invalid. O(threads). */
int catalog_select(struct catalog *catalog, const char *text, bool as_machine, struct target *out, struct error *err);

/* Returns the first thread's index in a process that catalog_select() finds by the text; -1: none. O(threads). */
int catalog_find_process(const struct catalog *catalog, const char *text);
/* Returns true if the thread belongs to a process with this name or number. */
bool catalog_is_in_process(const struct catalog *catalog, uint32_t thread, const char *process);

/* ---- Machines, CPUs and threads ------------------------------------------------------------------------- */
enum machine_kind { MACHINE_HOST, MACHINE_VM, MACHINE_CONTAINER /* a control group, or a namespace */ };

struct catalog_cpu {  /* an attribute that the history lacks has the id HISTORY_NONE */
	unsigned number;
	uint32_t machine;                       /* index */
	SCHEMA_IDS(CPU_ATTRIBUTES, CPU_ATTRS);   /* .status, .current, ... */
	int32_t host;                           /* vCPU: index of the thread that executes it (on the host, or in the
	                                         * outer guest if nested); -1: unknown, or a pCPU */
	int32_t sibling;                        /* pCPU: next CPU in its core, in a circle: itself if it has the core alone; -1:
	                                         * unknown */
	int32_t llc_number, node_number;        /* pCPU: its last-level cache and NUMA node; -1: unknown */
	int64_t base_frequency;                 /* pCPU: kHz; 0: unknown */
};

struct catalog_thread {
	int32_t tid;
	uint32_t machine;                       /* index */
	SCHEMA_IDS(THREAD_ATTRIBUTES, THREAD_ATTRS);  /* .status, .name, ... */
	bool in_container;                      /* its lost time counts for a container that has the same TID */
	int32_t role;                           /* first vCPU that the thread executes: index into catalog->role; -1: none */
};

/* A vCPU that a thread executes at times. TIDs are reused: one TID may be several vCPUs one after the other, or none. */
struct catalog_role {
	uint32_t vcpu;                          /* index into catalog->cpu */
	int32_t next;                           /* the same thread's next role: index into catalog->role; -1: none */
};

struct catalog_machine {
	const char *name;                       /* "host" for the host; unescaped: escape before printing */
	enum machine_kind kind;
	int32_t parent;                         /* VM: the machine that runs it, an index; -1: unknown, or no VM */
	bool runs_vms;                          /* the machine is a VM's parent */
	bool hides_stolen_time;                 /* a VM with neither a host trace nor a steal clock */
	bool is_virtual;                        /* known to be a VM */
	int32_t group;                          /* container: index into catalog->group; -1: a namespace, or no container */
	int32_t whole;                          /* the machine whose threads it has, an index; -1: unknown (a container) */
	uint32_t cpu, cpus;                     /* its CPUs are catalog->cpu[cpu .. cpu + cpus - 1], by number */
	uint32_t thread, threads;               /* its threads are catalog->thread[thread .. thread + threads - 1], by TID */
};

struct catalog {
	const struct history *h;                /* borrowed */
	struct catalog_machine *machine;           /* the host first (if it has a trace), VMs by name, then containers */
	struct catalog_cpu *cpu;
	struct catalog_thread *thread;
	struct catalog_role *role;
	struct catalog_group *group;
	uint32_t machines, cpus, threads, roles, groups;
	/* Values in enum vcpu_state ... by this history's state number, matched by name; unknown names are UNKNOWN. The
	 * masks below hold the history's state numbers: bit n = state n is in the set. */
	uint8_t vcpu_state[HISTORY_STATES], thread_state[HISTORY_STATES];
	uint8_t out_reason[HISTORY_STATES];     /* enum out_reason; unknown names are OUT_REASON_COUNT */
	uint8_t poll_outcome[HISTORY_STATES];   /* enum poll_outcome; unknown names are POLL_UNKNOWN */
	uint64_t vcpu_gap, thread_gap;          /* states that make a gap: runnable, but not running */
	uint64_t vcpu_lost;                     /* vcpu_gap and VMM */
	uint64_t vcpu_ran, thread_ran;          /* states in which it ran, as in struct demand */
	bool has_cores;                         /* the history contains the pCPUs' cores */
	bool has_siblings;                      /* a core has several CPUs */
	bool has_counters;                      /* the history contains instructions and cycles */
	bool folded;                            /* no vCPU was ever HOST_BLOCKED: that state may be folded into PREEMPTED (as
	                                         * in the paper) */
	struct thread_set *set;                 /* the last machine's threads, chosen by catalog_select(); NULL: none */
	bool has_run_states;                    /* the host is a hypervisor that schedules vCPUs without host threads (Xen) */
	struct window_stores *windows;          /* the latest windows' sums: see window_gaps.h */
};

int catalog_open(struct catalog *catalog, const struct history *h, struct error *err);
void catalog_release(struct catalog *catalog);
/* Return an index, or -1. The host has the name "host". */
int catalog_find_machine(const struct catalog *catalog, const char *name);
int catalog_find_thread(const struct catalog *catalog, uint32_t machine, int32_t tid);
int catalog_find_cpu(const struct catalog *catalog, uint32_t machine, unsigned number);
/* Decodes a reference to a thread or CPU, "machine/number", as attributes store it: returns the machine's index, or -1 if
 * it is not in the catalog, and the number in *number. */
int catalog_ref(const struct catalog *catalog, int64_t value, uint32_t *number);

struct target {
	enum target_kind { TARGET_MACHINE, TARGET_CPU, TARGET_THREAD } kind;
	uint32_t index;  /* index into catalog->machine, ->cpu or ->thread */
};
/* Returns true if the target's stolen time is known, from the host's trace or from the guest's steal clock: false
 * for a VM with neither and for its vCPUs. */
bool catalog_has_host_trace(const struct catalog *catalog, const struct target *target);
/* Returns true if its lost time is a lower bound: a VM without a host trace, or its parts. NULL: any such VM. */
bool catalog_lacks_host_trace(const struct catalog *catalog, const struct target *target);
/* Finds all targets that match a text: "Debian", "Debian/3525", "Debian/CPU0", "host/42" (without VMs: "42"), a group's
 * path, a thread's name at any time ("Debian/fibonacci", or "fibonacci" on any machine). If no name is equal: targets
 * whose name starts with the text or matches it as a glob ("Debian/critical*", "vm0?/CPU0"). The caller frees *found. */
int catalog_find_targets(const struct catalog *catalog, const char *text, struct target **found, size_t *n,
                         struct error *err);
/* Sets *out to the only target found. If none or several were found, returns an error; its remedy lists the candidates. */
int catalog_single_target(const struct catalog *catalog, const char *text, const struct target *found, size_t n,
                       struct target *out, struct error *err);
/* catalog_find_targets() and catalog_single_target(). */
int catalog_parse_target(const struct catalog *catalog, const char *text, struct target *out, struct error *err);
/* Finds the target's lifetime (first and last ns): returns 1, 0 = never alive, -1 = error. Machines and CPUs are
 * always alive. */
int catalog_lifetime(const struct catalog *catalog, const struct target *target, int64_t *start, int64_t *end,
                     struct error *err);
#define ACTOR_TEXT 640  /* bytes, for a target's or actor's longest text: machine (MACHINE_NAME), TID, comm */
/* Write "Debian/3525 critical_task", escaped, with the name that the thread had longest; the form for commands,
 * "Debian/3525"; the arguments "view FILE --row Debian/3525 --at 12:03:04.113900" for a time in it. Return buf. */
char *catalog_target_text(const struct catalog *catalog, const struct target *target, char *buf, size_t size);
char *catalog_operand_text(const struct catalog *catalog, const struct target *target, char *buf, size_t size);
char *catalog_view_command(const struct catalog *catalog, const struct target *target, int64_t at, char *buf, size_t size);
uint32_t target_machine(const struct catalog *catalog, const struct target *target);
const char *catalog_longest_name(const struct catalog *catalog, uint32_t thread);  /* raw; "": none */

/* Appends copies of the warnings that concern answers on this target (NULL: on all) within [from, to]: notes on the traces
 * that its machine and its outer machines have, and notes that concern no single machine. Returns false if the history's
 * notes are damaged. */
bool warnings_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct notes *out);

/* ---- Queries in steps ------------------------------------------------------------------------------------------ */

/* A query that may take long. flow_open() and the other *_open() functions start it, query_step() works on it, and
 * query_take() returns the answer, once. query_close() is allowed between any two steps. A query borrows the catalog. */
struct query;
/* Works for about ns, on all processors. Returns 1 = the answer is ready, 0 = not yet, -1 = error. */
int query_step(struct query *q, int64_t ns, struct error *err);
double query_done(const struct query *q);  /* returns the progress, 0 .. 1 */
/* Repeats query_step() until the answer is ready; `progress` may be NULL. */
int query_run(struct query *q, const struct progress *progress, struct error *err);
/* Moves the answer to *out: the struct that belongs to the *_open() function, for example struct flow to flow_open(), or a
 * char * that the caller frees. */
#define query_take(q, out) query_take_bytes((q), (out), sizeof *(out))
void query_take_bytes(struct query *q, void *answer, size_t bytes);
void query_close(struct query *q);         /* NULL is allowed */
/* Runs a query that was just opened (NULL: its *_open() function failed), moves the answer to *out, and closes the query.
 * On failure *out is empty. */
#define query_answer(q, out, err) query_answer_bytes((q), NULL, (out), sizeof *(out), (err))
int query_answer_bytes(struct query *q, const struct progress *progress, void *answer, size_t bytes, struct error *err);

/* ---- Execution flow (paper, Algorithms 1 and 2, Eq. 3) ----------------------------------------------------- */

/* X(code, name in csv and json) */
#define FLOW_KINDS(X) \
	X(FLOW_RUNNING, "running")        /* the target itself */ \
	X(FLOW_PREEMPTING, "preempting")  /* another thread has the CPU that the target waits for */ \
	X(FLOW_HYPERVISOR, "hypervisor")  /* the hypervisor works on behalf of the thread in `tid` */ \
	X(FLOW_IRQ, "irq")                /* an interrupt or softirq handler */ \
	X(FLOW_WAITING, "waiting")        /* the target sleeps; the actor is its waker */ \
	X(FLOW_IDLE_CPU, "idle-cpu")      /* runnable, but the pCPU is idle: wakeup latency or migration */ \
	X(FLOW_LIMITED, "limited")        /* a limit (quota, pause, ...) keeps the target from running: see actor.reason */ \
	X(FLOW_UNKNOWN, "unknown")        /* events were lost */ \
	X(FLOW_CURRENT, "current")        /* a thread, handler or the idle task is current on the vCPU that the target waits \
	                                   * for, or the provider has taken that vCPU: the guest has no source of stolen time */
#define FLOW_CODE(code, name) code,
enum flow_kind { FLOW_KINDS(FLOW_CODE) FLOW_KIND_COUNT };
#undef FLOW_CODE
extern const char *const flow_kind_name[FLOW_KIND_COUNT];

/* A CPU's user, or the reason that the CPU has no user. */
struct actor {
	int32_t machine;
	int32_t tid;         /* -1: no thread, or all; 0: idle task (swapper) */
	uint32_t name;       /* index into the answer's names */
	uint16_t kind;       /* enum flow_kind; 16 bits, so that the struct has no padding */
	uint16_t reason;     /* FLOW_LIMITED: enum out_reason; OUT_REASON_COUNT: unknown to this program; otherwise 0 */
};
static_assert(sizeof(struct actor) == 16, "actors are compared byte by byte");

/* Returns true if the kind stands for another thread that has, or may have, the CPU. */
static inline bool flow_is_thread(uint32_t kind)
{
	return kind == FLOW_PREEMPTING || kind == FLOW_CURRENT;
}

static inline bool actor_same(const struct actor *a, const struct actor *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* Returns true if the culprit is known in a path's step or in a lock wait: an actor, or a limit (FLOW_LIMITED). */
static inline bool actor_is_known(const struct actor *p)
{
	return p->machine >= 0 || p->kind == FLOW_LIMITED;
}

/* Interval in which one actor had the CPU. */
struct flow_interval {
	int64_t start, end;  /* ns, closed */
	uint32_t entry;      /* index into flow->entry */
	int16_t pcpu;        /* -1: unknown */
};

/* Sum over one actor's intervals. */
struct flow_entry {
	struct actor actor;
	int64_t duration;    /* ns */
	int64_t lost;        /* part that the target lost, ns */
	double share;        /* D(T), Eq. 3: duration / the window's length */
	uint64_t intervals;
	int64_t idle_ns;       /* part in intervals that last IDLE_LIMIT_NS or longer, ns */
	struct { int64_t start, ns; int16_t pcpu; } longest;  /* the actor's longest interval; the first one if several are
	                                                       * equal; pcpu: -1: unknown */
};

/* Time that the target lost to one actor on one pCPU of the host. */
struct flow_cpu {
	uint32_t entry;
	int16_t pcpu;        /* -1: unknown */
	int64_t ns;
};

/* An entry's time in one column: the window is divided into equal columns. */
struct flow_cell {
	uint32_t entry, column;
	int64_t ns;
};

struct flow {
	int64_t start, end;             /* the window, cut to the target's lifetime */
	struct flow_interval *interval; /* intervals that tile [start, end]: interval[i].end + 1 == interval[i + 1].start;
	                                 * NULL: not requested, or too many */
	size_t intervals;
	struct flow_entry *entry;       /* longest first */
	size_t entries;
	unsigned columns;
	struct flow_cell *cell;         /* sorted by column; cells with 0 ns are omitted */
	size_t cells;
	struct flow_cpu *cpu;           /* with flow_options.cpus: each entry's lost time by CPU */
	size_t cpus;
	char **name;                    /* raw names: escape before printing */
	size_t names;
};

/* Limits for a flow's lists. The sums always cover the whole window. */
struct flow_options {
	size_t intervals;               /* store the intervals if there are at most so many, otherwise none; SIZE_MAX: always */
	unsigned columns;               /* number of columns in the window, for `cell`; 0: no cells */
	bool cpus;                      /* sum the lost time by CPU */
	bool no_idle_task;                 /* name an idle guest's vCPU as actor instead of its idle task */
};

/* Starts the query for a thread's or CPU's flow within [from, to], cut to its lifetime: the sequence of actors that had
 * the CPU while the target ran or waited for the CPU. An idle vCPU counts as FLOW_WAITING. options NULL: all
 * intervals, no cells. */
struct query *flow_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                        const struct flow_options *options, struct error *err);
void flow_release(struct flow *f);
/* Returns the interval that contains t, an index; the first or last interval if t is outside. */
size_t flow_interval_at(const struct flow *f, int64_t t);
/* Returns column c's first ns, with [start, end] divided into n equal columns. Column n starts after the window. */
int64_t flow_column(int64_t start, int64_t end, unsigned c, unsigned n);

/* The main culprit, for one line of text.
 * - The machine that took most. If one actor there took more than half of that, and no actor on another machine took
 *   more: that actor; otherwise the machine as a whole (tid -1).
 * - The hypervisor's work for the target itself counts as a separate machine.
 * - An actor without a machine (idle CPU, limit) is chosen only if no machine took more. */
struct top_culprit {
	struct actor actor;    /* FLOW_RUNNING: no culprit */
	int64_t ns;
	size_t actors;      /* number of actors summed in ns: 1, or all culprits on the machine */
};
/* Finds the main culprit among the n entries. */
void flow_top_culprit(const struct catalog *catalog, const struct target *self, const struct flow_entry *entry, size_t n,
                  struct top_culprit *out);
/* Returns true if the culprit is the target's own machine as a whole: "other threads of Debian". */
bool culprit_is_own(const struct catalog *catalog, const struct target *self, const struct actor *culprit);

/* ---- Gaps and steal ----------------------------------------------------------------------------------------- */

/* A maximal interval in which a vCPU or thread was runnable and did not run: vCPU PREEMPTED, HOST_BLOCKED or WAKING,
 * thread PREEMPTED or VIRT_PREEMPTED. VMM time of a vCPU is no gap, because the vCPU has its pCPU. "Lost" is the
 * sum of the gaps, and for a vCPU also its VMM time. A gap's culprits are the flow's entries within it, longest first. */
struct gap {
	struct target target;
	int64_t start, end;
	int64_t state;                  /* state in most of the gap (the history's state number, see history_state_name());
	                                 * the lower number if two are equal */
};
/* Finds a CPU's or thread's next gap (direction > 0) after t, or the previous gap before t. Returns 1, 0 = none, -1 =
 * error. */
int gap_find(const struct catalog *catalog, const struct target *target, int64_t t, int direction, struct gap *out,
             struct error *err);
/* The same for the gap that contains t. */
int gap_at(const struct catalog *catalog, const struct target *target, int64_t t, struct gap *out, struct error *err);
/* Computes the exact ns that a target lost within [t0, t1], from the state sums alone, in O(log n) per row. A VM is the
 * sum of its vCPUs; the host and a container are the sum of their threads. Threads that execute a vCPU count for the VM
 * only, a container's threads for the container only. */
int steal_time(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err);

/* A target's CPU demand and the part that was met, computed from the state sums alone, in O(log n) per row. Rows as in
 * steal_time(). */
struct demand {
	int64_t ran, lost;       /* ns; ran + lost is the runnable time; lost as in steal_time() */
	int64_t vmm_ns;          /* part of `lost`: the vCPUs' VMM time, which is no gap, ns */
	int64_t slept;           /* ns */
	int64_t alive;           /* lifetime, ns: all these, and time in unknown states */
	unsigned rows;           /* number of rows summed: for a VM, its vCPUs */
};
int demand_of(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1, struct demand *out,
              struct error *err);
/* Returns "%", or "?" if the state is unknown for longer than it is known: the unit of the lost share. */
static inline const char *demand_share_unit(const struct demand *d)
{
	return d->alive - d->ran - d->lost - d->slept > d->ran + d->lost ? "?" : "%";
}

/* ---- Gaps, one after the other --------------------------------------------------------------------------------- */

/* A gap's interval with one culprit. The intervals tile the gap. */
struct gap_interval {
	const struct gap *gap;
	bool of_machine;         /* the interval counts for its machine's lost time, as in steal_time() */
	const char *victim;      /* name that the thread had longest, raw; NULL: the victim is a vCPU */
	int64_t start, end;
	struct actor actor;        /* culprit; its name is `name`, not actor.name */
	const char *name;        /* ... this, raw */
	int pcpu;                /* -1: unknown */
};
/* Calls fn for each interval in each gap within [from, to], on all vCPUs and on all threads that execute no vCPU: row by
 * row, in time order; and once with NULL at the end. Names are valid until then. If fn returns other than 0, stops
 * and returns that; returns -1 on error. Memory does not grow with the history. progress->tick may be NULL; its unit is
 * rows. */
int gap_each_interval(const struct catalog *catalog, int64_t from, int64_t to,
                      int (*fn)(void *arg, const struct gap_interval *p), void *arg, const struct progress *progress,
                      struct error *err);
/* The same for one target's rows, as in gap_list_open(). */
int gap_each_interval_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                      int (*fn)(void *arg, const struct gap_interval *p), void *arg, struct error *err);
/* Computes demand_of() for n cells; cell i is [edge[i], edge[i + 1] - 1]. Adds the ns to ran[n] and lost[n]. */
int demand_cells(const struct catalog *catalog, const struct target *target, const int64_t *edge, unsigned n, int64_t *ran,
                 int64_t *lost, struct error *err);

/* ---- Victims ---------------------------------------------------------------------------------------------------- */

/* A machine's or thread's lost time; `lost` as in struct demand, gaps as in struct gap. */
/* X(code, name): a machine's threads that are one row together */
#define THREAD_GROUPING_LIST(X) \
	X(GROUP_NONE, "thread") X(GROUP_BY_NAME, "name") X(GROUP_BY_PROCESS, "process") X(GROUP_BY_CGROUP, "cgroup")
#define GROUPING_CODE(code, name) code,
enum thread_grouping { THREAD_GROUPING_LIST(GROUPING_CODE) THREAD_GROUPINGS };
#undef GROUPING_CODE
extern const char *const thread_grouping_name[THREAD_GROUPINGS + 1];  /* NULL-terminated */

struct summary_row {
	struct target target;    /* in a group's row: the thread that lost most ... */
	int64_t most;            /* ... and how much, ns */
	uint32_t threads, first; /* number of threads; first: a group's first index in summary.member; 0, 0: a machine */
	int32_t group_tid;       /* a group's process; -1: none */
	const char *group;       /* a group's raw name, owned by the summary; NULL: none, or a process or name with one
	                          * thread */
	int64_t start, end;      /* the target's lifetime, cut to the window; closed */
	struct demand demand;
	uint64_t gaps;           /* number of gaps; 0, like all members below, until the gaps were read */
	int64_t p50, p90, p99;   /* percentiles over its gaps' lengths, ns, nearest rank; within 1/PERCENTILE_BOUND */
	struct gap longest;      /* longest gap (the first if several are equal), cut to the window; its target is the vCPU
	                          * or thread with the gap */
	/* As in struct top_culprit. FLOW_HYPERVISOR on a machine: VMM time was the largest part. */
	struct actor culprit;
	int64_t culprit_ns;
	bool has_gaps;           /* its gaps were read */
};

/* X(code, name, order) */
#define SUMMARY_ORDERS(X) \
	X(SUMMARY_BY_LOST, "lost", "time lost; guests before the host") \
	X(SUMMARY_BY_SHARE, "share", "share of the runnable time lost") \
	X(SUMMARY_BY_LONGEST, "longest", "longest gap") \
	X(SUMMARY_BY_P99, "p99", "p99 of the gaps") \
	X(SUMMARY_BY_GAPS, "gaps", "number of gaps") \
	X(SUMMARY_BY_RAN, "ran", "time run") \
	X(SUMMARY_BY_LIFE, "life", "lifetime") \
	X(SUMMARY_BY_ID, "id", "machines as in the catalog, threads by TID")
#define SUMMARY_ORDER(code, name, first) code,
enum summary_order { SUMMARY_ORDERS(SUMMARY_ORDER) SUMMARY_ORDER_COUNT };
#undef SUMMARY_ORDER

struct summary {
	int64_t start, end;
	struct summary_row *row;  /* machines, then threads that execute no vCPU; sorted by `by`, the host's threads
	                           * last */
	size_t machines, rows;    /* row[machines .. rows - 1] are threads */
	char **name;
	size_t names;
	bool gaps;                /* the rows contain numbers of gaps */
	struct thread_groups *groups;  /* NULL: none */
	uint32_t *member;         /* all groups' threads, group by group: indices into catalog->thread */
	enum summary_order by;    /* the rows' order */
};

struct summary_options {
	const struct target *only;  /* only this machine and its threads; NULL: all */
	int64_t from, to;
	bool gaps;                   /* read the gaps; false: demands only, in O(log n) per row */
	enum thread_grouping grouping;
	enum summary_order by;       /* the rows' order */
	size_t top;                  /* read only gaps on the machines and on the first `top` threads or groups that lost time,
	                              * if the order does not depend on gaps; 0: all */
	bool machines_only;          /* no threads; `top` counts machines */
};

extern const char *const summary_order_name[SUMMARY_ORDER_COUNT + 1];  /* NULL-terminated */
/* Sorts the machines, and the threads, separately. */
void summary_sort(struct summary *s, const struct catalog *catalog, enum summary_order by);
static inline bool summary_order_reads_gaps(enum summary_order by)
{
	return by == SUMMARY_BY_LONGEST || by == SUMMARY_BY_P99 || by == SUMMARY_BY_GAPS;
}

struct query *summary_open(const struct catalog *catalog, const struct summary_options *options);
void summary_release(struct summary *s);
/* Writes a row's name: "Debian/151 x", a group's "Debian/x (8 threads)"; is_key: without the number. Returns buf. */
char *summary_row_text(const struct catalog *catalog, const struct summary_row *row, bool is_key, char *buf, size_t size);

/* ---- Gap lists -------------------------------------------------------------------------------------------- */
#define LENGTH_BINS 63  /* histogram by length: bin i counts lengths from 2^i to 2^(i + 1) - 1 ns; bin 0 counts also 0 */
unsigned length_bin(int64_t ns);

struct gap_options {
	int64_t from, to;        /* gaps are cut to this window */
	int64_t min;             /* omit gaps shorter than this, ns */
	size_t top;              /* number of the longest gaps to list; 0: all */
	bool after_sleep;        /* only gaps that begin with a wakeup: their length is the wakeup latency */
};

struct gap_item {
	struct gap gap;
	size_t culprit;          /* the gap's first culprit in list->culprit */
	size_t culprits;         /* number of its culprits, longest first: their durations add up to the gap */
	struct top_culprit top;        /* the main one */
};

/* Distribution of lengths over all gaps from gap_options.min on, including the gaps that `top` omits. */
struct gap_lengths {
	struct target target;      /* vCPU or thread; unset in gap_list.all */
	uint64_t count;
	int64_t total;           /* ns */
	int64_t p50, p90, p99, longest;  /* ns, nearest rank; 0 without gaps */
	uint64_t bin[LENGTH_BINS];
};

struct gap_list {
	struct gap_item *item;   /* longest first, then by time */
	size_t items;
	struct flow_entry *culprit;
	size_t culprits;
	struct gap_lengths all;
	struct gap_lengths *row; /* one per vCPU or thread with gaps, largest total first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for the gaps of a vCPU, a thread, a VM (its vCPUs), the host or a container (its threads); NULL: all
 * VMs. With min <= 1, total == steal_time() in the same window. */
struct query *gap_list_open(const struct catalog *catalog, const struct target *target, const struct gap_options *options);
void gap_list_release(struct gap_list *l);

/* ---- Steal matrix: victims and culprits ----------------------------------------------------------------------- */

enum steal_by { STEAL_BY_MACHINE, STEAL_BY_THREAD };

struct steal_cell {
	struct actor victim;     /* kind FLOW_RUNNING. By machine: tid is -1 and name 0, also of culprits */
	struct actor culprit;
	int64_t ns;
	double share;            /* ns / the victim's lost time: a victim's shares add up to 1 */
};

struct steal {
	int64_t start, end;
	enum steal_by by;
	struct target victim;   /* the only victim: valid if is_one */
	bool is_one;             /* the only victim is a vCPU or a thread; the cells may name its machine instead */
	struct steal_cell *cell; /* sorted by victim, largest sum first; then by culprit, largest first */
	size_t cells;
	char **name;
	size_t names;
};

struct steal_options {
	enum steal_by by;
	const struct target *only;  /* only this victim: a machine, vCPU or thread; NULL: all */
	int64_t from, to;
	size_t most;             /* maximum number of cells by thread: with more, the answer is by machine; 0: no limit */
	enum thread_grouping grouping;  /* by thread: groups victims and culprits */
};

/* Starts the query for the time that each victim lost to each culprit within [from, to].
 *
 * - By machine: a VM is the sum of its vCPUs, the host and containers are the sum of their threads, as in steal_time().
 * - By thread: each thread that executes no vCPU. If the target is a vCPU: that vCPU under its machine's name.
 *
 * Conservation: a victim's cells add up to its steal_time(). */
struct query *steal_open(const struct catalog *catalog, const struct steal_options *options);
void steal_release(struct steal *s);

/* ---- VM exits --------------------------------------------------------------------------------------------------- */

/* A vCPU's VM exits for one reason; with by_thread also for one guest thread. */
struct exit_row {
	uint32_t vcpu;           /* index into catalog->cpu */
	int32_t tid;             /* guest thread that was current; 0: the guest's idle task; -1: all threads, or unknown */
	uint32_t name;           /* that thread's name: index into exit_list.name */
	uint32_t reason;         /* exit reason: index into exit_list.name; the kernel's name for that architecture, or a
	                          * number */
	uint64_t count;          /* number of exits that start in the window */
	uint64_t timed;          /* the exits with a recorded re-entry; the times below cover only them */
	int64_t total;           /* ns from exit to re-entry, also if the re-entry is after the window */
	int64_t min, p99, max;   /* ns; p99 by nearest rank; 0 if `timed` is 0 */
	int64_t max_at;          /* when the longest exit started; the first one if several are equal */
	uint64_t bin[LENGTH_BINS];  /* number of timed exits by length */
};

struct exit_list {
	struct exit_row *row;    /* sorted by vCPU, then by total, longest first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
	unsigned vcpus, silent;  /* number of vCPUs in the answer; those without any exit in the history */
};

struct exit_options {
	const struct target *only;  /* a machine, a vCPU, its host thread, a guest's thread; the host or NULL: all VMs */
	int64_t from, to;
	bool by_thread;          /* add rows per guest thread; their sums are the vCPU's row */
	/* Called at the start of each exit (`reason`: index into exit_list.name); the list then has no rows. NULL: build the
	 * list. */
	void (*begins)(void *arg, uint32_t vcpu, uint32_t reason, int64_t t);
	void *arg;
};

/* Starts the query for VM exits with the time from the exit to the same vCPU's next entry, as in `perf kvm stat`. Returns
 * NULL and sets *err for a target without exits, such as a pCPU. */
struct query *exits_open(const struct catalog *catalog, const struct exit_options *options, struct error *err);
void exits_release(struct exit_list *l);

/* ---- Critical path ---------------------------------------------------------------------------------------------- */

/* Relation between an interval's actor and the next interval's actor. */
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
	int64_t start, end;          /* the window, cut to the target's lifetime */
	struct path_interval *interval;    /* tiles the window */
	size_t intervals;
	struct path_sum *sum;        /* longest first */
	size_t sums;
	int64_t unknown;             /* time without a known actor, ns */
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for the reasons why a thread or vCPU took the time from `from` to `to`. While the target runs, the
 * cause is the target; while it waits for a CPU, the culprit that has the CPU; while it sleeps, its waker's activity,
 * on any machine, recursively. FLOW_UNKNOWN: no event proves the cause, and no event is close enough to infer it.
 * Returns NULL on error. */
struct query *path_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                        struct error *err);  /* NULL: error */
void path_release(struct path *p);

/* ---- Lock waits ------------------------------------------------------------------------------------------------- */

/* A thread's wait for a lock, or a vCPU's spinning. */
struct lock_wait {
	struct actor waiter;         /* tid -1: unknown, the vCPU's guest has no trace */
	int32_t vcpu;                /* vCPU that spins, if only VM exits show the wait: index into catalog->cpu; -1: lock
	                              * events show the wait */
	int64_t start, end;          /* ns, closed; within the window */
	uint32_t kind;               /* "mutex", "futex", ... or "pause" (spinning): index into the names */
	struct actor holder;         /* the lock's owner, or the suspected owner; machine -1: unknown */
	uint32_t suspects;           /* the candidates' name, "104 or 105", if several holders are equally likely and
	                              * `holder` is unset; otherwise 0 */
	struct actor culprit;          /* actor that kept the holder off the CPU longest, or the waiter if the holder lost
	                                * nothing; machine -1: none */
	int64_t culprit_ns;               /* ns that the culprit took from the holder, or from the thread that the holder
	                                   * waited for */
	int64_t waiter_lost_ns;           /* ns that the waiter itself lost: after its wakeup, or while it spun */
	bool spins;                  /* spinning, not asleep */
	double suspicion;            /* if no event names the holder: the wait's share in which the suspect had no CPU;
	                              * otherwise 0 */
};

struct lock_list {
	struct lock_wait *wait;      /* longest first */
	size_t waits;
	char **name;                 /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for lock waits: a thread's (with vCPUs that spin while the thread is current), a vCPU's (spinning only),
 * a machine's, or all machines' (NULL). */
struct query *locks_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to);
/* Returns true if the history contains the machine's lock events. */
bool locks_have_events(const struct catalog *catalog, uint32_t machine);
void locks_release(struct lock_list *l);

/* ---- Shared cores ------------------------------------------------------------------------------------ */

/* Time that was given but worth less: on a core whose other CPU was busy, below the base frequency, or on another NUMA node
 * than the memory; and moves between CPUs.
 *
 * These times are parts of `ran`, never of `lost`. They need the host's topology (stealscope-session(5)). */

#define SLOW_PERCENT 90  /* a CPU is slow below this percentage of its base frequency */

/* Hardware counters in the part of the time in which both counted (see counter_walk.c). */
struct core_counts { int64_t ns, instructions, cycles; };
/* Returns instructions per cycle; 0: unknown. */
static inline double core_ipc(const struct core_counts *c)
{
	return c->cycles > 0 ? (double)c->instructions / (double)c->cycles : 0;
}

struct core_time {
	/* ns. ran == alone + shared + unknown, and as in struct demand */
	int64_t ran;
	int64_t alone;       /* the core's other CPUs were idle, or the core has only one CPU */
	int64_t shared;      /* another CPU in the core was busy */
	int64_t unknown;     /* the core, or whether its other CPUs were busy, is unknown */
	/* ns */
	int64_t slow;        /* ran below SLOW_PERCENT of the base frequency; part of `clocked` */
	int64_t clocked;     /* ran on a CPU with known base and current frequency */
	int64_t remote;      /* ran on another node than most of the VM's memory; part of `placed` */
	int64_t placed;      /* ran on a known node, and the VM has a known memory node */
	/* how often it ran on another CPU than before, with another last-level cache, on another node */
	int64_t moves, llc_moves, node_moves;
};

/* Time that a row shared its core with one user on another CPU in the core. On cores with two CPUs a row's sharers add up
 * to its `shared`; with more CPUs, several may be busy at a time, and each counts. */
struct core_sharer {
	struct actor actor;  /* a vCPU (tid -1, name "vCPU0"), a host thread, or an interrupt handler */
	int64_t ns;
	struct core_counts counts;  /* the target's, beside this sharer */
};

struct core_row {
	struct target target;
	struct core_time time;
	struct core_counts counts, alone, shared;  /* in all time; in time alone on the core; beside any sharer */
	size_t sharer, sharers;  /* its sharers are share->sharer[sharer .. sharer + sharers - 1], longest first */
};

struct core_share {
	int64_t start, end;
	struct core_row *row;    /* in the targets' order */
	size_t rows;
	struct core_sharer *sharer;
	size_t sharers;
	char **name;             /* the actors' raw names: escape before printing */
	size_t names;
	bool cores;              /* the history contains the pCPUs' cores */
	bool counters;           /* the history contains instructions and cycles */
	bool siblings;           /* the host has cores with several CPUs */
	bool frequencies;        /* the history contains frequencies and base frequencies */
	bool nodes;              /* the host has several NUMA nodes, and a VM has a known memory node */
};

/* Lists the vCPUs and threads in an answer about a target (NULL: all): vCPUs, and the host's and containers' threads that
 * execute no vCPU; or the vCPU or thread itself. The caller frees *out. Returns their number. */
size_t core_share_targets(const struct catalog *catalog, const struct target *only, struct target **out);
void core_share_sort(struct core_share *s);  /* sorts the rows by shared time, longest first */

/* Starts the query for targets (machines, vCPUs, threads). A VM is the sum of its vCPUs, the host and containers are the
 * sum of their threads, as in steal_time(). The targets are copied. */
struct query *core_share_open(const struct catalog *catalog, const struct target *target, size_t n, int64_t from,
                              int64_t to);
/* The same for a summary's rows. Returns NULL if the topology is unknown, and for thread groups. */
struct query *core_share_open_summary(const struct catalog *catalog, const struct summary *s);
void core_share_release(struct core_share *s);

/* ---- Culprit sums ------------------------------------------------------------------------------------ */

/* Gap sums by culprit, in any window. */

/* Computes a history's sums, which answer any window without reading its gaps, and writes them into it: for
 * history_derive(). arg: const unsigned *, the number of threads (see parallel_workers()); NULL: one per core. */
int culprit_sums_derive(void *arg, const struct history *h, struct history_builder *b, struct error *err);

/* The sums' percentiles come from a histogram: they differ from the exact ones by at most 1/PERCENTILE_BOUND. */
#define PERCENTILE_BOUND 128

/* Time that one culprit took. */
struct culprit_ns {
	uint32_t culprit;        /* index into culprit_sums.actor */
	uint32_t intervals;      /* number of maximal intervals */
	int64_t ns;
	int64_t longest;         /* longest interval, ns ... */
	int64_t longest_start;   /* ... and its time: see culprit_sums.precision */
};

/* A vCPU's or thread's gaps within the window; gaps at its edges are cut there. */
struct culprit_sums_row {
	struct target target;
	uint32_t machine;        /* its machine */
	uint64_t gaps;
	int64_t lost;            /* sum of the gaps, ns: lost time without the vCPUs' VMM time */
	int64_t longest, longest_start;  /* ns, and its time; the first one if several are equal */
	struct culprit_ns *culprit;  /* ascending; they add up to `lost` */
	size_t culprits;
};

struct culprit_sums {
	int64_t start, end;
	int64_t precision;       /* a culprit's longest interval starts at most so many ns after longest_start */
	struct culprit_sums_row *row;  /* rows with gaps: vCPUs, then threads */
	size_t rows;
	struct actor *actor;
	size_t actors;
	char **name;             /* the actors' raw names */
	size_t names;
};

/* Starts the query for the sums of a VM's vCPUs, the host's or a container's threads, one vCPU or one thread; NULL: all
 * vCPUs and all threads that execute none. It reads few blocks from the history, and sweeps the window before and after
 * them: about 1 ms for 100 rows, however long the window is. */
struct query *culprit_sums_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to);
/* Returns a vCPU's or thread's row; NULL: it has no gaps. */
const struct culprit_sums_row *culprit_sums_row_of(const struct culprit_sums *s, const struct catalog *catalog,
                                                   const struct target *target);
void culprit_sums_release(struct culprit_sums *s);

/* ---- Culprits waiting -------------------------------------------------------------------------------- */

/* A target's longest wait, and the wait in which a given culprit took most. */

struct culprit_waits {
	struct gap longest;        /* longest gap; valid if found */
	struct actor longest_by;   /* its main culprit, as in struct top_culprit; FLOW_RUNNING: none */
	char longest_name[128];    /* that culprit's raw name; "": none */
	struct gap taken;          /* gap in which the given culprit took most; valid if taken_ns > 0 */
	int64_t taken_ns;          /* time in `taken` that the culprit took, ns */
	bool found;
};

/* Reads the gaps that `read` (a machine, vCPU or thread) has within [from, to]; names culprits from the victim's view.
 * culprit, name: the victim's top culprit and its raw name. Calls `stop` now and then, and returns 1 if it returns true.
 * Returns 0, or -1 on error. */
int culprit_waits_of(const struct catalog *catalog, const struct target *victim, const struct target *read, int64_t from,
                     int64_t to, const struct actor *culprit, const char *name, bool (*stop)(void *arg), void *arg,
                     struct culprit_waits *out, struct error *err);

/* ---- Idle vCPUs' wakers ----------------------------------------------------------------------------------------- */

#define WAIT_KINDS(X) \
	X(WAIT_TIMER, "timer")      /* the guest's timer, or the host's for the guest */ \
	X(WAIT_IPI, "ipi")          /* another vCPU in the same guest */ \
	X(WAIT_NET, "net")          /* thread that moves the guest's packets, or a packet */ \
	X(WAIT_DEVICE, "device")    /* another thread in the VMM process, or a device's interrupt */ \
	X(WAIT_TASK, "task")        /* any other host thread */ \
	X(WAIT_STOPPED, "stopped")  /* the VMM pauses or resumes the VM: a pause, a migration */ \
	X(WAIT_UNKNOWN, "unknown")  /* no event shows the waker */
#define WAIT_CODE(code, name) code,
enum wait_kind { WAIT_KINDS(WAIT_CODE) WAIT_KIND_COUNT };
#undef WAIT_CODE
extern const char *const wait_kind_name[WAIT_KIND_COUNT];

/* An idle vCPU's or a thread's sleeps that one actor ended. */
struct wait_row {
	uint32_t vcpu;           /* index into catalog->cpu; UINT32_MAX: the target is a thread */
	enum wait_kind kind;
	struct actor by;         /* the waking thread or handler (tid -1); machine -1: unknown */
	uint64_t count;
	int64_t total;           /* time asleep within the window, ns */
	double share;            /* total / all the vCPU's sleeps */
};

struct wait_list {
	struct wait_row *row;    /* sorted by vCPU, longest first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* Starts the query for a vCPU's wakers, those for all its vCPUs if the target is a VM, or for all vCPUs (NULL), from the
 * host's events alone; for a thread, the wakers that ended its sleeps. */
struct query *waits_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to);
void waits_release(struct wait_list *l);

/* ---- Halt polling ---------------------------------------------------------------------------------------------- */

/* A vCPU's halts that the host polled before it blocked the thread, with one outcome. */
struct poll_row {
	uint32_t vcpu;           /* index into catalog->cpu */
	enum poll_outcome outcome;  /* won or lost */
	uint64_t count;
	int64_t total;           /* polling time within the window, ns */
	uint64_t timed;          /* halts with a recorded next VM entry; the times below cover only them */
	int64_t p50, p99, max;   /* ns from the poll's end (or the blocked thread's wakeup) to that entry */
	int64_t others_ns;            /* time that other threads waited for the polling pCPU, ns; 0 for nested VMs */
	struct target victim;   /* vCPU or host thread that waited longest for the polling pCPU: valid if victim_ns > 0 */
	int64_t victim_ns;       /* ns that the victim waited; 0: none */
};

struct poll_list {
	struct poll_row *row;    /* sorted by vCPU and outcome */
	size_t rows;
	unsigned vcpus, silent;  /* number of vCPUs in the answer; those without any poll in the history */
	unsigned unknown_vcpus;         /* vCPUs with an interval in which polling is unknown */
	int64_t unknown_ns;       /* these intervals together, ns */
};

/* Finds a vCPU's or VM's polled halts, or all (NULL). */
int polls_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct poll_list *out,
             struct error *err);
void polls_release(struct poll_list *l);
/* Computes the exact polling time by outcome within [t0, t1], ns, from the state sums alone. *is_recorded: the history
 * contains polls. */
int polled_time(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1,
                int64_t ns[POLL_OUTCOME_COUNT], bool *is_recorded, struct error *err);

/* ---- Preempted code in the guest's kernel ----------------------------------------------------------------------- */

/* A vCPU's preemptions at one instruction in its guest's kernel, or (address 0) in user space. */
struct preempted_code_row {
	uint32_t vcpu;           /* index into catalog->cpu */
	int64_t address;         /* guest address at the VM exit; 0: user space; kernel addresses are negative */
	uint64_t count;
	int64_t total, longest;  /* all preemptions and the longest one within the window, ns */
	int64_t longest_at;      /* when the longest preemption (the first if several are equal) started, ns */
};

struct preempted_code_list {
	struct preempted_code_row *row;  /* sorted by vCPU, then by total, longest first */
	size_t rows;
	uint64_t preempted, kernel;  /* number of preemptions; those in the guest's kernel */
	unsigned vcpus, silent;  /* number of vCPUs in the answer; those without recorded addresses */
};

/* Finds a vCPU's, a VM's or all VMs' (NULL) preemptions: the guest was runnable when the host took the CPU. */
int preempted_code_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                      struct preempted_code_list *out, struct error *err);
void preempted_code_release(struct preempted_code_list *l);

/* ---- Periodic timers --------------------------------------------------------------------------------- */

/* Periodic timers (paper, Fig. 15). */

/* A guest thread (or, if no thread ran, the guest's idle task) that wakes an idle vCPU periodically. */
struct periodic {
	int32_t machine, tid;     /* tid 0: the guest's idle task handled a timer, no thread ran */
	uint32_t name;
	uint32_t vcpu;           /* index into catalog->cpu */
	int64_t period;          /* median time between wakeups, ns */
	double regular;          /* share of these times that differ at most 10 % from one or two periods */
	uint64_t wakeups;
	int64_t busy;            /* ns that the vCPU's thread was on a pCPU for these wakeups */
	int64_t cost;            /* ns for which these wakeups kept other threads off a pCPU */
	uint64_t switches;       /* wakeups that kept another thread off a pCPU */
};

struct periodic_list {
	struct periodic *item;   /* largest cost first */
	size_t items;
	char **name;
	size_t names;
};

int periodic_timers_of(const struct catalog *catalog, int64_t from, int64_t to, struct periodic_list *out,
                       struct error *err);
void periodic_release(struct periodic_list *l);

/* ---- The viewer's queries ---------------------------------------------------------------------------- */

/* Another program part's work as a query, so that one worker runs all queries. */

struct task_kind {
	/* Works on the task; until: when the time slice ends, ns, CLOCK_MONOTONIC. Returns 1 at its end, 0 if there is more to
	 * do, -1 on error. */
	int (*step)(void *state, int64_t until, struct error *err);
	void (*release)(void *state);  /* frees the state */
};

struct query *query_task_open(const struct task_kind *kind, void *state);  /* takes ownership of the state */
void *query_task_state(struct query *q);  /* borrowed from the query */

/* ---- Text -------------------------------------------------------------------------------------------- */

/* Answers as sentences, and the flow as a tree in text (paper, Fig. 14). */

enum actor_style {
	ACTOR_PLAIN,     /* csv and json: "host/2101 burnP6", "hypervisor for Debian/3525 critical_task",
	                  * "host irq/46-iwlwifi", "idle CPU", "quota", "waiting for host/43 qemu-io", "unknown" */
	ACTOR_SHOWN,     /* tables: an actor that is no thread or machine in parentheses: "(idle CPU)", "(throttled)" */
	ACTOR_SENTENCE,  /* in a sentence: "a timer interrupt of the host", "its own CPU limit" */
	ACTOR_LABEL,     /* the name without machine and TID: "burnP6", "hypervisor" */
};
/* Writes an actor, escaped. name: raw; NULL: none. self: the text's target, so that its own machine becomes "other
 * threads of Debian"; NULL: none. Returns buf. */
char *actor_text(const struct catalog *catalog, const struct actor *actor, const char *name, enum actor_style style,
                 const struct target *self, char *buf, size_t size);
/* Returns an actor's raw name without its machine and TID: the name, or "NAME or provider" in buf if it is uncertain which
 * one it was (FLOW_CURRENT). */
const char *actor_name_text(const struct actor *actor, const char *name, char buf[ACTOR_TEXT]);

/* Returns the raw name of the target's state; "not alive" for null, "" if it has no name. */
const char *target_state_name(const struct catalog *catalog, const struct target *target, int64_t state);

/* Writes a few plain sentences, one per line, escaped, on a thread or vCPU within [from, to]: its activity, its delays,
 * the culprits, the confidence, and the next steps; on a machine (NULL: on each) its time, its waits, and what the provider
 * took. The caller frees *text. */
int explain_window(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, char **text,
                   struct error *err);
/* Starts the query that does the same for the gap or interval that contains t; the answer is a char *. A moment in a long
 * gap takes several steps. */
struct query *explain_open(const struct catalog *catalog, const struct target *target, int64_t t, struct error *err);
/* Starts the query for one line of the viewer, a char * without newline: "Debian/vCPU0 12:03:04.1139 PREEMPTED 5.21 ms by
 * host/2101 burnP6 on CPU3". The time is when the interval (or gap) that contains t starts. */
struct query *status_open(const struct catalog *catalog, const struct target *target, int64_t t);

/* A flow as a tree: groups (machines, waiting, idle, limits) by time, each followed by its entries. */
struct flow_row {
	const struct flow_entry *entry;  /* NULL: a group */
	int32_t group;                   /* machine, or a negative number */
	int64_t duration;                /* ns */
	uint32_t kind;                   /* the entry's; a group's first entry's */
};
struct flow_tree {
	struct flow_row *row;
	size_t rows, hidden_entries;     /* hidden: entries with a share below the threshold */
	int64_t hidden_ns;
};
void flow_tree_make(struct flow_tree *t, const struct flow *f, double threshold);  /* borrows the flow's entries */
void flow_tree_release(struct flow_tree *t);
bool flow_row_contains(const struct flow_row *r, const struct flow_entry *e);  /* true: the row has the entry's time */
/* Writes "216 burnP6" below its machine, "waiting for a wakeup by", escaped. */
void flow_row_text(const struct catalog *catalog, const struct flow *f, const struct flow_row *r, char *buf, size_t size);

struct flow_text {
	int width;                  /* the text's width in columns; 0: 80 */
	double threshold;           /* entries with a smaller share are counted but not printed: 0.001 = 0.1 % */
	bool intervals;             /* print also the intervals, if the flow contains them */
	const char *const *header;  /* lines to print first (trace, clock error, losses), escaped; NULL: none */
	size_t headers;
};

unsigned flow_text_columns(int width);  /* returns the bar lanes' width, for flow_options.columns */
/* Writes machines and threads as a tree, with durations, shares and a bar lane, and how many entries are below the
 * threshold. */
int flow_write_text(const struct catalog *catalog, const struct flow *f, const struct target *target,
                    const struct flow_text *options, FILE *to, struct error *err);

/* ---- Findings ---------------------------------------------------------------------------------------- */

/* Findings: ranked sentences on what delayed machines and threads most, each with its evidence. The rules are in
 * doc/findings.md. */

#define FINDING_TEXT 1024
#define FINDINGS_MAX 8

/* X(code, name in json) */
#define FINDING_KINDS(X) \
	X(FINDING_HEALTHY, "healthy")              /* no target lost more than FINDING_LIMIT of the time it wanted to run */ \
	X(FINDING_CULPRIT, "culprit")              /* a thread, a VM or an interrupt had the CPU */ \
	X(FINDING_CHAIN, "chain")                  /* the culprit delayed a thread for which the target waited */ \
	X(FINDING_OVERCOMMITTED, "overcommitted")  /* many VMs compete for few CPUs, no single one is the culprit */ \
	X(FINDING_LIMIT_SET, "limit")              /* a quota, pause, migration or page fault: culprit.reason */ \
	X(FINDING_OWN_THREADS, "own-threads")      /* threads on the same machine, or in one process, compete for CPUs */ \
	X(FINDING_VM_EXITS, "vm-exits")            /* the hypervisor worked on behalf of the target */ \
	X(FINDING_HOST_BLOCKED, "host-blocked")    /* a vCPU's host thread slept while the guest had work */ \
	X(FINDING_LATENCY, "wakeup-latency")       /* the CPU was idle */ \
	X(FINDING_UNKNOWN, "unknown")              /* events are missing, or no source shows stolen time */ \
	X(FINDING_NOTHING, "nothing")              /* the recording does not show who ran: nothing can be said */
#define FINDING_CODE(code, name) code,
enum finding_kind { FINDING_KINDS(FINDING_CODE) FINDING_KIND_COUNT };
#undef FINDING_CODE
extern const char *const finding_kind_name[FINDING_KIND_COUNT];

#define FINDING_LIMIT 0.05  /* a target that loses more than this share of the time it wanted to run is not healthy ... */
#define FINDING_WANTED_MIN 0.01     /* ... if it wanted at least this share of the window, ... */
#define FINDING_WAIT_MIN 10000000   /* ... or had one wait of this length, ns */

/* The interval that shows a finding best: the longest one in which the culprit kept the target off its CPU. In a chain the
 * target is the thread that the culprit delayed. */
struct moment {
	struct target target;           /* a vCPU or a thread */
	struct actor culprit;           /* `name` is not set */
	char culprit_text[ACTOR_TEXT];  /* as `gaps` writes it in csv */
	int64_t start, end;             /* ns, closed; end < start: the finding has no moment */
};

struct finding {
	enum finding_kind kind;
	bool has_target;            /* false: no machine lost time */
	struct target target;       /* the victim: a VM, a vCPU or a thread */
	struct actor culprit;       /* machine -1: none; tid -1: several threads, or the machine; `name` is not set */
	char culprit_text[ACTOR_TEXT];  /* culprit, or limit; "" if there is none */
	int64_t ns;                 /* ns that the culprit took; 0: none */
	double share;               /* ns / base */
	const char *base;           /* "wanted": time that the target ran and lost; "life": its lifetime; "": no share */
	uint64_t intervals;         /* number of intervals in which the culprit took time */
	bool inferred;              /* chain: most waits were inferred from the nearest events */
	double unknown;             /* time in unknown states / the target's lifetime */
	enum note_code why;         /* note on why the culprit, or everything, is unknown; NOTE_CODE_COUNT: none */
	struct moment moment;
	char command[ACTOR_TEXT];   /* stealscope arguments that show the moment; FILE stands for the history; "": none */
	size_t main_bytes;          /* length of the first clause in `text`: where to cut for a narrow screen */
	char text[FINDING_TEXT];    /* one sentence without the final period; escaped */
};

/* Findings by weight, the heaviest first; len is at least 1. The verdict is item[0]. */
struct findings {
	struct finding *item;
	size_t len;
	struct sleep_path *sleep;   /* the named target, if it is a thread that slept; NULL: none. Private to query/ */
};

static inline bool finding_is_healthy(const struct finding *f)
{
	return f->kind == FINDING_HEALTHY;
}

/* Starts the query for the findings on [from, to]; target NULL: on all machines. Cost: all rows' demands and
 * gap sums, one VM's exits, and the critical paths for a few delayed threads. */
struct query *findings_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to);
void findings_release(struct findings *f);
/* Returns true for a host that runs VMs, and for Xen's control domain: a victim only if nothing else is one. */
bool findings_take_last(const struct catalog *catalog, uint32_t machine);
