/* World of the simulator: machines, CPUs, threads, and the order of their actions.
 *
 * One discrete-event loop (sim.c) takes the earliest time from a heap and completes one activity of one CPU: an
 * operation of its kernel (at most one trace record, one state change) or a part of its thread's computation. No two
 * activities end in the same ns of host time, so the records of all machines are totally ordered and the truth is exact.
 * All times are ns of the host's clock since the epoch; guest clocks apply only when records are written (sim_clock.c).
 *
 * A vCPU is a struct cpu with a `host` thread on the machine below: the host or, for a nested VM, the outer guest. It
 * advances only while `live`, that is from kvm_entry to the interruption that causes the next kvm_exit, and while the
 * CPU that runs it is live.
 *
 * Shares no code with the analysis except src/base. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/int128.h"
#include "base/strtab.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

#define TIDS 32768            /* number of thread ids per machine; 1 to TIDS - 1 are used, and reused as in Linux */
#define CPUS_MAX 64          /* maximum number of CPUs per machine: affinities are bit masks */
#define GROUPS_MAX 16         /* maximum number of control groups */
#define ROOT_NS 4026531836u   /* initial pid namespace */
#define ROOT_CGROUP_NS 4026531835u  /* initial cgroup namespace */
#define WEIGHT_0 1024         /* weight of nice 0 */
#define SYNC_NR 0x56534e43    /* hypercall number of the beacon */

struct sim;
struct machine;
struct cpu;
struct thread;

/* ---- random numbers (rng.c): integer arithmetic only, so a seed gives the same bytes on every machine */

struct rng { uint64_t s; };
uint64_t rng_next(struct rng *r);
int64_t rng_range(struct rng *r, int64_t lo, int64_t hi);      /* both included */
bool rng_chance(struct rng *r, int64_t per_million);
int64_t rng_exp(struct rng *r, int64_t mean);                  /* approximately exponential, at least 1 */

/* ---- event queue (queue.c) */

enum due_kind { DUE_CPU, DUE_SLEEP, DUE_TICK, DUE_BARE, DUE_DISK, DUE_HOSTIO, DUE_PERIOD, DUE_STOP, DUE_CONTINUE,
                DUE_SAMPLE, DUE_REGROUP };
struct due {
	int64_t at;
	uint64_t seq; /* order of equal times: first come, first served */
	void *owner;
	uint32_t gen; /* the event is stale if this differs from the owner's value */
	uint8_t kind; /* enum due_kind */
};
struct queue {
	struct due *item;
	size_t len, cap;
	uint64_t seq;
};
void queue_push(struct queue *q, int64_t at, enum due_kind kind, void *owner, uint32_t gen);
bool queue_pop(struct queue *q, struct due *out);
void queue_release(struct queue *q);

/* ---- operations of a kernel, in order on one CPU, each after its delay (sim_ops.c) */

enum op_kind {
	OP_NOP, OP_WAKING, OP_WAKEUP, OP_MOVE, OP_PULL, OP_SWITCH, OP_TICK,
	OP_TIMER_ENTRY, OP_TIMER_EXIT, OP_IRQ_ENTRY, OP_IRQ_EXIT, OP_SOFTIRQ_ENTRY, OP_SOFTIRQ_EXIT,
	OP_FORK, OP_WAKEUP_NEW, OP_EXEC, OP_QUIT, OP_LOG, OP_DUMP_START, OP_DUMP, OP_DUMP_NS, OP_DUMP_CGROUP, OP_DUMP_END,
	OP_POLL, OP_ADAPT, OP_GO_ON, /* host: halt polling */
	OP_LEAVE,                    /* guest: an action that causes a VM exit */
	OP_EXIT, OP_HYPERCALL, OP_USEREXIT, OP_INJECT, OP_ENTRY,  /* host: KVM */
	OP_DELIVER, OP_UNTHROTTLE, OP_OFFLINE, OP_EVACUATE,
	OP_STEAL,                    /* guest: a probe reads the steal clock */
	OP_KINDS
};
struct op {
	uint8_t kind;  /* enum op_kind */
	uint8_t arg;   /* enum irq_kind, exit_kind, log_kind or record_kind */
	int32_t delay; /* live CPU time before the operation happens, ns */
	struct thread *t;
	struct cpu *c;
	int64_t a, b;
};

