/* Questions asked of a history: who is there, execution flow, gaps, steal matrix.  Reads the history only. */
#ifndef STEALSCOPE_FLOW_FLOW_H
#define STEALSCOPE_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

struct topo_thread {
	int32_t tid;
	uint32_t machine;                       /* index */
	uint32_t status, name, cpu, pid, waker; /* attribute ids */
	int32_t vm, vcpu;                       /* host threads that are a vCPU: index of its machine and of its cpu
	                                           in topo->cpu; else -1 */
};

struct topo_machine {
	const char *name;                       /* unescaped: escape before printing */
	enum machine_kind kind;
	uint32_t cpu, cpus;                     /* its CPUs are topo->cpu[cpu .. cpu + cpus - 1], by number */
	uint32_t thread, threads;               /* likewise topo->thread[], by TID */
};

struct topo {
	const struct history *h;                /* borrowed */
	struct topo_machine *machine;           /* the host first (if traced), VMs by name, then containers */
	struct topo_cpu *cpu;
	struct topo_thread *thread;
	uint32_t machines, cpus, threads;
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

/* ---- Execution flow (paper, Algorithms 1 and 2, Eq. 3; DESIGN section 7) ------------------------------------ */

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
	int32_t pcpu;        /* -1 when unknown */
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
void flow_release(struct flow *f);

/* ---- Gaps and steal ----------------------------------------------------------------------------------------- */

/* A maximal interval in which a vCPU or thread wanted to run and could not: vCPU PREEMPTED or HOST_BLOCKED,
 * thread PREEMPTED or VIRT_PREEMPTED.  Culprits are the entries of the flow within the gap, longest first. */
struct gap {
	struct subject subject;
	int64_t start, end;
	int64_t state;                  /* of the longest part */
};
/* The next (direction > 0) or previous gap of a CPU or thread after/before t.  1 = found, 0 = none, -1 = error. */
int gap_find(const struct topo *topo, const struct subject *s, int64_t t, int direction, struct gap *out,
             struct error *err);
/* Who had the CPU during [from, to] while the subject (CPU or thread) wanted it: a flow of that window. */
int flow_of_gap(const struct topo *topo, const struct gap *gap, struct flow *out, struct error *err);

/* Exact ns that a subject was kept from running within [t0, t1], from the state sums alone.  O(log n) per row. */
int steal_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err);

#endif
