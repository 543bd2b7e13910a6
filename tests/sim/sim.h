/* The simulator's own world: machines, CPUs, threads, and what they do in which order.
 *
 * One discrete-event loop (main loop in sim.c) takes the earliest moment from a heap and lets one CPU finish one
 * activity: an operation of its kernel (at most one trace record, one state change) or a stretch of computation of
 * its thread.  No two activities finish in the same ns of host time, so records of all machines are totally ordered
 * and the truth is exact.  All times are ns of the host's clock since the epoch; guests' clocks exist only where
 * records are written (clock.c).
 *
 * A vCPU is a struct cpu whose `host` is a thread of the machine below: the host or, for a VM inside a guest, that
 * guest.  It makes progress only while `live`, that is between the kvm entry and the interruption that leads to the next
 * kvm exit, and while the CPU that executes it is live too.
 *
 * Shares no code with the analysis; uses src/base alone. */
#ifndef STEALSCOPE_SIM_SIM_H
#define STEALSCOPE_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strtab.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SEC INT64_C(1000000000)

#define TIDS 32768            /* thread ids are 1 .. TIDS - 1, reused after death as Linux does */
#define CPUS_MOST 64          /* per machine: affinities are bit masks */
#define ROOT_NS 4026531836u   /* the initial pid namespace, */
#define ROOT_CGROUP_NS 4026531835u  /* and that of cgroups */
#define WEIGHT_0 1024         /* of a thread of nice 0 */
#define SYNC_NR 0x56534e43    /* hypercall number of the beacon */

struct sim;
struct machine;
struct cpu;
struct thread;

/* ---- random numbers (rng.c): integer arithmetic only, so the same seed gives the same bytes everywhere */

struct rng { uint64_t s; };
uint64_t rng_next(struct rng *r);
int64_t rng_range(struct rng *r, int64_t lo, int64_t hi);      /* both included */
bool rng_chance(struct rng *r, int64_t per_million);
int64_t rng_exp(struct rng *r, int64_t mean);                  /* about exponential, at least 1 */

/* ---- the event queue (queue.c) */

enum due_kind { DUE_CPU, DUE_SLEEP, DUE_TICK, DUE_BARE, DUE_DISK, DUE_HOSTIO, DUE_PERIOD };
struct due {
	int64_t at;
	uint64_t seq;   /* first come first served among equals */
	void *who;
	uint32_t gen;   /* stale when it differs from the owner's */
	uint8_t kind;   /* enum due_kind */
};
struct queue {
	struct due *item;
	size_t len, cap;
	uint64_t seq;
};
void queue_push(struct queue *q, int64_t at, enum due_kind kind, void *who, uint32_t gen);
bool queue_pop(struct queue *q, struct due *out);
void queue_release(struct queue *q);

/* ---- operations of a kernel, run in order on one CPU, each after its delay (ops.c) */

enum op_kind {
	OP_NOP, OP_WAKING, OP_WAKEUP, OP_MOVE, OP_PULL, OP_SWITCH, OP_TICK,
	OP_TIMER_ENTRY, OP_TIMER_EXIT, OP_IRQ_ENTRY, OP_IRQ_EXIT, OP_SOFTIRQ_ENTRY, OP_SOFTIRQ_EXIT,
	OP_FORK, OP_WAKEUP_NEW, OP_EXEC, OP_QUIT, OP_LOG, OP_DUMP_START, OP_DUMP, OP_DUMP_NS, OP_DUMP_CGROUP, OP_DUMP_END,
	OP_POLL, OP_ADAPT, OP_GO_ON,                               /* host: a halted vCPU is awaited running */
	OP_LEAVE,                                                 /* guest: something that makes the CPU exit */
	OP_EXIT, OP_HYPERCALL, OP_USEREXIT, OP_INJECT, OP_ENTRY,  /* host: KVM */
	OP_DELIVER, OP_UNTHROTTLE, OP_OFFLINE, OP_EVACUATE,
	OP_KINDS
};
struct op {
	uint8_t kind;     /* enum op_kind */
	uint8_t what;     /* enum irq_kind, exit_kind or log_kind */
	int32_t delay;    /* ns of live CPU time before it happens */
	struct thread *t;
	struct cpu *c;
	int64_t a, b;
};