enum irq_kind { IRQ_TICK, IRQ_WAKE, IRQ_BARE, IRQ_DEV, IRQ_RESCHED, IRQ_OFFLINE, IRQ_GUEST, IRQ_GUEST_DEV,
                IRQ_PERIOD };
struct irq {
	uint8_t kind;     /* enum irq_kind */
	uint8_t inner;    /* for IRQ_GUEST: enum irq_kind in the guest */
	struct thread *t; /* thread that the interrupt wakes; NULL: none */
	struct cpu *c;    /* for IRQ_GUEST: the vCPU */
	void *owner;      /* struct bare or struct quota_group; NULL: neither */
};
/* Initializes an interrupt of a machine that stands for an interrupt of one of its guest's vCPUs. */
#define IRQ_FOR(guest, irq, thread, timer) { .kind = (irq) == IRQ_DEV ? IRQ_GUEST_DEV : IRQ_GUEST, \
	.inner = (uint8_t)(irq), .t = (thread), .c = (guest), .owner = (timer) }

/* Reason of a VM exit; exit_reason[] in kvm.c maps it to the number in the record (SVM). */
enum exit_kind { EXIT_INTR, EXIT_VINTR, EXIT_CPUID, EXIT_HLT, EXIT_IO, EXIT_MSR, EXIT_IPI, EXIT_VMMCALL, EXIT_NPF,
                 EXIT_DISK, EXIT_KICK, EXIT_NESTED, EXIT_PAUSE, EXIT_FETCH, EXIT_MMIO, EXIT_KINDS };
enum log_kind { LOG_SYNC_A, LOG_SYNC_D, LOG_START, LOG_YIELD, LOG_RESUME, LOG_END };

/* ---- truth: one tracked attribute (truth.c) */

enum track_kind { TRACK_CURRENT, TRACK_OWNER, TRACK_IRQ, TRACK_VSTATUS, TRACK_VTHREAD, TRACK_PCPU,
                  TRACK_OUT_BY, TRACK_STATUS, TRACK_NAME, TRACK_CPU, TRACK_PID, TRACK_KINDS };
#define NOTHING INT64_MIN  /* value of an attribute that has no value */
struct truth_track { int64_t start, value; };

/* ---- threads */

enum task_state { TASK_BLOCKED, TASK_RUNNABLE, TASK_RUNNING, TASK_NEW, TASK_DEAD };
enum want { WANT_RUN, WANT_SLEEP, WANT_DISK, WANT_HALT, WANT_DIE, WANT_PAUSE };
struct step;
struct server;

/* Thread of the host that carries messages of guests, with their receivers (chain.c). */
struct carrier {
	const struct machine *vm;    /* VM in which it raises interrupts */
	struct thread *to[32], *now;
	unsigned n;
	bool is_net;
};
struct lock {
	struct thread *owner, *waiter[16];
	unsigned waiters;
};

