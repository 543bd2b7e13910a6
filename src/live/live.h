/* Live collection: who takes CPU time from the VMs, containers, services and processes of this machine right now, period
 * by period.
 *
 * The victims are the vCPUs of VMs and all processes. The source is a BPF program (exact sums by victim and culprit), or,
 * where BPF cannot be used, the run delay in /proc/PID/task/TID/schedstat, throttled time in cpu.stat, and lower bounds of
 * the culprits (culprit_bounds.h). The time that the host of a machine took comes from /proc/stat. All times in ns. */
#pragma once

#include "base/base.h"

#define LIVE_NAME 128      /* bytes of a name for people, escaped; a VM with its vCPU or PID fits */
#define LIVE_LENGTHS 64    /* powers of two of wait lengths */

/* A process or thread that is a victim by request. */
struct live_request {
	const char *const *pid;    /* PIDs or TIDs; of a process, its vCPU threads or, if it has none, all threads */
	size_t pids;
	const char *const *comm;   /* thread names: each thread with this name is a victim */
	size_t comms;
	const char *root;          /* "", or a directory that replaces /proc, /sys and /run of this machine */
	bool without_bpf;          /* use schedstat */
	bool steal_clock;          /* published counters show what the host of this VM took */
	bool publishes;            /* single thread counters are published */
	bool shares;               /* vCPU counters are shared with VMs */
	int32_t command;           /* only this process's descendants, which has no child yet, are victims; 0: all */
};

/* Time of one victim in a period. The states add up to the period. */
struct live_times { int64_t ran, stolen, throttled, paused, blocked, unknown; };

enum live_group_kind { LIVE_VM, LIVE_CONTROL_GROUP, LIVE_KERNEL_THREADS };
struct live_group {
	char name[LIVE_NAME];      /* VM, systemd unit, container, pod or path */
	enum live_group_kind kind;
};

/* A victim: a vCPU, a thread that was asked for, or a process. */
struct live_vcpu {
	char machine[LIVE_NAME];   /* VM or process */
	int32_t group;             /* index */
	int number;                /* vCPU; -1: no vCPU */
	int32_t tid, pid, cpu;     /* cpu: pCPU; -1: unknown */
	struct live_times ns;
	int64_t period;            /* that these times cover, ns: of a vCPU it may differ from the sample's */
	int64_t vmm;               /* part of ran outside the guest, by the kernel's ticks; -1: unknown */
	uint64_t waits;
	uint32_t length[LIVE_LENGTHS];
	int64_t longest;           /* longest wait that ended in this period or goes on; 0: none */
	int32_t longest_culprit;   /* index; -1: unknown */
	int32_t top;               /* culprit that had most of the stolen time; -1: none or unknown */
	int64_t top_ns;
	int64_t shared;            /* part of ran in which the other CPU of the core was busy; -1: unknown */
	int32_t sharer;            /* culprit that ran there longest; -1: none or unknown */
	int64_t sharer_ns;
};

enum live_kind { LIVE_VCPU, LIVE_VMM, LIVE_PROCESS, LIVE_KERNEL, LIVE_IDLE, LIVE_QUOTA, LIVE_SEVERAL, LIVE_OWN,
                 LIVE_NOBODY };
extern const char *const live_kind_name[];

struct live_culprit {
	enum live_kind kind;
	int32_t pid;
	char name[LIVE_NAME];      /* "host/9120 burnP6", "batch.slice/burnP6", "web/vCPU0", "web's VMM", "unknown" */
	char machine[LIVE_NAME];   /* VM; "": none */
	int32_t group;             /* index; -1: unknown, or none */
	int64_t ran;               /* CPU time in this period; -1: unknown */
	int64_t took;              /* sum over all victims */
	bool own;                  /* a descendant of the request's command */
	bool inferred;             /* its times as a culprit are lower bounds */
};

struct live_pair { int32_t vcpu, culprit; int64_t ns; };

struct live_cpu_use {
	int64_t busy, idle, stolen;  /* of the period, in whole ticks; stolen: by this machine's host */
	int32_t top[3];            /* culprits with the most CPU time; -1: none */
	int64_t top_ns[3];
};

