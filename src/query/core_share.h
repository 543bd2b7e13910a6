/* Time that was given but worth less: time on a core of which another CPU was busy, below the base frequency, or on another
 * NUMA node than the memory; and moves between CPUs. Part of query.h.
 *
 * These times are parts of `ran` and never of `lost`. They need the topology of the host (stealscope-session(5)). */
#ifndef STEALSCOPE_QUERY_CORE_SHARE_H
#define STEALSCOPE_QUERY_CORE_SHARE_H

#include "query/query.h"

#define SLOW_PERCENT 90  /* a CPU is slow below this part of its base frequency */

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
	int64_t alone;       /* the other CPUs of the core were idle, or the core has only one CPU */
	int64_t shared;      /* another CPU of the core was busy */
	int64_t unknown;     /* the core, or the use of its other CPUs, is unknown */
	/* ns */
	int64_t slow;        /* ran below SLOW_PERCENT of the base frequency; part of `clocked` */
	int64_t clocked;     /* ran on a CPU with known base and current frequency */
	int64_t remote;      /* ran on another node than most of the VM's memory; part of `placed` */
	int64_t placed;      /* ran on a known node, and the VM has a known memory node */
	/* number of moves: it ran on another CPU than before, of another last-level cache, of another node */
	int64_t moves, llc_moves, node_moves;
};

/* Time that a row shared its core with one user of another CPU of the core. On cores with two CPUs the sharers of a row
 * add up to its `shared`; with more CPUs, several of them may be busy at a time, and each counts. */
struct core_sharer {
	struct actor actor;  /* a vCPU (tid -1, name "vCPU0"), a thread of the host, or an interrupt handler */
	int64_t ns;
	struct core_counts counts;  /* of the target, beside this sharer */
};

struct core_row {
	struct target target;
	struct core_time time;
	struct core_counts counts, alone, shared;  /* of all time; of time alone on the core; of time beside any sharer */
	size_t sharer, sharers;  /* its sharers are share->sharer[sharer .. sharer + sharers - 1], longest first */
};

struct core_share {
	int64_t start, end;
	struct core_row *row;    /* in the order of the targets */
	size_t rows;
	struct core_sharer *sharer;
	size_t sharers;
	char **name;             /* raw names of the actors: escape before printing */
	size_t names;
	bool cores;              /* the history contains the cores of pCPUs */
	bool counters;           /* the history contains instructions and cycles */
	bool siblings;           /* the host has cores with several CPUs */
	bool frequencies;        /* the history contains frequencies and base frequencies */
	bool nodes;              /* the host has several NUMA nodes, and a VM has a known memory node */
};

/* Lists the vCPUs and threads of an answer about a target (NULL: all): vCPUs, and threads of the host and of containers
 * that are no vCPUs; or the vCPU or thread itself. The caller frees *out. Returns their number. */
size_t core_share_targets(const struct catalog *catalog, const struct target *only, struct target **out);
void core_share_sort(struct core_share *s);  /* sorts the rows by shared time, longest first */

/* Starts the query for targets (machines, vCPUs, threads). A VM is the sum of its vCPUs, the host and containers are the
 * sum of their threads, as in steal_time(). The targets are copied. */
struct query *core_share_open(const struct catalog *catalog, const struct target *target, size_t n, int64_t from,
                              int64_t to);
void core_share_take(struct query *q, struct core_share *out);
/* Runs the query until the answer is ready. */
int core_share_of(const struct catalog *catalog, const struct target *target, size_t n, int64_t from, int64_t to,
                  struct core_share *out, struct error *err);
void core_share_release(struct core_share *s);

#endif