struct thread {
	struct machine *m;
	struct cpu *vcpu;             /* guest CPU that this thread of the machine below runs; NULL: none */
	struct machine *vm;           /* VM with this thread as QEMU's main thread, if the thread changes the VM; NULL: none */
	struct quota_group *group;    /* CFS quota; NULL: none */
	struct quota_group *first_group;  /* its group before it moved */
	bool moved, limit_shown;      /* moved: to another group; limit_shown: limited_since has a record */
	int64_t limited_since;        /* start of the time for which its group keeps it off, host ns; 0: none */
	int32_t tid, pid, ppid;
	uint32_t name;                /* string id */
	uint32_t ns, cgroup_ns;       /* namespaces */
	uint64_t affinity;            /* bit per CPU */
	unsigned cpu;                 /* CPU on which it runs, is queued, or ran last */
	uint8_t state;                /* enum task_state */
	uint8_t want;                 /* enum want: state after the next OP_SWITCH */
	bool rt, idle, waking, woken, wake_pending, in_guest, in_run, dying;
	bool fetches;                 /* vCPU: waits for memory that its guest touched */
	int64_t vruntime, exec_since, slice_start;
	int64_t queued_since;         /* start of its wait in the runqueue, host ns */
	int64_t run_delay;            /* sum of these waits, ns */
	int64_t weight;               /* weight of its share of a CPU; 0: weight of its nice level */
	int8_t nice;
	uint32_t timer_gen;
	/* vCPU, with --poll: */
	bool polls, halts;            /* polls: halted, being polled; halts: halted, end of the halt not recorded yet */
	bool slept;                   /* slept in this halt */
	int64_t halt_since, halt_out; /* start of the halt, and time at which the thread left its CPU, host ns */
	int64_t poll, poll_next;      /* polling limit of this halt and of the next halt, ns */
	/* program (workload.c) */
	const struct step *prog;
	unsigned pc;
	int64_t run_left;             /* computation left in the step, ns */
	int64_t work_left;            /* part of it until the next event, ns */
	int64_t period_next;
	int64_t loop_left;            /* rounds left of the current W_LOOP */
	int64_t until;                /* end of W_UNTIL, host ns */
	int32_t dump_tid;
	struct server *server;
	struct carrier *carrier;
	struct thread *sends_by, *sends_to;  /* carrier and receiver of its messages */
	unsigned inbox;               /* number of wakeups that it has not processed */
	int64_t spins_since;          /* start of its spinning for a lock, host ns; 0: does not spin */
	struct thread *spins_for;     /* owner of the lock at that time */
	/* truth */
	struct truth_track status, tname, tcpu, tpid;
	struct usage *usage;          /* time accounting of a request server; NULL: not a server */
	struct thread *next_free;
};

struct cpu {
	struct machine *m;
	unsigned number;
	struct thread *cur, *idle;
	struct thread *host;     /* vCPU: its thread on the machine below */
	struct thread **run;     /* queued threads, unordered */
	size_t runs, run_cap;
	struct op *op;           /* ring buffer of queued operations */
	size_t ops, op_first, op_cap;
	struct irq *irq;         /* interrupts that arrived and are not handled yet */
	size_t irqs, irq_cap;
	struct irq *virq;        /* vCPU: pending in the hypervisor */
	size_t virqs, virq_cap;
	bool live;               /* host CPU: always true; vCPU: executes */
	bool online;             /* used by the scheduler of its machine */
	bool was_online;         /* online at some time since its thread was started */
	bool kick;               /* vCPU: must exit for a new interrupt */
	bool resched;
	bool tick_armed;
	uint8_t act;             /* enum act */
	int64_t since, left;     /* start of the activity, host ns, and its remaining time, ns */
	uint32_t gen, tick_gen;
	int64_t min_vruntime;
	uint64_t key;            /* beacon: last key used */
	int64_t steal;           /* vCPU: its steal clock, as of the last VM entry, ns */
	int64_t steal_seen;      /* run delay of its thread at that time, ns */
	struct truth_track current, owner, interrupt, vstatus, vthread, pcpu, out_by;
	int64_t quota_over;      /* refill of its quota while it still waits, host ns; 0: throttled, or not waiting */
	int64_t handler[4];      /* names of the interrupt handlers, innermost last */
	unsigned handlers;
	int64_t rate;            /* progress of the activity, thousandths of that on a free core at the base frequency */
	struct core_counters {   /* host CPU: hardware counters, see cores.c */
		int64_t khz, since;  /* since: host ns up to which the counters are valid */
		uint128 cycles, instructions;  /* millionths, and thousandths of millionths */
		int64_t left;        /* number of reads that still fail */
		uint64_t frozen[2], offset[2];  /* instructions, cycles: at the last failed read; subtracted from each value */
		uint8_t fault;
	} counters;
	struct { int64_t start; int32_t tid; uint8_t mode; const struct machine *m; } user;
	int64_t lost_left;       /* number of records still to be lost */
	int64_t lost_from, lost; /* time of the first record lost since the last written record, host ns, and number of these
	                          * records */
};

