/* A collection and its sources (private to live/). */
#pragma once

#include "live/culprits.h"
#include "live/live.h"
#include "live/source.h"
#include "live/victims.h"

/* Where the times of victims and their culprits come from. */
struct live_source_ops {
	const char *name;
	void (*begin)(struct live *l);  /* reads the counters from which the first period counts. NULL: there are none */
	/* Fills the victims, their pairs and culprits, and the CPU users; s->period is set by it, up to now. */
	void (*take)(struct live *l, struct live_sample *s);
	void (*flush)(struct live *l);  /* accounts the waits that go on. NULL: there is nothing to do */
	bool (*cost)(struct live *l, u64 *ns, u64 *runs);  /* of its BPF program; NULL: it has none */
	void (*measure)(struct live *l, bool on);
};

extern const struct live_source_ops thread_source;     /* BPF, the threads in l->threads */
extern const struct live_source_ops machine_ops;       /* BPF, all threads of this machine, by process */
extern const struct live_source_ops schedstat_source;  /* /proc, the threads in l->threads */

struct machine_names;

struct live {
	struct live_request request;
	const struct live_source_ops *source;
	struct bpf_source *bpf;          /* NULL: not loaded */
	struct machine_source *machine;  /* NULL: not loaded */
	struct machine_names *names;     /* processes of the last period, and groups */
	struct error limits;             /* why BPF is not used */
	bool has_limits;
	struct live_threads threads;
	int32_t slot_thread[LIVE_VICTIMS];  /* index into threads; -1: none */
	unsigned cpus, periods;
	u32 *sibling;                    /* by CPU: 1 + the other CPU of its core; NULL: no core has two CPUs */
	int64_t last;                    /* end of the last period */
	struct { uint64_t busy, idle, stolen; } *cpu;  /* counters of /proc/stat, ticks */
	struct culprit_bounds *bounds;   /* of schedstat */
	struct quotas *quotas;
	uint64_t switches, pressure;     /* counters of /proc/stat and /proc/pressure/cpu */
	int64_t own_time;                /* CPU time of this process, ns */
	u64 cost, runs;
	double cost_ns;
	int64_t tick;                    /* ns */
};

/* ---- for the sources */

struct culprit_index live_culprits(const struct live *l, struct live_sample *s);
/* Ends the period of a sample at this time, CLOCK_MONOTONIC ns, which may be a little ago. */
void live_end_period(struct live *l, struct live_sample *s, int64_t now);
/* Sorts the pairs by time, and finds each victim's first culprit. */
void live_sort_pairs(struct live_sample *s);
/* Fills the columns of a victim that /proc has, and the counters of schedstat since the last period. */
void live_read_thread(struct live *l, struct live_thread *t, struct live_vcpu *u, uint64_t *ran, uint64_t *delayed);
/* Returns the part of a vCPU's running time since the last call that its VMM used, by the kernel's ticks; -1: unknown. */
int64_t live_vmm_time(struct live *l, struct live_thread *t, int64_t ran);
/* Returns the period of a victim, which ends at `to`. A first period is as long as `other`. */
int64_t live_own_period(struct live_thread *t, int64_t to, int64_t other);
/* Adds CPU time of a culprit to the first three of a CPU. */
void live_use_cpu(struct live_sample *s, unsigned cpu, int32_t culprit, int64_t ns);
/* Returns the index of a group of this name in the sample. */
int32_t live_group_put(struct live_sample *s, const char *name, enum live_group_kind kind);
