/* Questions asked of a history: who is there, execution flow, gaps, steal matrix.  Reads the history only. */
#ifndef STEALSCOPE_FLOW_FLOW_H
#define STEALSCOPE_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/states.h"
#include "history/history.h"

/* ---- Who is there --------------------------------------------------------------------------------------- */

enum machine_kind { MACHINE_HOST, MACHINE_VM, MACHINE_CONTAINER };

/* Attribute ids are HISTORY_NONE where the history lacks them. */
struct topo_cpu {
	unsigned number;
	uint32_t machine;                       /* index */
	uint32_t status, current, interrupt;    /* status: vCPU only; interrupt, owner: pCPU only */
	uint32_t owner;
	uint32_t host_thread, pcpu;             /* vCPU only */
	int32_t host;                           /* vCPU only: index of the thread that executes it, or -1.  That thread
	                                           is the host's, or another guest's when the guest is nested */
};

struct topo_thread {
	int32_t tid;
	uint32_t machine;                       /* index */
	uint32_t status, name, cpu, pid, waker; /* attribute ids */
	int32_t role;                           /* threads that are a vCPU at times: index into topo->role; else -1 */
};

/* A vCPU that a TID executes at times.  TIDs are used again: another of its lives may be another vCPU, or none. */
struct topo_role {
	uint32_t vcpu;                          /* index of the cpu in topo->cpu */
	int32_t next;                           /* role of the same thread, or -1 */
};

struct topo_machine {
	const char *name;                       /* "host" for the host; unescaped: escape before printing */
	enum machine_kind kind;
	int32_t parent;                         /* VM: index of the machine that runs it; else and unknown -1 */
	bool runs_vms;                          /* it is the parent of one */
	uint32_t cpu, cpus;                     /* its CPUs are topo->cpu[cpu .. cpu + cpus - 1], by number */
	uint32_t thread, threads;               /* likewise topo->thread[], by TID */
};

struct topo {
	const struct history *h;                /* borrowed */
	struct topo_machine *machine;           /* the host first (if traced), VMs by name, then containers */
	struct topo_cpu *cpu;
	struct topo_thread *thread;
	struct topo_role *role;
	uint32_t machines, cpus, threads, roles;
	/* From the numbers of this history to ours, by the names of the states; unknown names count as UNKNOWN.
	 * The masks hold the file's numbers: bit n = state n means "wanted to run and could not". */
	uint8_t vcpu_state[HISTORY_STATES], thread_state[HISTORY_STATES];
	uint64_t vcpu_gap, thread_gap;
	bool folded;                            /* no vCPU was ever HOST_BLOCKED: perhaps folded into PREEMPTED */
};

int topo_open(struct topo *topo, const struct history *h, struct error *err);
void topo_release(struct topo *topo);
int topo_find_machine(const struct topo *topo, const char *name);            /* index or -1; "host" = the host */
int topo_find_thread(const struct topo *topo, uint32_t machine, int32_t tid);  /* index or -1 */
int topo_find_cpu(const struct topo *topo, uint32_t machine, unsigned number); /* index or -1 */

/* What an argument like "Debian/3525", "Debian/CPU0", "host/42" or "Debian/fibonacci" names. */
struct subject {
	enum subject_kind { SUBJECT_MACHINE, SUBJECT_CPU, SUBJECT_THREAD } kind;
	uint32_t index;  /* into topo->machine, ->cpu or ->thread */
};
/* A name that several threads have is refused with the list of TIDs in the mend. */
int topo_parse_subject(const struct topo *topo, const char *text, struct subject *out, struct error *err);
/* "Debian/3525 critical_task", escaped, the thread's longest-held name. */
char *topo_subject_text(const struct topo *topo, const struct subject *s, char *buf, size_t size);
/* Name of a thread at time t (escaped); "swapper" for TID 0. */
char *topo_thread_name(const struct topo *topo, uint32_t thread, int64_t t, char *buf, size_t size);

/* ---- Execution flow (paper, Algorithms 1 and 2, Eq. 3) ----------------------------------------------------- */

/* X(code, name in csv and json) */
#define FLOW_KINDS(X) \
	X(FLOW_RUNNING, "running")        /* the analysed thread itself */ \
	X(FLOW_PREEMPTING, "preempting")  /* another thread has the CPU that ours waits for */ \
	X(FLOW_HYPERVISOR, "hypervisor")  /* VMM on behalf of the thread named */ \
	X(FLOW_IRQ, "irq")                /* an interrupt or softirq handler */ \
	X(FLOW_WAITING, "waiting")        /* the thread sleeps; the thread named is the one that wakes it */ \
	X(FLOW_IDLE_CPU, "idle-cpu")      /* runnable, yet the pCPU is idle: throttled or not placed */ \
	X(FLOW_UNKNOWN, "unknown")        /* events were lost */
