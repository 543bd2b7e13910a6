/* What the host alone tells of vCPUs.  A part of query/query.h, which includes it. */
#ifndef STEALSCOPE_QUERY_HOST_ONLY_H
#define STEALSCOPE_QUERY_HOST_ONLY_H

#include "query/query.h"

/* ---- Halt polling ---------------------------------------------------------------------------------------------- */

/* The halts of a vCPU that were awaited running, by how that ended. */
struct poll_row {
	uint32_t vcpu;           /* index into topo->cpu */
	enum poll_outcome outcome;  /* won, lost */
	uint64_t count;
	int64_t total;           /* ns polled, within the window */
	uint64_t timed;          /* of these, those whose next entry was recorded; the times below are theirs */
	int64_t p50, p99, max;   /* ns to that entry: from the end of the poll, or from when its sleeping thread was woken */
	int64_t kept;            /* ns that others waited for its pCPU meanwhile, each of them counted; of nested VMs 0 */
	struct subject victim;   /* who did longest: a vCPU or a thread of the host, for ... */
	int64_t victim_ns;       /* ... so long; 0: nobody */
};

struct poll_list {
	struct poll_row *row;    /* by vCPU and outcome */
	size_t rows;
	unsigned vcpus, silent;  /* that were asked about; those of them of whose halts nothing is told */
	unsigned untold;         /* vCPUs of which it is not known for a time whether they polled, ... */
	int64_t untold_ns;       /* ... and these times of all of them */
};

/* Of a vCPU, a VM, or all (NULL). */
int polls_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct poll_list *out,
             struct error *err);
void polls_release(struct poll_list *l);
/* Exact ns by outcome within [t0, t1], from the state sums alone; false: nothing is told of any. */
int polled_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1,
                int64_t ns[POLL_OUTCOME_COUNT], bool *told, struct error *err);

/* ---- Preempted inside the guest's kernel ------------------------------------------------------------------------ */

/* How often a vCPU was preempted at one instruction of its guest's kernel, or (address 0) anywhere outside of it. */
struct inside_row {
	uint32_t vcpu;           /* index into topo->cpu */
	int64_t address;         /* of the guest, as it was exited; kernels' are negative */
	uint64_t count;
	int64_t total, longest;  /* ns preempted, within the window */
	int64_t longest_at;      /* ns: the first of the longest */
};

struct inside_list {
	struct inside_row *row;  /* by vCPU; within one the longest in all first */
	size_t rows;
	uint64_t preempted, kernel;  /* how often in all, and in a kernel */
	unsigned vcpus, silent;  /* that were asked about; those of which no event told where */
};

/* Of a vCPU, a VM, or all (NULL): preempted is whoever wanted to go on when the host took its CPU. */
int insides_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct inside_list *out,
               struct error *err);
void insides_release(struct inside_list *l);

#endif