enum act { ACT_NONE, ACT_OP, ACT_COMPUTE };

/* Timer that wakes no thread: a "forgotten" timer (paper, Fig. 15). */
struct bare {
	struct cpu *c;
	int64_t period;
};

/* CFS quota: the threads of the group together get `quota` ns of CPU time per `period` ns. */
struct quota_group {
	struct sim *sim;
	struct quota_group *parent;  /* NULL: none */
	char path[96];
	int64_t quota, period, used; /* quota 0: no limit */
	bool is_late, is_gone;       /* created during the recording; is_gone: and removed, so its limit is unknown */
	int64_t periods, throttled_periods, throttled_ns;  /* as in cpu.stat */
	int64_t cpu_since[CPUS_MAX]; /* start of the time for which it is throttled on a CPU, host ns; 0: it is not */
	int64_t refilled;  /* end of the last throttling, host ns */
	bool throttled;
};

/* Interval in which a VM is stopped (tenant.c). */
enum outage_kind { OUTAGE_PAUSE, OUTAGE_MIGRATION, OUTAGE_HIDDEN };
struct outage {
	struct machine *vm;
	int64_t from, to;  /* host ns */
	uint8_t kind;      /* enum outage_kind */
};

/* Part of a clock, valid from host time `from`: host = ref_host + (guest - ref_guest) / (1 + rate / 2^60). */
struct clock_part { int64_t from, ref_host, ref_guest, rate; };

struct machine {
	struct sim *sim;
	struct machine *below;        /* machine with the threads that run its CPUs; NULL: this is the host */
	char name[32];
	bool is_host, traced;
	unsigned cpus;
	struct cpu *cpu;
	struct thread **by_tid;       /* TIDS pointers */
	int32_t next_tid, threads;
	int32_t tids;                 /* pid_max: ids wrap around at this number */
	struct clock_part clock[8];
	unsigned clocks;
	int64_t boot_guest;           /* time of the machine's clock at its CLOCK_MONOTONIC 0, ns */
	int64_t trace_from, trace_to; /* traced interval, host ns */
	int64_t exit_mean;            /* mean computation between exits caused by guest code, ns */
	uint64_t next_request;
	int32_t qemu_pid;             /* PID of the VM's QEMU on the machine below */
	uint64_t vcpu_affinity;       /* affinity of its vCPU threads */
	struct quota_group *vcpu_group;
	const struct outage *outage;  /* it is stopped; NULL: it is not */
	int64_t mono_behind;          /* its trace clock since the boot minus its CLOCK_MONOTONIC, ns */
	int64_t tick, slice;          /* tick and time slice of its scheduler, ns */
	struct lock lock[2];
	struct thread *net;           /* host thread that carries its packets */
	unsigned boot_cpus;           /* number of CPUs at its start */
	int64_t boots, dies;          /* its threads may run after `boots`; QEMU ends it at `dies`; host ns */
	struct thread nobody;         /* thread of a CPU without a thread; always dead */
	struct ctf *ctf;              /* NULL: not traced */
	int64_t first, last;          /* times of its first and last record, host ns; NOTHING: none */
	uint64_t records, lost;
};

enum quota_facts { QUOTA_DEFAULT, QUOTA_SWITCHES, QUOTA_QUEUE, QUOTA_STAT, QUOTA_SESSION, QUOTA_NONE };

