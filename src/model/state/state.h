/* State of the model between two events: machines, their CPUs, their live threads, and vCPUs.
 *
 * One struct machine serves all levels: the host, a guest, a guest inside a guest. If a machine's CPUs are vCPUs,
 * each refers to the thread of the parent machine that runs it. A change of that thread changes the vCPU, and the vCPU
 * changes the thread that is current on it. Only update.c propagates changes in this way; all other code sets facts (the
 * current thread, sleeping threads) and calls update.c.
 *
 * Invariants: a thread is current on at most one CPU (thread.on_cpu), and that CPU's `current` is the thread; every live
 * thread is in its machine's map; `status` is the value written last. Memory: live threads, CPUs, vCPUs, open requests;
 * nothing grows with the event count. */
#pragma once

#include "base/base.h"
#include "base/control_groups.h"
#include "base/schema.h"
#include "base/states.h"
#include "model/inference/group_quota.h"
#include "model/inference/idle_inference.h"
#include "model/inference/steal_check.h"
#include "model/loss/hidden_threads.h"
#include "model/inference/vcpu_throttling.h"
#include "model/model_sink.h"
#include "model/state/irq_nesting.h"
#include "model/state/halt_polling.h"
#include "model/state/vcpu.h"
#include "sync/sync.h"
#include "trace/trace.h"

#define NONE UINT32_MAX     /* invalid index */
#define STATUS_NULL (-1)    /* not alive */
#define EXIT_CACHE_SIZE 64       /* size of the cache of exit names */
#define THREAD_NAME_MAX 15     /* maximum length of a thread name, bytes, as in the kernel */

struct thread {
	int32_t tid, pid;           /* pid: -1: unknown */
	int32_t on_cpu;             /* CPU on which it is current; -1: none */
	int32_t cpu;                /* CPU on which it runs, is queued, or ran last; -1: unknown */
	int32_t waker;              /* the waker's TID; -1: not woken since it blocked */
	int64_t since;              /* lower bound of the time since which `cpu` is valid, host ns */
	int64_t status_since;       /* lower bound of the time since which `status` is valid, host ns */
	int64_t waker_in;           /* the waker's context: string id; HISTORY_NULL: unknown */
	int64_t waker_at;           /* the waking's time, host ns; not before the sleep */
	int64_t arrived_at;         /* time of its last recorded wakeup, or of the waking before, host ns; INT64_MIN: none */
	bool woken_early;           /* woken while it was still current, before it blocked */
	int64_t woken_by, woken_at; /* waker (reference; HISTORY_NULL: unknown) and time of the last wakeup, as written */
	int64_t lock;               /* address of the kernel lock that it waits for; 0: futex */
	uint32_t comm;              /* string id of its name in its machine's trace; 0: unknown */
	uint32_t vcpu;              /* index in model->vcpu of the vCPU that it runs; NONE: none */
	int8_t sched;               /* state in its machine's scheduler: enum thread_state, never VIRT_PREEMPTED */
	int8_t status;              /* value written last: enum thread_state; STATUS_NULL: not alive */
	bool waits_for_lock;        /* waits for a lock named by an event */
	bool stale;                 /* no event since a loss: its TID may belong to another thread now */
	uint8_t woken;              /* enum woken: whether it is PREEMPTED since a wakeup or since it lost its CPU */
	bool never_woken;           /* forked, and not woken since */
	bool has_left;              /* a switch from it was recorded */
	bool is_hidden;             /* member of machine.hidden */
	bool in_kernel;             /* kernel thread, according to the state dump */
	int8_t nice;                /* nice level at its last switch-in; NICE_RT: real time; NICE_UNKNOWN */
	int32_t shown_group;        /* number of its control group; -1: unknown */
	int32_t group;              /* index of this group, or of the nearest one around it, in the session file; -1: none */
	bool in_quota;              /* that group, or one above, has a quota, or its limit is unknown */
	int64_t group_since;        /* time of its fork, or of its last move to another group, host ns; 0: none */
	struct group_waits *waits;  /* waits that may be a quota's; NULL: none */
	int64_t throttled_since;    /* start of the time for which its quota keeps it off, host ns; INT64_MAX: none */
	enum throttled_with {
		THROTTLED_ALONE,    /* its own event shows it, if it is throttled */
		THROTTLED_WITH,     /* the event of another thread of its group on its CPU shows it */
		THROTTLED_MAYBE     /* that thread left the group or the CPU: it may be throttled no more */
	} throttled_with;
	uint32_t pid_ns, cgroup_ns; /* inode numbers of its namespaces; 0: unknown */
	/* vCPU of a hypervisor that reports run states, see vcpu_run_states.c: */
	int64_t wait_since, offline_since;  /* start of the wait for a pCPU, and of the time offline, host ns */
	uint8_t stop;               /* kind of the last stop since it ran */
	bool is_offline, has_quota, has_run;
	bool has_entries;           /* its VM entries are recorded: it runs in guest mode only after an entry */
	uint32_t attr[THREAD_ATTRS];
	uint32_t *container_attr;   /* the same attributes below its container, THREAD_ATTRS of them; NULL: no container */
	bool detached;              /* may not be the container's thread any more; only its end is written below the
	                             * container */
};