#define FLOW_CODE(code, name) code,
enum flow_kind { FLOW_KINDS(FLOW_CODE) FLOW_KIND_COUNT };
#undef FLOW_CODE
extern const char *const flow_kind_name[FLOW_KIND_COUNT];

/* One piece of the flow.  system: index of a machine, or -1 (nobody: waiting without waker, idle CPU, unknown). */
struct flow_interval {
	int64_t start, end;  /* ns, closed */
	int32_t system;
	int32_t tid;         /* -1 when none; 0 = swapper */
	uint32_t name;       /* index into flow->name */
	int16_t pcpu;        /* -1 when unknown */
	uint8_t kind;        /* enum flow_kind */
};

/* Sum of all pieces with the same (system, tid, name, kind). */
struct flow_entry {
	int32_t system, tid;
	uint32_t name;
	uint8_t kind;
	int64_t duration;    /* ns */
	double share;        /* D(T), Eq. 3: duration / (end - start + 1) of the window */
};

struct flow {
	int64_t start, end;             /* the window, cut to the life of the thread */
	struct flow_interval *interval; /* tiles [start, end]: interval[i].end + 1 == interval[i + 1].start */
	size_t intervals;
	struct flow_entry *entry;       /* longest first */
	size_t entries;
	char **name;                    /* raw names: escape before printing */
	size_t names;
};

/* The flow of a thread over its life, or the part of it within [from, to]. */
int flow_of_thread(const struct topo *topo, uint32_t thread, int64_t from, int64_t to, struct flow *out,
                   struct error *err);
/* The order of flow->entry, for qsort(): longest first, then by kind, system, TID and name. */
int flow_entry_order(const void *a, const void *b);
void flow_release(struct flow *f);

/* ---- Gaps and steal ----------------------------------------------------------------------------------------- */

/* A maximal interval in which a vCPU or thread wanted to run and could not: vCPU PREEMPTED or HOST_BLOCKED,
 * thread PREEMPTED or VIRT_PREEMPTED.  Culprits are the entries of the flow within the gap, longest first. */
struct gap {
	struct subject subject;
	int64_t start, end;
	int64_t state;                  /* of the longest part, in the numbers of the file: history_state_name() */
};
/* The next (direction > 0) or previous gap of a CPU or thread after/before t.  1 = found, 0 = none, -1 = error. */
int gap_find(const struct topo *topo, const struct subject *s, int64_t t, int direction, struct gap *out,
             struct error *err);
/* The same, passing over gaps shorter than `min` ns. */
int gap_next(const struct topo *topo, const struct subject *s, int64_t t, int direction, int64_t min,
             struct gap *out, struct error *err);
/* The gap that t stands in.  1 = found, 0 = t is in no gap, -1 = error. */
int gap_at(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err);
/* Who had the CPU during the gap while the subject (CPU or thread) wanted it: a flow of that window.  Any window
 * will do, `state` is not looked at.  An idle vCPU counts as waiting, for nobody. */
int flow_of_gap(const struct topo *topo, const struct gap *gap, struct flow *out, struct error *err);

/* Exact ns that a subject was kept from running within [t0, t1], from the state sums alone.  O(log n) per row.
 * A VM is the sum of its vCPUs; the host and a container that of their threads.  Threads that are a vCPU count for
 * the VM alone, those of a container for the container alone. */
int steal_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err);

/* ---- Lists of gaps -------------------------------------------------------------------------------------------- */

struct gap_options {
	int64_t from, to;        /* gaps are cut to this window */
	int64_t min;             /* leave out shorter ones, ns */
	size_t top;              /* keep that many, the longest; 0 = all */
};

struct gap_item {
	struct gap gap;
	size_t culprit;          /* list->culprit[culprit .. culprit + culprits - 1], longest first, ... */
	size_t culprits;         /* ... durations add up to the gap, shares are of the gap */
};