enum irq_kind { IRQ_TICK, IRQ_WAKE, IRQ_BARE, IRQ_DEV, IRQ_RESCHED, IRQ_OFFLINE, IRQ_GUEST, IRQ_GUEST_DEV,
                IRQ_PERIOD };
struct irq {
	uint8_t kind;     /* enum irq_kind */
	uint8_t inner;    /* of IRQ_GUEST: what the guest will see */
	struct thread *t; /* whom it wakes */
	struct cpu *c;    /* of IRQ_GUEST: the vCPU */
	void *who;        /* struct bare or struct quota_group */
};
/* What a machine sees of an interrupt that a vCPU of its guest shall get. */
#define IRQ_FOR(guest, what, thread, owner) { .kind = (what) == IRQ_DEV ? IRQ_GUEST_DEV : IRQ_GUEST, \
	.inner = (uint8_t)(what), .t = (thread), .c = (guest), .who = (owner) }

/* Why a vCPU leaves guest mode; the number is the exit_reason of the record (SVM). */
enum exit_kind { EXIT_INTR, EXIT_VINTR, EXIT_CPUID, EXIT_HLT, EXIT_IO, EXIT_MSR, EXIT_IPI, EXIT_VMMCALL, EXIT_NPF,
                 EXIT_DISK, EXIT_KICK, EXIT_NESTED, EXIT_PAUSE, EXIT_FETCH, EXIT_MMIO, EXIT_KINDS };
enum log_kind { LOG_SYNC_A, LOG_SYNC_D, LOG_START, LOG_YIELD, LOG_RESUME, LOG_END };

/* ---- truth: one attribute whose value is followed (truth.c) */

enum track_kind { TRACK_CURRENT, TRACK_OWNER, TRACK_IRQ, TRACK_VSTATUS, TRACK_VTHREAD, TRACK_PCPU,
                  TRACK_OUT_BY, TRACK_STATUS, TRACK_NAME, TRACK_CPU, TRACK_PID, TRACK_KINDS };
#define NOTHING INT64_MIN  /* the value of an attribute that has none */
struct truth_track { int64_t start, value; };

/* ---- threads */

enum task_state { TASK_BLOCKED, TASK_RUNNABLE, TASK_RUNNING, TASK_NEW, TASK_DEAD };
enum want { WANT_RUN, WANT_SLEEP, WANT_DISK, WANT_HALT, WANT_DIE };
struct step;
struct server;

/* chain.c: a thread of the host that carries messages of guests, and whom the next ones are for. */
struct carrier {
	const struct machine *vm;    /* it serves: into that it raises interrupts */
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
	struct cpu *vcpu;        /* of the guest, if this is the host's thread behind it */
	struct machine *vm;      /* whose QEMU's main thread it is, if that changes the VM */
	struct quota_group *group;  /* bandwidth group, or NULL */
	int32_t tid, pid, ppid;
	uint32_t name;           /* string id */
	uint32_t ns, cgroup_ns;  /* namespaces */
	uint64_t affinity;       /* bit per CPU */
	unsigned cpu;            /* runs on, is queued on, or ran on last */
	uint8_t state;           /* enum task_state */
	uint8_t want;            /* enum want: what the next OP_SWITCH makes of it */
	bool rt, idle, waking, woken, wake_pending, in_guest, in_run, dying;
	bool fetches;            /* of a vCPU: memory that its guest touched */
	int64_t vruntime, exec_since, slice_start;
	int64_t queued_since;    /* host ns */
	int64_t weight;          /* of its share of a CPU; 0: that of its nice level */
	int8_t nice;
	uint32_t timer_gen;
	/* of a vCPU, with --poll: */
	bool polls, halts;       /* it has halted, and is awaited running; its end is not recorded yet */
	bool slept;              /* in this halt */
	int64_t halt_since, halt_out;  /* host ns; out: it left its CPU */
	int64_t poll, poll_next; /* ns: how long it may, in this halt and in the next one */
	/* its program (workload.c) */
	const struct step *prog;
	unsigned pc;
	int64_t run_left;        /* ns of computation left in the step */
	int64_t work_left;       /* ns of it until the next thing that happens */
	int64_t period_next;
	int64_t loop_left;       /* rounds of the current W_LOOP */
	int64_t until;           /* host ns: when W_UNTIL goes on */
	int32_t dump_tid;
	struct server *server;
	struct carrier *carrier;
	struct thread *sends_by, *sends_to;  /* who carries what it sends, and to whom */
	unsigned inbox;          /* wakeups that it has not asked for yet */
	int64_t spins_since;     /* host ns: for a lock; 0: it does not */
	struct thread *spins_for;  /* whoever had that then */
	/* truth */
	struct truth_track status, tname, tcpu, tpid;
	struct usage *usage;     /* of request servers */
	struct thread *next_free;
};