struct options {
	const char *scenario, *out;
	const char *plant;         /* planted: the change; NULL: none */
	int64_t number;            /* overcommit: number of VMs */
	uint64_t seed, events;     /* events: number of records after which to stop; 0: stop by time */
	int64_t duration;          /* duration, ns; 0: default of the scenario */
	int64_t pcpus, beacon_hz, hogs, burst;
	int64_t share;             /* planted: weight of the server's vCPU, percent of nice 0; 0: weight of its nice level */
	int64_t nice;              /* planted: nice level of the server's vCPU */
	int64_t affinity;          /* planted: CPUs of the server's vCPU, one bit each; 0: as planted */
	const char *without;       /* planted: name of a thread that is not created; NULL: none */
	const char *hide;          /* name of threads that are current in no record; NULL: none */
	int64_t work;              /* computation of a request, percent of the default; 0: 100 */
	int64_t offset, drift_ppb; /* offset (ns) and drift of guest clocks, if have_offset, have_drift */
	bool have_offset, have_drift, have_beacon;
	int64_t lost, sync_dup, sync_bogus;  /* faults per million */
	int64_t sync_jitter;       /* ns */
	int64_t step, step_at;     /* size of the clock step, ns; its time, per million of the duration */
	int64_t poll;              /* ns: limit of halt polling */
	int64_t swap;              /* share of a guest's page faults, per million, for which the host fetches the page, or
	                            * that are accesses to a device */
	int64_t packet;            /* size of a packet, bytes */
	int64_t siblings;          /* CPUs of the host per core; 0: no topology and no frequencies are recorded */
	int64_t slowdown;          /* speed of a thread beside a busy CPU of its core, percent; 0: siblings and frequencies slow
	                            * nothing down */
	int64_t counter_faults;    /* reads of hardware counters at which faults begin, per million */
	bool counters;             /* the host's records have instructions and cycles */
	bool no_kvm, no_sched, no_wakeups, no_truth, plain_names, bad_vcpu_id, late, containers, nested, hotplug;
	uint8_t quota_facts;       /* enum quota_facts: records about throttled threads, and the session file */
	uint8_t steal_reads;       /* enum steal_reads: source of the guests' steal clocks */
	const char *missing[16];
	unsigned missings;
};

/* Thread that runs or ran a vCPU. */
struct life {
	const struct machine *vm;
	unsigned number;
	int32_t tid, pid;
};

struct sim {
	struct options opt;
	struct rng rng, fault;        /* fault: for changes of the records only, so that faults do not change the simulation */
	struct queue queue;
	struct strtab names;
	int64_t now, begin, end;      /* end: time at which the simulation stops */
	int64_t first_record, last_record;
	uint64_t records, kind_records[64];
	struct machine *machine[260]; /* [0] is the host */
	unsigned machines;
	struct thread *free;
	struct life *life;
	size_t lives, life_cap;
	struct quota_group group[GROUPS_MAX];
	bool groups_recorded;         /* groups of host threads have a truth, and are recorded by opt.quota_facts */
	int64_t sample_period;        /* time between two records of their counters, ns; 0: the recorder's, 100 ms */
	int64_t move_period;          /* time between two moves of a thread to another group, ns; 0: no moves */
	unsigned groups;
	struct bare bare[4];
	unsigned bares;
	struct outage outage[4];
	unsigned outages;
	bool far_wakes;               /* waking a thread on another idle CPU of a guest sends an IPI */
	struct truth_out *truth;
	struct error err;
	bool failed;
};

/* ---- machine.c */
struct machine *machine_add(struct sim *s, const char *name, unsigned cpus, struct machine *below);
struct thread *thread_add(struct machine *m, const char *name, const struct step *prog, int64_t start,
                          uint64_t affinity);
struct thread *thread_new(struct machine *m, uint32_t name, const struct step *prog, int32_t pid, int32_t ppid);
void thread_free(struct thread *t);
void vcpu_thread(struct cpu *guest);
uint32_t vcpu_thread_name(const struct cpu *guest);
void machine_free(struct machine *m);

/* ---- hotplug.c */
bool vcpu_gone(const struct cpu *guest);              /* Returns true for a vCPU without a thread. */
void vcpu_attach(struct cpu *guest, struct thread *t);
void vcpu_detach(struct cpu *guest);
/* Plugs all CPUs. This function and the following ones run in a thread of QEMU on CPU c. */
void vm_plug_all(struct cpu *c, struct machine *vm);
void vm_change(struct cpu *c, struct machine *vm);
void vm_reap(struct cpu *c, struct machine *vm);
void vm_kill(struct cpu *c, struct machine *vm);
bool vm_gone(const struct machine *vm);