struct gap_list {
	struct gap_item *item;   /* longest first, then by time */
	size_t items;
	struct flow_entry *culprit;
	size_t culprits;
	uint64_t count;          /* all gaps of at least `min`, also those beyond `top` */
	int64_t total;           /* ns of all these */
	int64_t p50, p90, p99, longest;  /* of their lengths, nearest rank; 0 when there are none */
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* The gaps of a vCPU, a thread, a VM (those of its vCPUs), the host or a container (those of its threads); of all
 * VMs when s is NULL.
 * With min <= 1, total == steal_time() of the same window. */
int gap_list_of(const struct topo *topo, const struct subject *s, const struct gap_options *options,
             struct gap_list *out, struct error *err);
void gap_list_release(struct gap_list *l);

/* ---- Who took it from whom ------------------------------------------------------------------------------------ */

enum steal_by { STEAL_BY_MACHINE, STEAL_BY_THREAD };

/* system and tid as in struct flow_interval.  By machine: tid is -1 and name 0. */
struct steal_party {
	int32_t system, tid;
	uint32_t name;
	uint8_t kind;            /* enum flow_kind; of victims FLOW_RUNNING */
};

struct steal_cell {
	struct steal_party victim, thief;
	int64_t ns;
	double share;            /* of what the victim lost in all: the cells of a victim add up to 1 */
};

struct steal {
	int64_t start, end;
	struct steal_cell *cell; /* by victim, the one that lost most first; then by thief, likewise */
	size_t cells;
	char **name;
	size_t names;
};

/* What every victim lost to every thief within [from, to].  Victims by machine: a VM loses what its vCPUs do, the
 * host and containers what their threads do, as in steal_time().  Victims by thread: every thread that is not
 * a vCPU.  `only` restricts the victims to a machine, vCPU or thread; NULL = all.  Conservation: the cells of a
 * victim add up to its steal_time(). */
int steal_matrix(const struct topo *topo, enum steal_by by, const struct subject *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err);
void steal_release(struct steal *s);

/* ---- Guilty timers (paper, Fig. 15) --------------------------------------------------------------------------- */

/* A process (or the bare idle task) of a guest that wakes an otherwise idle vCPU again and again. */
struct periodic {
	int32_t system, tid;     /* tid 0: the guest's idle task handled a timer, no thread ran */
	uint32_t name;
	uint32_t vcpu;           /* index into topo->cpu */
	int64_t period;          /* ns, median distance of wakeups */
	double regular;          /* share of the distances within a tenth of the period or of its double */
	uint64_t wakeups;
	int64_t busy;            /* ns that the vCPU's thread was on a pCPU for it */
	int64_t cost;            /* ns during which it kept others from a pCPU */
	uint64_t switches;       /* how many of the wakeups did that */
};

struct periodic_list {
	struct periodic *item;   /* greatest cost first */
	size_t items;
	char **name;
	size_t names;
};

int gap_periodic(const struct topo *topo, int64_t from, int64_t to, struct periodic_list *out, struct error *err);
void periodic_release(struct periodic_list *l);

/* ---- In words ------------------------------------------------------------------------------------------------- */

/* "host/2101 burnP6", "Debian/3525 critical_task", "hypervisor for Debian/3525 critical_task", "host irq/46-iwlwifi",
 * "idle CPU", "waiting for host/43 qemu-io", "waiting", "unknown (events lost)".  Escaped.  `name`: raw, or NULL. */
char *flow_party_text(const struct topo *topo, int32_t system, int32_t tid, const char *name, enum flow_kind kind,
                      char *buf, size_t size);

/* A few plain sentences, one per line, escaped: what a thread or vCPU did within [from, to], what delayed it, how
 * much, by whom, how sure that is, and what to look at next.  The caller frees *text. */
int explain_window(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, char **text,
                   struct error *err);
/* The same for the gap or interval that t stands in. */
int explain_at(const struct topo *topo, const struct subject *s, int64_t t, char **text, struct error *err);

/* One line for the viewer, without newline: "Debian/vCPU0 12:03:04.1139 PREEMPTED 5.21 ms by host/2101 burnP6 on
 * CPU3".  The moment is the start of the interval (of the gap, when t is in one) that holds t. */
int explain_status(const struct topo *topo, const struct subject *s, int64_t t, char *buf, size_t size,
                   struct error *err);

/* Both in steps, where a moment may hold millions of pieces.  The gap that t stands in: 1, else the interval of the
 * subject's status (a pCPU: of its current thread): 0; -1 = error. */
int explain_moment(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err);
/* What explain_at() says of a moment, and explain_status() of a gap, given its flow, or that of its beginning. */
int explain_at_of(const struct topo *topo, const struct gap *moment, const struct flow *f, char **text,
                  struct error *err);
void explain_status_of(const struct topo *topo, const struct gap *gap, const struct flow *f, char *buf, size_t size);

/* ---- As text (paper, Fig. 14) --------------------------------------------------------------------------------- */

struct flow_text {
	int width;                  /* columns; 0 = 80 */
	double threshold;           /* entries with a smaller share are not printed, but counted: 0.001 = 0.1 % */
	bool intervals;             /* also the ordered list */
	const char *const *header;  /* lines to print first (trace, error band, losses), escaped; may be NULL */
	size_t headers;
};

/* The tree system > thread with durations, shares and a bar lane, then what the threshold left out. */
int flow_write_text(const struct topo *topo, const struct flow *f, const struct subject *s,
                    const struct flow_text *options, FILE *to, struct error *err);

#endif