enum woken { WOKEN_NO, WOKEN_YES, WOKEN_PERHAPS };

enum cpu_state { CPU_UNSEEN, CPU_UNKNOWN, CPU_IDLE, CPU_BUSY };

struct prescan;

struct cpu {
	enum cpu_state state;
	struct thread *current;        /* current thread, if CPU_BUSY */
	uint32_t vcpu;                 /* index in model->vcpu; NONE: a physical CPU */
	int64_t unknown_since;         /* the unknown time's start, host ns, if CPU_UNKNOWN */
	int64_t last;                  /* time of its last event, host ns */
	int64_t busy_since;            /* lower bound of the time since which it is not idle, host ns, if CPU_BUSY */
	bool resuming;                 /* the next event is its first event, or the first after a loss */
	bool may_send;                 /* its last event is a hypercall of its current thread that may wake a vCPU */
	uint32_t losses;               /* losses read so far */
	uint32_t handler;              /* search position of unseen_handlers_at_gap() */
	uint32_t attr_current, attr_owner, attr_interrupt;
	struct irq_nest nest;          /* stack of interrupt handlers */
	struct run_levels *run_levels; /* for CPUs that run vCPUs: the tasks' nice levels; NULL: nothing recorded */
};

struct vcpu {
	struct machine *vm;
	uint32_t number;              /* number of the CPU in vm */
	bool mapped;                  /* its thread on vm->parent was identified */
	bool plugged;                 /* CPU was plugged while its guest was traced: idle until its first event */
	bool unused;                  /* its thread is new and has not entered the guest: it does not sleep because of a halt */
	struct thread *thread;        /* thread that runs it; NULL: not alive */
	int64_t life_end;             /* latest end of that thread's lifetime, host ns */
	enum vcpu_mode mode;
	struct idle_tracker tracker;  /* idleness of the guest according to its exits */
	uint8_t steal_state;          /* enum vcpu_host_state according to the guest's steal clock; HOST_UNTRACED: executes, or
	                               * the host was traced */
	bool idle_unknown;            /* idleness was unknown at some time */
	int status;                   /* value written last: enum vcpu_state or STATUS_NULL */
	int64_t status_since;         /* time of that write, host ns */
	int64_t exit, exit_at;        /* name (string id; HISTORY_NULL: none) and time (host ns) of its last exit, as written */
	int64_t kernel_ip;            /* guest kernel's instruction pointer at its last exit; 0: not in the kernel;
	                               * EVENT_ABSENT: unknown */
	bool kernel_ip_written;       /* the instruction pointer was written as that of a preemption */
	int32_t pcpu;                 /* value written last; -1: null */
	struct throttling throttling; /* throttled, paused, or in a page fault */
	struct halt_polling polling;  /* halt polling of its halts */
	uint32_t attr_status, attr_host_thread, attr_pcpu, attr_exit, attr_inside;
	uint32_t attr_steal_bound, attr_out_by;  /* of a vCPU with a steal clock */
	struct steal_check steal_check;          /* of a vCPU with a steal clock and a host trace */
};