struct cpu {
	struct machine *m;
	unsigned number;
	struct thread *cur, *idle;
	struct thread *host;     /* vCPU: its thread on the machine below */
	struct thread **run;     /* queued threads, in no order */
	size_t runs, run_cap;
	struct op *op;           /* ring */
	size_t ops, op_first, op_cap;
	struct irq *irq;         /* arrived, not handled yet */
	size_t irqs, irq_cap;
	struct irq *virq;        /* vCPU: pending in the hypervisor */
	size_t virqs, virq_cap;
	bool live;               /* host: always; vCPU: executes */
	bool online;             /* its machine's scheduler uses it */
	bool was_online;         /* since its thread was started */
	bool kick;               /* vCPU: must leave guest mode for a new interrupt */
	bool resched;
	bool tick_armed;
	uint8_t act;             /* enum act */
	int64_t since, left;     /* of the activity */
	uint32_t gen, tick_gen;
	int64_t min_vruntime;
	uint64_t key;            /* beacon: last key used */
	struct truth_track current, owner, interrupt, vstatus, vthread, pcpu, out_by;
	int64_t quota_over;      /* host ns: its thread may run since then, and waits on; 0: it may not, or does */
	int64_t handler[4];      /* names of the interrupt handlers, the innermost last */
	unsigned handlers;
	struct { int64_t start; int32_t tid; uint8_t mode; const struct machine *m; } who;
	int64_t lost_left;       /* records still to be lost */
	int64_t lost_from, lost; /* host ns of the first record lost since the last one written, and how many */
};

enum act { ACT_NONE, ACT_OP, ACT_COMPUTE };

/* A timer that wakes nobody: "forgotten" (paper, Fig. 15). */
struct bare {
	struct cpu *c;
	int64_t period;
};

/* Threads that together get `quota` ns of CPU per `period` ns. */
struct quota_group {
	struct sim *sim;
	int64_t quota, period, used;
	bool throttled;
};

/* host = ref_host + (guest - ref_guest) / (1 + rate / 2^60) from host time `from` on. */
struct clock_part { int64_t from, ref_host, ref_guest, rate; };

struct machine {
	struct sim *sim;
	struct machine *below;         /* whose threads its CPUs are; NULL: the host */
	char name[32];
	bool is_host, traced;
	unsigned cpus;
	struct cpu *cpu;
	struct thread **by_tid;        /* TIDS pointers */
	int32_t next_tid, threads;
	int32_t tids;                  /* ids end here and begin again: pid_max */
	struct clock_part clock[8];
	unsigned clocks;
	int64_t boot_guest;            /* ns: the machine's clock when its CLOCK_MONOTONIC was 0 */
	int64_t trace_from, trace_to;  /* host ns: nothing is recorded outside */
	int64_t exit_mean;             /* ns of computation between exits that the guest's code causes */
	uint64_t next_request;
	int32_t qemu_pid;              /* of the VM on the host */
	uint64_t vcpu_affinity;        /* of its CPUs' threads */
	struct quota_group *vcpu_group;
	struct lock lock[2];
	struct thread *net;            /* of the host: carries its packets */
	unsigned boot_cpus;            /* it has from its start on */
	int64_t boots, dies;           /* host ns: from then on its threads may run; when its QEMU ends it */
	struct thread nobody;          /* stands for the thread of a CPU that has none */
	struct ctf *ctf;               /* NULL: not traced */
	int64_t first, last;           /* host ns of its records; NOTHING */
	uint64_t records, lost;
};