struct live_sample {
	int64_t period, wall;      /* wall: the period's end, ns since the epoch */
	struct live_vcpu *vcpu;
	size_t vcpus;
	struct live_group *group;
	size_t groups;
	struct live_culprit *culprit;
	size_t culprits;
	struct live_pair *pair;    /* sorted by time, longest first */
	size_t pairs;
	struct live_cpu_use *cpu;
	size_t cpus;
	bool by_process;           /* victims that are no vCPUs are processes; otherwise threads */
	bool has_siblings;         /* cores have two CPUs, and shared times are known */
	bool has_bpf, is_guest;    /* is_guest: no VMs here, the victims are this machine's own processes */
	const char *source;        /* "bpf", "schedstat" */
	uint64_t switches;         /* context switches of all CPUs; 0: unknown */
	double cost_ns;            /* cost of the collector per switch, ns, by the kernel's statistics; 0: not measured */
	double own_share;          /* CPU time of this process as a share of the period */
	size_t hidden;             /* processes that could not be inspected for lack of permission */
	double load;
	double pressure;           /* share of the period in which a task waited, by the kernel's PSI; -1: unknown */
};

struct live;

/* Starts to collect. Returns NULL with *err if nothing can be collected. */
struct live *live_open(const struct live_request *request, struct error *err);
/* Reason why BPF is not used; NULL: it is. */
const struct error *live_limits(const struct live *l);
/* Returns true if a process or control group has this name, even if the sample does not contain it because it was idle. */
bool live_knows(const struct live *l, const char *name);
bool live_has_siblings(const struct live *l);  /* Returns true if the shared time of cores is counted. */
/* Fills *s with the period since the last call or live_open(). The caller calls live_sample_release(). */
void live_take(struct live *l, struct live_sample *s);
/* Accounts the waits that go on; call it several times in a long period. */
void live_flush(struct live *l);
void live_sample_release(struct live_sample *s);
void live_close(struct live *l);

/* ---- Counters for the processes that ask for them (publisher.c)

The owner calls publisher_run() when publisher_events() is readable, but not before publisher_rests(), and at least four
times a second. */

struct publisher;
/* Returns true if this machine is a VM with a steal clock to publish (the request's steal_clock). */
bool live_has_steal_clock(void);
/* Listens at a socket. Returns NULL with *err: without BPF nothing can be published. */
struct publisher *publisher_open(struct live *l, const char *path, struct error *err);
void publisher_close(struct publisher *p);
int publisher_events(const struct publisher *p);  /* descriptor to poll; -1: p is NULL */
int64_t publisher_rests(const struct publisher *p);  /* time until which publisher_run() does nothing, ns */
void publisher_run(struct publisher *p);          /* NULL is allowed. Never blocks */

/* ---- Counters for a VM (share.c) */

#define LIVE_SHARE_NS 10000000  /* recommended time between two calls of live_flush() and share_update() */

struct share;
/* Opens the file of "VM=FILE", which backs a memory device of the VM. Returns NULL with *err. */
struct share *share_open(const char *spec, struct error *err);
/* Writes the counters; call live_flush() before. */
void share_update(struct share *s, struct live *l);
/* Writes the main culprit of each vCPU in a period. */
void share_culprits(struct share *s, const struct live_sample *sample);
void share_close(struct share *s);  /* NULL is allowed */

/* ---- Hardware counters in a recording of the host (counter_program.c) */

struct live_counter { uint32_t type; uint64_t config; };  /* as in struct perf_event_attr */
extern const struct live_counter live_hardware_counters[2];  /* instructions, cycles */
struct counter_program;
/* From now on, prints both counters of a CPU at each of its switches as "stealscope counters N N" into the trace event
 * bpf_trace_printk. Call it before sched_switch is recorded. Returns NULL with *err: no such counters, no BPF. */
struct counter_program *counter_program_open(const struct live_counter counter[2], struct error *err);
void counter_program_close(struct counter_program *c);  /* NULL is allowed */

/* ---- Throttled threads in a recording (throttle_program.c) */

struct throttle_program;
/* From now on, prints "stealscope throttled TID 1" into the trace event bpf_trace_printk when the quota of its group
 * throttles a thread, and "... TID 0" when it does no more. Call it before sched_switch is recorded. Returns NULL with
 * *err: no BPF. */
struct throttle_program *throttle_program_open(struct error *err);
void throttle_program_close(struct throttle_program *p);  /* NULL is allowed */

/* ---- Counters over all samples, for monitoring */

struct live_metrics;
struct live_metrics *live_metrics_new(void);
void live_metrics_free(struct live_metrics *m);
/* Adds a sample. Counters belong to names, so they go on when a VM is started again. */
void live_metrics_add(struct live_metrics *m, const struct live_sample *s);
/* Sets whether a flight recording runs, which monitor --trigger starts; without a call there is no such gauge. */
void live_metrics_set_flight(struct live_metrics *m, bool runs);
/* Writes all counters in the OpenMetrics text format. Returns the text, which the caller frees; *len: its bytes. */
char *live_metrics_text(const struct live_metrics *m, size_t *len);