/* Thread that may run a vCPU. TIDs are reused, and an unplugged vCPU may be plugged again with another thread. */
struct candidate {
	uint32_t vcpu;         /* index in model->vcpu */
	struct sync_vcpu_lifetime life; /* the thread's lifetime; a thread with this TID at other times is another thread */
	uint32_t next;         /* index of the next candidate with the same TID; NONE: none */
};

/* Source of the strings of a machine's trace, by id. */
struct name_source {
	const char *(*get)(const void *of, int64_t id);
	const void *of;
};

struct machine {
	struct model *model;
	char *name;                    /* "host" or the VM's name */
	bool is_virtual;               /* known to be a VM ... */
	const char *vm_thread;         /* ... by this thread: its name, or part of it; NULL: otherwise */
	int64_t text_vm_id;            /* string id of its identity at the provider; -1: none */
	char *root;                    /* the machine's path, "/Host" or "/Virtual Machines/Debian", escaped */
	struct machine *parent;        /* machine with the threads that run its CPUs; NULL: physical CPUs, or unknown */
	uint32_t index;
	int32_t host_pid;              /* PID of the VM's process on its parent; -1: unknown */
	bool traced;                   /* has a trace */
	bool active;                   /* its trace has begun and has not ended */
	bool has_entries;              /* the trace contains VM entries */
	bool has_run_states;           /* a hypervisor without host threads: its trace contains run states of vCPUs */
	bool has_stops;                /* its trace contains vCPU stops, if there are any */
	bool has_pids;                 /* events contain their thread's PID */
	bool has_throttled;            /* the trace contains throttled */
	bool has_userspace_exits;      /* the trace contains kvm_userspace_exit */
	bool waking_is_wakeup;         /* the trace has sched_waking but no sched_wakeup */
	bool has_seen_sched;                /* an event showed which thread or vCPU ran */
	bool has_seen_wakeup;               /* a sched_wakeup or sched_waking was processed */
	bool has_seen_waking;               /* a sched_waking was processed */
	bool has_wakeups;              /* the trace contains wakeups, or was not prescanned */
	bool has_migrations;           /* the trace contains sched_migrate */
	bool one_cpu;                  /* has only one CPU */
	const struct prescan *prescan; /* the prescan's result, borrowed; NULL: none */
	size_t epoch;                  /* current epoch of *prescan */
	int64_t lost_until;            /* end of the losses read so far, ns, the machine's clock */
	bool lost_pending;             /* current time is before lost_until */
	int64_t begin;                 /* its trace's start, host ns */
	int64_t unknown;               /* CPU time with an unknown current thread, ns, without intervals that have not ended */
	/* Self-check: number of events with a context (CPU, thread) that contradicts the state before them, by event kind. */
	uint64_t contradictions[EVENT_KIND_COUNT];
	uint64_t contradicting;        /* number of the event counted last, see count_contradiction() */
	struct hidden_threads hidden;
	uint64_t assumed_cpus;         /* waits for which the CPU is assumed, see thread_check_move() */
	uint64_t unseen_wakeups;       /* sleeps that ended without a wakeup, before any wakeup was processed */
	uint64_t unknown_wakers;       /* wakeups with an unknown waker */
	uint8_t handler_kinds;         /* kinds of handlers that its trace can contain: HANDLERS_IRQ ... */
	uint8_t kinds_without_exit;    /* kinds of handlers without exit events: their duration is unknown */
	uint8_t isa;                   /* instruction set extension of its exits, as written: enum isa */
	int64_t text_name;             /* string id of its name */
	int64_t text_timer;            /* string id of "timer"; -1: not created yet */
	struct name_source names;
	struct cpu *cpu;
	uint32_t cpus;
	struct cpu_counters *counters; /* by number of the CPU; NULL: no hardware counter was read */
	uint32_t counter_cpus;
	struct map thread;             /* TID -> struct thread * */
	struct map candidate;          /* TID -> 1 + index of its first entry in model->candidate */
	struct map request;            /* request id -> struct request_attrs * */
	struct request_probes *probes; /* probe requests; NULL: none yet */
	struct map handler_name;       /* irq number, name and kind -> string id, see irq.c */
	struct map exit_name;          /* exit code -> string id, see guest_exit_model.c */
	struct timer_expiries *timer_expiries;  /* recent hrtimer expiries, on a host with throttled vCPUs; NULL: none */
	/* recently used entries of exit_name */
	struct exit_cache { uint64_t code; int64_t name; } exit_cache[EXIT_CACHE_SIZE];
	char node[NODE_MAX];       /* "/Host/Threads/42": node of the last declared attribute */
	int32_t node_tid;              /* TID of `node`; 0: none */
};