struct options {
	const char *scenario, *out;
	const char *plant;             /* what is different, of planted; NULL: nothing */
	int64_t number;                /* of overcommit */
	uint64_t seed, events;         /* events: stop after so many records, 0 = by time */
	int64_t duration;              /* ns, 0 = the scenario's */
	int64_t pcpus, beacon_hz, hogs, burst;
	int64_t share;                 /* weight of the server's vCPU, of planted, percent of nice 0; 0 = that of its nice level */
	int64_t nice;                  /* level of the server's vCPU, of planted */
	int64_t affinity;              /* of the same: CPUs, a bit each; 0 = as planted */
	const char *without;           /* of planted: a thread's name; NULL: all are there */
	int64_t work;                  /* of a request, percent of the usual; 0 = 100 */
	int64_t offset, drift_ppb;     /* of guests' clocks, when given */
	bool have_offset, have_drift, have_beacon;
	int64_t lost, sync_dup, sync_bogus;  /* per million */
	int64_t sync_jitter;           /* ns */
	int64_t step, step_at;         /* ns; per million of the duration */
	int64_t poll;                  /* ns: halted vCPUs are awaited running for so long at most */
	int64_t swap;                  /* per million of a guest's page faults: its host has to fetch, or they are a device's */
	int64_t packet;                /* bytes */
	bool no_kvm, no_truth, plain_names, bad_vcpu_id, late, containers, nested, hotplug;
	const char *missing[16];
	unsigned missings;
};

/* A thread that was a vCPU. */
struct life {
	const struct machine *vm;
	unsigned number;
	int32_t tid, pid;
};

struct sim {
	struct options opt;
	struct rng rng, fault;         /* fault: for what is done to the records, so that it does not change the course */
	struct queue queue;
	struct strtab names;
	int64_t now, begin, end;       /* end: when to stop */
	int64_t first_record, last_record;
	uint64_t records, kind_records[64];
	struct machine *machine[260];  /* [0] is the host */
	unsigned machines;
	struct thread *free;
	struct life *life;
	size_t lives, life_cap;
	struct quota_group group[4];
	unsigned groups;
	struct bare bare[4];
	unsigned bares;
	bool far_wakes;                /* a guest's idle CPU is sent an interrupt to wake a thread on it */
	struct truth_out *truth;
	struct error err;
	bool failed;
};

/* machine.c */
struct machine *machine_add(struct sim *s, const char *name, unsigned cpus, struct machine *below);
struct thread *thread_add(struct machine *m, const char *name, const struct step *prog, int64_t start,
                          uint64_t affinity);
struct thread *thread_new(struct machine *m, uint32_t name, const struct step *prog, int32_t pid, int32_t ppid);
void thread_free(struct thread *t);
void vcpu_thread(struct cpu *guest);
uint32_t vcpu_thread_name(const struct cpu *guest);
void machine_free(struct machine *m);

/* hotplug.c */
bool vcpu_gone(const struct cpu *guest);              /* a vCPU without a thread */
void vcpu_attach(struct cpu *guest, struct thread *t);
void vcpu_detach(struct cpu *guest);
void vm_plug_all(struct cpu *c, struct machine *vm);  /* these are done by a thread of QEMU on CPU c */
void vm_change(struct cpu *c, struct machine *vm);
void vm_reap(struct cpu *c, struct machine *vm);
void vm_kill(struct cpu *c, struct machine *vm);
bool vm_gone(const struct machine *vm);

/* cpu.c: the engine */
struct op *cpu_push(struct cpu *c, enum op_kind kind, struct thread *t);        /* behind all others */
struct op *cpu_push_front(struct cpu *c, enum op_kind kind, struct thread *t);  /* before all others */
void cpu_next(struct cpu *c);       /* lets the CPU begin its next activity, if it has none */
void cpu_interrupt(struct cpu *c);  /* something new is pending: stop computing and look */
void cpu_irq(struct cpu *c, const struct irq *q);
void cpu_pause(struct cpu *c);      /* vCPU: freezes */
void cpu_resume(struct cpu *c);     /* vCPU: goes on where it was */
void cpu_due(struct cpu *c, uint32_t gen);

