/* Wakers of idle vCPUs, halt polling, and preempted guest code: answers from the host's trace alone. A part of
 * query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_HOST_ONLY_H
#define STEALSCOPE_QUERY_HOST_ONLY_H

#include "query/query.h"

/* ---- Wakers of idle vCPUs --------------------------------------------------------------------------------------- */

#define WAIT_KINDS(X) \
	X(WAIT_TIMER, "timer")      /* timer of the guest, or of the host for the guest */ \
	X(WAIT_IPI, "ipi")          /* another vCPU of the same guest */ \
	X(WAIT_NET, "net")          /* thread that moves the guest's packets, or a packet */ \
	X(WAIT_DEVICE, "device")    /* another thread of the VM's monitor, or a device's interrupt */ \
	X(WAIT_TASK, "task")        /* any other thread of the host */ \
	X(WAIT_STOPPED, "stopped")  /* the monitor pauses or resumes the VM: a pause, a migration */ \
	X(WAIT_UNKNOWN, "unknown")  /* no event shows the waker */
#define WAIT_CODE(code, name) code,
enum wait_kind { WAIT_KINDS(WAIT_CODE) WAIT_KIND_COUNT };
#undef WAIT_CODE
extern const char *const wait_kind_name[WAIT_KIND_COUNT];

/* Sleeps of an idle vCPU, or of a thread, that one actor ended. */
struct wait_row {
	uint32_t vcpu;           /* index into catalog->cpu; UINT32_MAX: the target is a thread */
	enum wait_kind kind;
	struct actor by;         /* the waking thread or handler (tid -1); machine -1: unknown */
	uint64_t count;
	int64_t total;           /* sum of the sleeps within the window, ns */
	double share;            /* total / all sleeps of the vCPU */
};

struct wait_list {
	struct wait_row *row;    /* sorted by vCPU, longest first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* Finds the wakers of a vCPU, of the vCPUs of a VM, or of all vCPUs (NULL), from the host's events alone; for a thread,
 * the wakers that ended its sleeps. */
int waits_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, struct wait_list *out,
             struct error *err);
void waits_release(struct wait_list *l);

/* ---- Halt polling ---------------------------------------------------------------------------------------------- */

/* Halts of a vCPU that the host polled before it blocked the thread, with one outcome. */
struct poll_row {
	uint32_t vcpu;           /* index into catalog->cpu */
	enum poll_outcome outcome;  /* won or lost */
	uint64_t count;
	int64_t total;           /* polling time within the window, ns */
	uint64_t timed;          /* number of halts with a recorded next VM entry; the times below cover only them */
	int64_t p50, p99, max;   /* ns from the end of the poll (or the wakeup of the blocked thread) to that entry */
	int64_t others_ns;            /* sum of the ns that other threads waited for the polling pCPU; 0 for nested VMs */
	struct target victim;   /* vCPU or host thread that waited longest for the polling pCPU: valid if victim_ns > 0 */
	int64_t victim_ns;       /* ns that the victim waited; 0: none */
};

struct poll_list {
	struct poll_row *row;    /* sorted by vCPU and outcome */
	size_t rows;
	unsigned vcpus, silent;  /* number of vCPUs in the answer; number of these without any poll in the history */
	unsigned unknown_vcpus;         /* number of vCPUs with an interval in which polling is unknown */
	int64_t unknown_ns;       /* sum of these intervals, ns */
};

/* Finds the polled halts of a vCPU, a VM, or all (NULL). */
int polls_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, struct poll_list *out,
             struct error *err);
void polls_release(struct poll_list *l);
/* Computes the exact polling time by outcome within [t0, t1], ns, from the state sums alone. *is_recorded: the history
 * contains polls. */
int polled_time(const struct catalog *catalog, const struct target *s, int64_t t0, int64_t t1,
                int64_t ns[POLL_OUTCOME_COUNT], bool *is_recorded, struct error *err);

/* ---- Preempted code of the guest's kernel ----------------------------------------------------------------------- */

/* Preemptions of a vCPU at one instruction of its guest's kernel, or (address 0) in user space. */
struct preempted_code_row {
	uint32_t vcpu;           /* index into catalog->cpu */
	int64_t address;         /* guest address at the VM exit; 0: user space; kernel addresses are negative */
	uint64_t count;
	int64_t total, longest;  /* sum and longest of the preemptions within the window, ns */
	int64_t longest_at;      /* start of the longest preemption (the first if several are equal), ns */
};

struct preempted_code_list {
	struct preempted_code_row *row;  /* sorted by vCPU, then by total, longest first */
	size_t rows;
	uint64_t preempted, kernel;  /* number of preemptions; number of these in the guest's kernel */
	unsigned vcpus, silent;  /* number of vCPUs in the answer; number of these without recorded addresses */
};

/* Finds the preemptions of a vCPU, of a VM, or of all VMs (NULL): the guest was runnable when the host took the CPU. */
int preempted_code_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to,
                      struct preempted_code_list *out, struct error *err);
void preempted_code_release(struct preempted_code_list *l);

#endif