struct model {
	struct model_sink sink;
	struct machine **machine; /* [0]: the host, traced or not */
	uint32_t machines;
	struct vcpu *vcpu;
	uint32_t vcpus;
	size_t vcpu_cap;
	struct candidate *candidate;
	size_t candidates, candidate_cap;
	int64_t text_thread;      /* string id of "thread"; -1: not created yet */
	unsigned set_vcpu, set_thread, set_owner, set_request, set_out_by, set_polling;
	uint32_t owners;          /* VMs with a state of their own in state set "owner" */
	struct map groups;        /* TID on the host -> string id of its control groups */
	const struct control_groups *control_groups;  /* of `grouped`, borrowed; NULL: unknown */
	struct machine *grouped;  /* the machine whose control groups are known; NULL: none */
	struct control_groups seen_groups;  /* those that only events name; their numbers follow */
	size_t threads_moved;     /* moves of threads that had been in their group for some time */
	int32_t first_moved;      /* TID of the first one */
	int64_t unknown_limit_ns;     /* waits of threads in those: they may have had limits */
	int32_t *group_above;     /* by group: index of the group above; -1: none. NULL: no groups */
	struct group_growth *growth;  /* by group */
	struct map group_of;      /* TID on `grouped` -> index of its control group */
	struct map throttled;     /* group with a quota and CPU -> TID of the last thread throttled there */
	const struct topology *topology;  /* of the host, borrowed; NULL: unknown */
	bool paper_states;
	bool parents_written;     /* attribute "Parent" of all machines was written */
	uint64_t events;
	uint16_t event_kind;           /* kind of the current event */
};

/* ---- topology_attributes.c */
void topology_write_attributes(struct model *m);  /* Writes the topology when the host's trace begins. */
void frequency_event(struct machine *mc, struct cpu *c, const struct event *ev);

/* ---- hardware_counters.c */
void counters_event(struct machine *mc, const struct event *ev);
void counters_add_notes(const struct machine *mc, struct notes *notes);
void counters_switch(struct machine *mc, uint32_t cpu);  /* Called at each sched_switch, if mc->counters. */

/* ---- control_groups.c: groups of a machine's threads, and their quotas */
/* Stores the weights of threads that will be created. */
void thread_set_groups(struct model *m, const struct model_groups *groups, size_t n);
/* Stores the groups of threads that will be created; `groups` is borrowed and may be NULL. */
void groups_set(struct model *m, const struct control_groups *groups);
void groups_write_attributes(struct model *m);  /* Writes the groups when the first trace begins. */
void group_join(struct machine *mc, struct thread *th);       /* Called for a new thread. */
void group_inherit(struct machine *mc, struct thread *th, const struct thread *parent);
void group_move(struct machine *mc, const struct event *ev);
void group_leave(struct machine *mc, struct thread *th);      /* Called when the thread ends. */
void groups_add_notes(const struct machine *mc, struct notes *notes);
void throttled_event(struct machine *mc, const struct event *ev);
/* Called when the thread is switched out; is_runnable: it wants to run. */
void throttled_switch_out(struct machine *mc, struct thread *th, bool is_runnable);
/* Called when a waiting thread was queued on a CPU or in a group: others of its group may be throttled there. If it was
 * throttled itself, those that it left may be so no more. */
void throttled_arrive(struct machine *mc, struct thread *th);
/* Called when the thread runs, sleeps, or ends: writes the time for which its quota kept it off, and others with it. */
void throttled_end(struct machine *mc, struct thread *th);
/* Called at the trace's end. close: its threads end before the history. */
void throttled_end_all(struct machine *mc, bool close);

/* ---- quota_pattern.c */
void quota_pattern_add_notes(const struct model *m, const struct machine *vm, struct notes *notes);