/* ---- sim_cpu.c: engine of a CPU */
struct op *cpu_push(struct cpu *c, enum op_kind kind, struct thread *t);        /* Appends an operation to the queue. */
/* Inserts an operation before all others. */
struct op *cpu_push_front(struct cpu *c, enum op_kind kind, struct thread *t);
void cpu_next(struct cpu *c);       /* Begins the next activity, if the CPU has none. */
void cpu_interrupt(struct cpu *c);  /* Stops the computation to handle a new interrupt or request. */
void cpu_irq(struct cpu *c, const struct irq *q);
void cpu_pause(struct cpu *c);      /* Freezes a vCPU. */
void cpu_resume(struct cpu *c);     /* Continues a vCPU. */
void cpu_change_rate(struct cpu *c);  /* Called when the rate of the computation on a host CPU may have changed. */
void cpu_due(struct cpu *c, uint32_t gen);

/* ---- sim_ops.c */
void op_run(struct cpu *c, const struct op *op);
void irq_begin(struct cpu *c, const struct irq *q);

/* ---- sched.c */
void sched_waking(struct cpu *c, struct thread *t);
void sched_wakeup(struct cpu *c, struct thread *t, bool is_new);
void sched_move(struct cpu *c, struct thread *t, const struct op *op);
void sched_pull(struct cpu *c, struct thread *t);
void sched_switch(struct cpu *c);
void sched_tick(struct cpu *c);
void sched_offline(struct cpu *c);
void sched_evacuate(struct cpu *c);  /* Moves one thread that is queued on an offline CPU. */
bool sched_wants(const struct cpu *c);  /* Returns true if an idle CPU has a thread to run. */
void sched_unthrottle(struct sim *s, struct quota_group *g);
void sched_regroup(struct thread *t, struct quota_group *to);  /* NULL: no group */
void sched_arm_tick(struct cpu *c);

/* ---- kvm.c */
struct cpu *vcpu_pcpu(const struct cpu *guest);              /* Returns the CPU of the machine below that runs the vCPU. */
/* Returns the CPU of the host that runs c, through all levels. */
struct cpu *pcpu_of(struct cpu *c);
void kvm_leave(struct cpu *guest, const struct op *op);      /* Begins the exit caused by an action of the guest. */
/* Begins the exit of the current vCPU because the host needs its CPU. */
void kvm_interrupt(struct cpu *pcpu);
void kvm_exit(struct cpu *pcpu, const struct op *op);
void kvm_poll(struct cpu *pcpu);                              /* Checks whether the halt has ended. */
void kvm_adapt(struct cpu *pcpu);
void kvm_go_on(struct cpu *pcpu);
void kvm_inject(struct cpu *pcpu);
void kvm_entry(struct cpu *pcpu);
void kvm_deliver(struct cpu *guest, const struct irq *q, struct cpu *from);
void kvm_forward(const struct op *op, struct cpu *from);

/* ---- workload.c */
enum step_kind { W_RUN, W_SLEEP, W_PERIOD, W_GOTO, W_LOOP, W_UNTIL, W_FORK, W_THREAD, W_EXEC, W_QUIT, W_BEACON,
                 W_EXIT, W_IO, W_DISK, W_SERVE, W_SUBMIT, W_DUMP, W_PAUSE, W_PLUG, W_REAP, W_CHANGE, W_LIVES, W_KILL,
                 W_GONE, W_LOCK, W_UNLOCK, W_SEND, W_RECEIVE, W_TAKE, W_DELIVER, W_SPIN };