/* ops.c */
void op_run(struct cpu *c, const struct op *op);
void irq_begin(struct cpu *c, const struct irq *q);

/* sched.c */
void sched_waking(struct cpu *c, struct thread *t);
void sched_wakeup(struct cpu *c, struct thread *t, bool is_new);
void sched_move(struct cpu *c, struct thread *t, const struct op *op);
void sched_pull(struct cpu *c, struct thread *t);
void sched_switch(struct cpu *c);
void sched_tick(struct cpu *c);
void sched_offline(struct cpu *c);
void sched_evacuate(struct cpu *c);  /* one thread that is queued on a CPU which is offline goes elsewhere */
bool sched_wants(const struct cpu *c);  /* an idle CPU that has somebody to run */
void sched_unthrottle(struct sim *s, struct quota_group *g);
void sched_arm_tick(struct cpu *c);

/* kvm.c */
struct cpu *vcpu_pcpu(const struct cpu *guest);              /* of the machine below */
struct cpu *pcpu_of(struct cpu *c);                          /* of the host */
void kvm_leave(struct cpu *guest, const struct op *op);      /* the guest does something that exits */
void kvm_interrupt(struct cpu *pcpu);                        /* the host wants its CPU back */
void kvm_exit(struct cpu *pcpu, const struct op *op);
void kvm_poll(struct cpu *pcpu);                              /* looks whether the halt is over */
void kvm_adapt(struct cpu *pcpu);
void kvm_go_on(struct cpu *pcpu);
void kvm_inject(struct cpu *pcpu);
void kvm_entry(struct cpu *pcpu);
void kvm_deliver(struct cpu *guest, const struct irq *q, struct cpu *from);
void kvm_forward(const struct op *op, struct cpu *from);

/* workload.c */
enum step_kind { W_RUN, W_SLEEP, W_PERIOD, W_GOTO, W_LOOP, W_UNTIL, W_FORK, W_THREAD, W_EXEC, W_QUIT, W_BEACON,
                 W_EXIT, W_IO, W_DISK, W_SERVE, W_SUBMIT, W_DUMP, W_PAUSE, W_PLUG, W_REAP, W_CHANGE, W_LIVES, W_KILL,
                 W_GONE, W_LOCK, W_UNLOCK, W_SEND, W_RECEIVE, W_TAKE, W_DELIVER, W_SPIN };
struct step {
	uint8_t kind;            /* enum step_kind */
	uint8_t arg;             /* W_GOTO, W_LOOP, W_UNTIL, W_LIVES, W_GONE: step to go to; W_FORK: workload */
	int64_t lo, hi;          /* ns, or a count */
	const char *text;        /* name */
};
enum workload { WL_HOG, WL_PULSE, WL_FIBONACCI, WL_FIB_SHELL, WL_CRITICAL, WL_CRITICAL_SHELL, WL_CC, WL_BURST_HOG,
                WL_SHORT,
                WL_FORKER, WL_SLEEPER, WL_PERIODIC, WL_DISK, WL_BLOCKIO, WL_BEACON, WL_SERVER, WL_CLIENT, WL_TRACER,
                WL_QEMU, WL_EXITS, WL_THREADED, WL_WORKER, WL_LAUNCHER, WL_VM, WL_LAZY_TRACER, WL_DAEMON, WL_CARRIER, WL_LOCKER,
                WL_ASKER, WL_ANSWERER, WL_SPINNER, WL_COUNT };
#define WL_VM_RUNS 3  /* the step of WL_VM at which the VM is there */
extern const struct step *const workload[WL_COUNT];
void thread_step(struct cpu *c, struct thread *t);
struct server *server_add(struct thread *t);
void server_free(struct server *s);
void sleep_until(struct thread *t, int64_t when);