/* ---- group_quota.c */
void group_quota_begin(struct model *m);
void group_quota_release(struct model *m);
bool group_has_quota(const struct model *m, int32_t group);
/* Called when the thread, which may have a quota, is switched in or moves to another group. */
void group_quota_waited(struct machine *mc, struct thread *th, bool has_moved);
/* Decides the waits before `from`: in [from, to) a reason is known for which a vCPU is off its CPU. */
void group_quota_settle(struct machine *mc, struct thread *th, int64_t from, int64_t to);
void group_quota_sample(struct machine *mc, const struct event *ev);
/* Called when a thread with a quota ends. at_end: the trace ends. */
void group_quota_thread_end(struct machine *mc, struct thread *th, bool at_end);
void group_quota_exact(struct machine *mc, const struct thread *th, int64_t ns);  /* Adds throttled time by events. */
void group_quota_add_notes(const struct machine *mc, struct notes *notes);

/* ---- thread.c: live threads and their attributes */
struct thread *thread_find(const struct machine *mc, int64_t tid);
/* Returns the thread; creates it with state UNKNOWN if it does not exist. NULL: invalid TID. */
struct thread *thread_get(struct machine *mc, int64_t tid);
void thread_end(struct machine *mc, struct thread *th);      /* Ends its attributes and frees the thread. */
void thread_free_all(struct machine *mc);                      /* Frees all threads; writes nothing. */
/* Writes a value valid since t. */
void thread_set_at(struct machine *mc, struct thread *th, int64_t t, enum thread_attr what, int64_t value);
/* Sets the nice level at a switch, encoded as in struct thread. */
void thread_set_nice(struct machine *mc, struct thread *th, int8_t nice);
/* Slow path of thread_learn(). */
void thread_learn_slow(struct machine *mc, struct thread *th, int64_t comm, int64_t pid);
/* Called when the thread enters a guest: binds it to a vCPU that may have moved to it. */
void thread_enter_guest(struct machine *mc, struct thread *th);
void thread_rename(struct machine *mc, struct thread *th, const char *name);
/* Sets the CPU on which the thread runs or is queued. */
void thread_set_cpu(struct machine *mc, struct thread *th, int64_t cpu);
void thread_clear_cpu(struct machine *mc, struct thread *th);  /* Makes the thread's CPU unknown. */
/* Called when a thread that seemed to sleep runs or is queued on `cpu` without a recorded wakeup: makes its state
 * unknown since the time at which it may have been woken. */
void thread_unrecorded_wakeup(struct machine *mc, struct thread *th, int32_t cpu);
/* Makes the state unknown since it was written last: an event shows that it changed without a record. */
void thread_unrecorded_change(struct machine *mc, struct thread *th);
/* Called when the thread is switched in on `cpu`: makes its CPU unknown since its last event if it moved without a
 * recorded migration, or assumes `cpu` where the trace has sched_waking alone. */
void thread_check_move(struct machine *mc, struct thread *th, uint32_t cpu);
void thread_write_waker(struct machine *mc, struct thread *th);
/* Sets the pid namespace, unless one was set before. */
void thread_set_pid_ns(struct machine *mc, struct thread *th, int64_t ns);
/* Sets the cgroup namespace, unless one was set before; call thread_set_pid_ns() first. */
void thread_set_cgroup_ns(struct machine *mc, struct thread *th, int64_t ns);
/* Returns true for a thread's TID; false for TID 0 (idle) and invalid values. */
bool tid_valid(int64_t tid);

static inline void thread_set(struct machine *mc, struct thread *th, enum thread_attr what, int64_t value)
{
	if (th->attr[what] != HISTORY_NONE && !th->container_attr)
		sink_set(&mc->model->sink, th->attr[what], value);
	else
		thread_set_at(mc, th, mc->model->sink.now, what, value);
}

/* Updates name and PID from an event; absent values (<= 0; < 0) change nothing. Usually nothing changes. */
static inline void thread_learn(struct machine *mc, struct thread *th, int64_t comm, int64_t pid)
{
	if (th->stale || (comm > 0 && comm != (int64_t)th->comm) || (pid >= 0 && pid != th->pid))
		thread_learn_slow(mc, th, comm, pid);
}

/* ---- update.c: propagation of changes */
void update_thread(struct machine *mc, struct thread *th);
void update_vcpu(struct model *m, struct vcpu *v);
void update_cpu(struct machine *mc, uint32_t cpu);  /* Updates vCPU and owner of a CPU. */