struct step {
	uint8_t kind;     /* enum step_kind */
	uint8_t arg;      /* W_GOTO, W_LOOP, W_UNTIL, W_LIVES, W_GONE: number of the target step; W_FORK: workload */
	int64_t lo, hi;   /* range of a random time, ns, or of a random count */
	const char *text; /* name for W_EXEC */
};
enum workload { WL_HOG, WL_PULSE, WL_FIBONACCI, WL_FIB_SHELL, WL_CRITICAL, WL_CRITICAL_SHELL, WL_CC, WL_BURST_HOG,
                WL_SHORT,
                WL_FORKER, WL_SLEEPER, WL_PERIODIC, WL_DISK, WL_BLOCKIO, WL_BEACON, WL_SERVER, WL_CLIENT, WL_TRACER,
                WL_QEMU, WL_EXITS, WL_THREADED, WL_WORKER, WL_LAUNCHER, WL_VM, WL_LAZY_TRACER, WL_DAEMON, WL_CARRIER,
                WL_LOCKER, WL_ASKER, WL_ANSWERER, WL_SPINNER, WL_NAPPER, WL_SHORT_NAPPER, WL_LONG_NAPPER, WL_COUNT };
#define WL_VM_RUNS 3  /* index of the step of WL_VM at which the VM exists */
extern const struct step *const workload[WL_COUNT];
void thread_step(struct cpu *c, struct thread *t);
struct server *server_add(struct thread *t);
void server_free(struct server *s);
void sleep_until(struct thread *t, int64_t when);

/* ---- chain.c */
/* Gets the lock; the thread sleeps if the lock is not free. */
void lock_take(struct cpu *c, struct thread *t, struct lock *l);
/* Tries to get the lock; false: not free, try again later. */
bool lock_spin(struct cpu *c, struct thread *t, struct lock *l);
void lock_give(struct cpu *c, struct thread *t, struct lock *l);
struct thread *carrier_add(struct machine *vm, const char *name, bool of_qemu, uint64_t affinity);
void carrier_kick(struct cpu *c, struct thread *t);
struct thread *carrier_next(struct thread *t);
void carrier_deliver(struct cpu *c, struct thread *t);

/* ---- sim_record.c: trace records */
enum record_kind {
	REC_SWITCH, REC_WAKEUP, REC_WAKING, REC_WAKEUP_NEW, REC_MIGRATE, REC_FORK, REC_QUIT, REC_EXEC,
	REC_IRQ_ENTRY, REC_IRQ_EXIT,
	REC_SOFTIRQ_ENTRY, REC_SOFTIRQ_EXIT, REC_TIMER_ENTRY, REC_TIMER_EXIT, REC_KVM_ENTRY, REC_KVM_EXIT, REC_HYPERCALL,
	REC_INJECT, REC_USEREXIT, REC_LOG, REC_DUMP_START, REC_DUMP_PROCESS, REC_DUMP_NS, REC_DUMP_END,
	REC_DUMP_CGROUP, REC_GROUP_MOVE, REC_FREQUENCY, REC_HALT_POLL, REC_VCPU_WAKEUP,
	REC_STEAL_SWITCH, REC_STEAL_TIMER, REC_STEAL_TICK, /* written with --steal-clock only */
	REC_COUNT
};
union record_value { int64_t n; const char *s; const struct machine *m; };
enum record_field_type { FIELD_END, FIELD_I32, FIELD_U32, FIELD_I64, FIELD_U64, FIELD_HEX, FIELD_COMM, FIELD_STRING,
                  FIELD_TEXT,
                  FIELD_VTIDS,
                  FIELD_STEAL };  /* one field for each CPU of the machine: cpu0, cpu1, ... */
struct record_field { uint8_t type; const char *name; };
struct record_class { const char *name; struct record_field field[11]; };
extern const struct record_class record_class[REC_COUNT];
#define RECORD(c, kind, ...) record_write((c), (kind), (const union record_value[]){ __VA_ARGS__ })
#define N(x) { .n = (int64_t)(x) }
#define S(x) { .s = (x) }
void record_write(struct cpu *c, enum record_kind kind, const union record_value *v);
const char *thread_name(const struct thread *t);
int record_prio(const struct thread *t);