/* chain.c */
void lock_take(struct cpu *c, struct thread *t, struct lock *l);  /* sleeps when it is not free */
bool lock_spin(struct cpu *c, struct thread *t, struct lock *l);  /* false: it is not free, try again in a while */
void lock_give(struct cpu *c, struct thread *t, struct lock *l);
struct thread *carrier_add(struct machine *vm, const char *name, bool of_qemu, uint64_t affinity);
void carrier_kick(struct cpu *c, struct thread *t);
struct thread *carrier_next(struct thread *t);
void carrier_deliver(struct cpu *c, struct thread *t);

/* record.c: trace records */
enum record_kind {
	REC_SWITCH, REC_WAKEUP, REC_WAKING, REC_WAKEUP_NEW, REC_MIGRATE, REC_FORK, REC_QUIT, REC_EXEC,
	REC_IRQ_ENTRY, REC_IRQ_EXIT,
	REC_SOFTIRQ_ENTRY, REC_SOFTIRQ_EXIT, REC_TIMER_ENTRY, REC_TIMER_EXIT, REC_KVM_ENTRY, REC_KVM_EXIT, REC_HYPERCALL,
	REC_INJECT, REC_USEREXIT, REC_LOG, REC_DUMP_START, REC_DUMP_PROCESS, REC_DUMP_NS, REC_DUMP_END,
	REC_DUMP_CGROUP, REC_HALT_POLL, REC_VCPU_WAKEUP, REC_COUNT
};
union record_value { int64_t n; const char *s; };
enum record_field_type { FIELD_END, FIELD_I32, FIELD_U32, FIELD_I64, FIELD_U64, FIELD_HEX, FIELD_COMM, FIELD_STRING,
                  FIELD_TEXT,
                  FIELD_VTIDS };
struct record_field { uint8_t type; const char *name; };
struct record_class { const char *name; struct record_field field[11]; };
extern const struct record_class record_class[REC_COUNT];
#define RECORD(c, kind, ...) record_write((c), (kind), (const union record_value[]){ __VA_ARGS__ })
#define N(x) { .n = (int64_t)(x) }
#define S(x) { .s = (x) }
void record_write(struct cpu *c, enum record_kind kind, const union record_value *v);
const char *thread_name(const struct thread *t);
int record_prio(const struct thread *t);

/* ctf.c: packets and metadata */
struct ctf *ctf_open(const char *dir, const struct machine *m, int64_t begin, struct error *err);
int ctf_write(struct ctf *t, unsigned cpu, int64_t ts, enum record_kind kind, const struct thread *cur,
              const union record_value *v, struct error *err);
int ctf_lose(struct ctf *t, unsigned cpu, int64_t ts, struct error *err);  /* the record that would be written is discarded */
int ctf_close(struct ctf *t, int64_t end, struct error *err);

/* clock.c */
int64_t clock_guest(const struct machine *m, int64_t host);  /* ns of the machine's clock */
void clock_set(struct machine *m, int64_t offset, int64_t drift_ppb);
void clock_step(struct machine *m, int64_t from, int64_t by);

/* truth.c */
int truth_open(struct sim *s, const char *dir);
void truth_pcpu(struct cpu *c);                          /* who runs on a pCPU */
void truth_irq(struct cpu *c, const char *name);         /* a handler begins; NULL: the innermost one ends */
void truth_vcpu(struct cpu *guest);                      /* its state and that of its current thread */
void truth_end_out_by(struct cpu *guest, int64_t end);
void truth_quota(struct sim *s, const struct quota_group *g);  /* its threads may run no longer, or again */
void truth_thread(struct thread *t);                     /* status, CPU, name */
void truth_end_thread(struct thread *t);
void truth_poll(const struct thread *t, int64_t end, bool won);  /* a halt that began with t->halt_since was polled */
void truth_loss(struct cpu *c, int64_t end);             /* records were lost; until `end` nothing was written */
void truth_mark(struct cpu *c, enum log_kind kind, int64_t id);
void truth_wake(struct cpu *c, const struct thread *t);  /* on CPU c */
void truth_spin(const struct thread *t, bool got);       /* it has got the lock for which it has spun, or all ends before */
void truth_raise(struct cpu *c, const struct cpu *guest, const struct thread *t);  /* an interrupt that will wake t */
int truth_close(struct sim *s);

/* scenario.c */
int scenario_build(struct sim *s);
void scenario_list(FILE *out);

#endif