/* ---- cpu.c: CPUs and their current threads */
/* Makes the CPU known at its first event, and returns it. */
struct cpu *cpu_first_event(struct machine *mc, uint32_t number);
/* Counts the current event as one that contradicts the state, once. */
void count_contradiction(struct machine *mc);
/* Sets the current thread; NULL: idle. */
void cpu_set_current(struct machine *mc, uint32_t number, struct thread *th, enum vcpu_mode mode);
void cpu_set_unknown(struct machine *mc, uint32_t number);
/* Makes the current thread unknown. Returns the previous current thread; NULL: none. */
struct thread *cpu_clear_current(struct machine *mc, uint32_t number);
/* Returns true if the CPU's stopper thread, migration/N, is current. */
bool cpu_is_stopped(const struct machine *mc, uint32_t number);
void cpu_was_offline(struct machine *mc, uint32_t number);  /* Marks the CPU as offline since its last event. */
/* Returns true if the CPU's current thread is unknown, so that any runnable thread may be current. */
bool cpu_may_run_any(const struct machine *mc, int64_t number);
/* Returns the attribute, declared on first use. */
uint32_t cpu_attribute(struct machine *mc, uint32_t number, enum cpu_attr what);
/* Returns the vCPU's index; creates it if it does not exist. */
uint32_t vcpu_get(struct machine *vm, uint32_t number);
void vcpu_map(struct machine *vm, uint32_t number, int64_t tid, const struct sync_vcpu_lifetime *life);

static inline struct cpu *cpu_get(struct machine *mc, uint32_t number)
{
	return number < mc->cpus && mc->cpu[number].state != CPU_UNSEEN ? &mc->cpu[number] : cpu_first_event(mc, number);
}

/* ---- loss_recovery.c: state without events */
void recovery_begin(struct machine *mc, const struct prescan *prescan);
void recovery_lose(struct machine *mc, uint32_t number, const struct event *ev);  /* Processes EV_LOST of a CPU. */
void recovery_end_losses(struct machine *mc);  /* Called at the first event after the end of all losses. */
/* Called at the first event of a CPU, and at its first event after a loss. */
void recovery_resume_cpu(struct machine *mc, uint32_t number);
/* Called when an event at t shows the thread off-CPU. During a loss on another CPU that state is valid at t only. */
void recovery_check_thread(struct machine *mc, struct thread *th, int64_t t);

/* ---- guest_exit_model.c */
void guest_entry(struct model *m, struct vcpu *v);
void guest_exit(struct model *m, struct vcpu *v, const struct event *ev);
void guest_clear_mode(struct model *m, struct vcpu *v);  /* Called when events of the CPU of the vCPU's thread were lost. */
/* Called when an entry or exit may not be recorded: makes the last exit unknown. */
void guest_clear_exit(struct model *m, struct vcpu *v);
/* Writes the instruction at which the vCPU was preempted; null: not preempted. */
void guest_write_kernel_ip(struct model *m, struct vcpu *v, bool preempted);
/* Returns true if the guest's idleness is inferred from the host's events, because its own trace is missing there. */
static inline bool guest_is_inferred(const struct vcpu *v)
{
	return v->tracker.exits_known && !v->vm->active;
}

/* ---- vcpu_throttling.c */
/* Called before the switch takes effect. */
void throttling_switch(struct machine *mc, struct cpu *c, struct thread *next, const struct event *ev);
void throttling_interrupt(struct cpu *c, int64_t now);       /* Called when an interrupt begins. */
void throttling_timer(struct machine *mc, const struct event *ev);  /* Processes EV_TIMER_ENTRY. */
void throttling_clear_cpu(struct cpu *c);                   /* Called when the CPU's current thread is unknown. */
/* Called when the vCPU's host state, or its pCPU (moved), has changed. */
void throttling_set_host_state(struct model *m, struct vcpu *v, enum vcpu_host_state place, bool moved);
/* Called when the vCPU's thread returns to the VMM. */
void throttling_userspace_exit(struct model *m, struct vcpu *v, const struct event *ev);
void throttling_block(struct vcpu *v, const struct event *ev);  /* Called when the vCPU's thread is switched out. */
void throttling_entry(struct model *m, struct vcpu *v);
void throttling_exit(struct vcpu *v, unsigned flags);  /* flags: exit_flags() */
void throttling_migrated(struct model *m, struct vcpu *v);  /* Called before another thread takes over from v->thread. */
void throttling_clear(struct vcpu *v);
/* Writes that the vCPU was kept from running from `from` until `to` (excluded; host ns), and why. */
void throttling_write(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum out_reason why);
/* The same, without a decision on earlier waits of its thread. */
void throttling_set(struct model *m, struct vcpu *v, int64_t from, int64_t to, enum out_reason why);
/* Ends all intervals at the end of the host's trace. close: its vCPUs remain visible in other traces. */
void throttling_end(struct machine *host, bool close);