/* ---- sim_ctf.c: packets and metadata */
struct ctf *ctf_open(const char *dir, const struct machine *m, int64_t begin, struct error *err);
int ctf_write(struct ctf *t, unsigned cpu, int64_t ts, enum record_kind kind, struct cpu *c,
              const union record_value *v, struct error *err);
int ctf_lose(struct ctf *t, unsigned cpu, int64_t ts, struct error *err);  /* Discards the record that would be written. */
int ctf_close(struct ctf *t, int64_t end, struct error *err);

/* ---- cores.c */
void cores_init(struct sim *s);
void cores_tick(struct cpu *c);
int64_t cores_rate(struct cpu *c);      /* Returns the rate of a computation on any CPU that begins now. */
void cores_before_switch(struct cpu *c);  /* Called before and after a switch. */
void cores_after_switch(struct cpu *c);
void cores_read(struct cpu *c, uint64_t value[2]);  /* Reads instructions and cycles of a host CPU. */
void cores_end(struct sim *s);
void cores_write(FILE *f, const struct sim *s);  /* Writes the topology into the session file, as a part of the host. */

/* ---- session.c */
bool groups_in_session(const struct sim *s);  /* Returns true if the session file lists the control groups. */
int session_write(struct sim *s);

/* ---- sim_clock.c */
int64_t clock_guest(const struct machine *m, int64_t host);  /* Returns the time of the machine's clock, ns. */
void clock_set(struct machine *m, int64_t offset, int64_t drift_ppb);
void clock_step(struct machine *m, int64_t from, int64_t by);

/* ---- truth.c */
int truth_open(struct sim *s, const char *dir);
void truth_pcpu(struct cpu *c);                          /* Updates the current user of a pCPU. */
void truth_irq(struct cpu *c, const char *name);         /* Begins a handler; NULL: ends the innermost handler. */
void truth_vcpu(struct cpu *guest);                      /* Updates the state of a vCPU and of its current thread. */
void truth_end_out_by(struct cpu *guest, int64_t end);
void truth_quota(struct sim *s, const struct quota_group *g);  /* Called when the group is throttled or unthrottled. */
void truth_thread(struct thread *t);                     /* Updates status, CPU and name of a thread. */
void truth_end_thread(struct thread *t);
/* Writes that a halt that began at t->halt_since was polled until `end`. */
void truth_poll(const struct thread *t, int64_t end, bool won);
/* Writes that records were lost and none was written until `end`. */
void truth_loss(struct cpu *c, int64_t end);
/* Writes that the vCPU was ready in [start, end) and did not execute. */
void truth_steal(const struct cpu *guest, int64_t start, int64_t end, const char *kind);
void truth_mark(struct cpu *c, enum log_kind kind, int64_t id);
void truth_wake(struct cpu *c, const struct thread *t);  /* Writes the cause of a wakeup by CPU c. */
/* Writes a wait for a spinlock. got: the thread got the lock; false: the simulation ended first. */
void truth_spin(const struct thread *t, bool got);
/* Writes the interrupt that will wake t. */
void truth_raise(struct cpu *c, const struct cpu *guest, const struct thread *t);
int truth_close(struct sim *s);

/* ---- tenant.c */
enum steal_reads { STEAL_NONE, STEAL_SWITCH, STEAL_TICK };
#define STEAL_CPUS 16  /* maximum number of CPUs with a field in records of the steal clock */
unsigned steal_cpus(const struct machine *m);              /* Returns the number of these fields. */
void steal_enter(struct cpu *guest);                       /* The hypervisor updates the steal clock before a VM entry. */
void steal_probe(struct cpu *c, enum record_kind kind);    /* Queues a read of the steal clock, if the guest has a probe. */
void steal_read(struct cpu *c, enum record_kind kind);
void vm_stop(struct sim *s, const struct outage *o);
void vm_continue(struct sim *s, const struct outage *o);
int scenario_tenant(struct sim *s);

/* ---- scenario.c */
int scenario_build(struct sim *s);
void scenario_list(FILE *out);