/* Called at each event of the CPU: measures pauses between events, because an idle CPU may need several events before it
 * runs a thread. */
static inline void throttling_event(const struct cpu *c, int64_t now)
{
	struct run_levels *l = c->run_levels;
	if (!l)
		return;
	l->pause_ns = now - l->last_event;
	if (l->pause_ns >= IDLE_REACTION && !c->nest.depth)
		l->active_since = now;
	l->last_event = now;
}

/* ---- halt_polling.c */
void halt_polling_limit(struct vcpu *v, const struct event *ev);  /* Processes EV_HALT_POLL. */
void halt_polling_wakeup(struct model *m, struct vcpu *v, const struct event *ev);  /* Processes EV_VCPU_WAKEUP. */

/* ---- vcpu_run_states.c */
void vcpu_state_event(struct machine *mc, struct cpu *c, const struct event *ev);
void vcpu_stop_event(struct machine *mc, struct cpu *c, const struct event *ev);
void vm_event(struct machine *mc, struct cpu *c, const struct event *ev);
/* Ends the time offline at a loss that may contain its end. */
void vcpu_offline_lost(struct machine *mc, struct thread *th);
void vcpu_states_end(struct machine *mc);  /* Ends all times offline at the trace's end. */

/* ---- irq.c */
void irq_event(struct machine *mc, struct cpu *c, const struct event *ev);
void irq_clear(struct machine *mc, struct cpu *c);
/* Sets the recorded kinds of handlers from the prescan. */
void irq_set_recorded_kinds(struct machine *mc, const struct prescan *prescan);
/* Returns the context in which the CPU's current thread `tid` acts: string id of a handler's name, or of "thread";
 * HISTORY_NULL: unknown. */
int64_t irq_context(struct machine *mc, const struct cpu *c, int64_t tid);

/* ---- lock_contention.c */
/* Processes a lock event of the current thread. */
void lock_event(struct machine *mc, struct cpu *c, const struct event *ev);
void lock_wait_clear(struct machine *mc, struct thread *th);  /* Called when events were lost: ends the wait. */

/* ---- request_marks.c */
enum { REQUEST_RUNNING, REQUEST_YIELDED, REQUEST_UNKNOWN, REQUEST_DROPPED };  /* a request's states */
struct request_attrs { uint32_t attr_state, attr_thread, attr_label; };  /* attr_label: HISTORY_NONE: no request had one */
/* Declares state and thread of a request. */
struct request_attrs request_declare(struct machine *mc, const char *id);
/* Sets the label of a request since time t; label: string id of the reader, or EVENT_ABSENT. Declares the attribute at the
 * first label. */
void request_set_label(struct machine *mc, const char *id, struct request_attrs *r, int64_t t, int64_t label);
void request_event(struct machine *mc, const struct event *ev, int64_t tid);
void request_set_unknown(struct machine *mc);  /* Called when events were lost. */
void request_close(struct machine *mc);    /* Called at the end of the machine's trace: ends all requests. */
void request_release(struct machine *mc);

/* ---- request_probes.c */
void request_probe_event(struct machine *mc, const struct event *ev, int64_t tid);
void request_probes_lost(struct machine *mc);   /* Called when events were lost: drops all open requests. */
void request_probes_close(struct machine *mc);  /* Called at the end of the machine's trace: ends all requests. */
void request_probes_release(struct machine *mc);
uint64_t request_probes_orphans(const struct machine *mc);  /* ends without a start */
