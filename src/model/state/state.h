/* The state of the model between two events: machines, their CPUs, their live threads, and vCPUs.
 *
 * One kind of machine serves all levels: the host, a guest, a guest inside a guest.  A machine whose CPUs are
 * vCPUs knows for each of them the thread of its parent machine that emulates it; a change of that thread changes
 * the vCPU, and the vCPU changes the thread that is current on it.  update.c is the only place where that cascade
 * runs; everything else sets facts (who is current, who sleeps) and calls it.
 *
 * Invariants: a thread is current on at most one CPU (thread.on), and is that CPU's current; every live thread is
 * in its machine's map; `status` is what was written last.
 * Memory: live threads, CPUs, vCPUs, open requests; nothing grows with the number of events. */
#ifndef STEALSCOPE_MODEL_STATE_STATE_H
#define STEALSCOPE_MODEL_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/schema.h"
#include "base/states.h"
#include "model/inference/idle_inference.h"
#include "model/inference/vcpu_throttling.h"
#include "model/model_sink.h"
#include "model/state/irq_nesting.h"
#include "model/state/halt_polling.h"
#include "model/state/vcpu.h"
#include "sync/sync.h"
#include "trace/trace.h"

#define NONE UINT32_MAX     /* no such index */
#define STATUS_NULL (-1)    /* not alive */
#define EXITS_TOLD 64       /* reasons of exits that are at hand */
#define NAME_LONGEST 15     /* bytes of a thread's name, as in the kernel */

struct thread {
	int32_t tid, pid;       /* pid: -1 unknown */
	int32_t on;             /* CPU whose current thread it is, -1 none */
	int32_t cpu;            /* where it runs, is queued, or ran last; -1 unknown */
	int32_t waker;          /* who wakes it; -1 nobody yet since it blocked */
	int64_t since;          /* ns host time: where it is has been as it is told since then, if not for longer */
	int64_t status_since;   /* the same of what it does */
	int64_t waker_in;       /* in what: an id, or HISTORY_NULL */
	int64_t waker_at;       /* ns host time: when; not before it sleeps */
	bool woken_early;       /* that one acted before it slept: it was on its way there */
	int64_t woken_by, woken_at;  /* the same of its last sleep, as written: a reference, or HISTORY_NULL */
	int64_t lock;           /* while it contends: the address of a lock of the kernel, or 0, a futex */
	uint32_t comm;          /* string id of its name in its machine's trace; 0 unknown */
	uint32_t vcpu;          /* index in model->vcpu, or NONE */
	int8_t sched;           /* what its machine's scheduler says: enum thread_state without VIRT_PREEMPTED */
	int8_t status;          /* as written: enum thread_state or STATUS_NULL */
	bool contends;          /* it waits for a lock that an event named */
	bool doubted;           /* events were lost, and nothing has named it since: it may be another one of its TID */
	uint8_t woken;          /* enum woken: PREEMPTED since a wakeup, not since it lost its CPU */
	bool unborn;            /* since it was forked nothing has told of a wakeup */
	bool in_kernel;         /* always: it is one of the kernel's own, as far as a state dump has told */
	int8_t nice;            /* when it was last switched in: NICE_RT real time, NICE_UNKNOWN */
	uint32_t pid_ns, cgroup_ns;  /* inode numbers of its namespaces, 0 unknown */
	uint32_t attr[THREAD_ATTRS];
	uint32_t *mirror;       /* the same attributes below its container, or NULL; THREAD_ATTRS of them */
	bool apart;             /* it may not be the one of its TID that belongs there: nothing is said there but its end */
};

enum woken { WOKEN_NO, WOKEN_YES, WOKEN_PERHAPS };

enum cpu_state { CPU_UNSEEN, CPU_UNKNOWN, CPU_IDLE, CPU_BUSY };

struct start;

struct cpu {
	enum cpu_state state;
	struct thread *current; /* when CPU_BUSY */
	uint32_t vcpu;          /* index in model->vcpu, or NONE: a physical CPU */
	int64_t unknown_since;  /* ns host time, when CPU_UNKNOWN */
	int64_t last;           /* ns host time, of its last event */
	int64_t busy_since;     /* ns host time, when CPU_BUSY: it was not seen idle since then */
	bool resumes;           /* its next event is the first one, or the first one after a loss */
	uint32_t gap;           /* how often its events were lost */
	uint32_t handler;       /* cursor of handlers_of() */
	uint32_t attr_current, attr_owner, attr_interrupt;
	struct nest nest;       /* the handlers that it is in */
	struct left *left;      /* of CPUs that run vCPUs: whom they were left to; NULL: nothing is known */
};

struct vcpu {
	struct machine *vm;
	uint32_t number;        /* of the CPU in vm */
	bool mapped;            /* somebody found out which thread of vm->parent it is */
	bool plugged;           /* while its guest was traced: until an event tells otherwise, it is idle */
	bool unused;            /* its thread is new, and has not entered a guest yet: why it sleeps, no halt tells */
	struct thread *thread;  /* while that lives */
	int64_t until;          /* ns host time: where that life of it ends at the latest */
	enum vcpu_mode mode;
	struct quiet quiet;     /* what its exits tell of its guest */
	bool doubted;           /* at some time they did not tell whether that idled */
	int status;             /* as written: enum vcpu_state or STATUS_NULL */
	int64_t status_since;   /* ns host time: when */
	int64_t exit, exit_at;  /* as written: id of its last exit's name, or HISTORY_NULL; ns host time: when that was */
	int64_t inside;         /* the guest kernel's instruction at its last exit, 0 not in the kernel, EVENT_ABSENT unknown */
	bool told_inside;       /* it is preempted there, as written */
	int32_t pcpu;           /* as written, -1 null */
	struct limits limits;   /* whether it is held back */
	struct polling polling; /* whether its halts are awaited running */
	uint32_t attr_status, attr_host_thread, attr_pcpu, attr_exit, attr_inside;
};

/* A thread that may be a vCPU: TIDs are used again, and an unplugged vCPU may come back as another thread. */
struct candidate {
	uint32_t vcpu;          /* index in model->vcpu */
	struct sync_life life;  /* a thread that is met at another time is another one */
	uint32_t next;          /* of the same TID, or NONE */
};

/* A string of a machine's trace by its id. */
struct name_source {
	const char *(*get)(const void *of, int64_t id);
	const void *of;
};

struct machine {
	struct model *model;
	char *name;             /* "host" or the VM's */
	char *root;             /* "/Host", "/Virtual Machines/Debian": escaped */
	struct machine *parent; /* whose threads are its CPUs; NULL: it runs on real CPUs, as far as anybody knows */
	uint32_t index;
	int32_t host_pid;       /* of the VM's process in parent, -1 unknown */
	bool traced;            /* there is a trace of it */
	bool active;            /* and that trace has begun and is not over */
	bool has_kvm;           /* its trace has kvm entries */
	bool tells_pids;        /* its events say whose process their thread is */
	bool tells_calls;       /* returns of its vCPUs to their monitors were recorded */
	bool waking_moves;      /* it has sched_waking but no sched_wakeup */
	bool wakes;             /* one of them has been seen, */
	bool wakings;           /* and one that tells who wakes */
	bool tells_wakes;       /* its trace has some, or nobody looked ahead, */
	bool tells_moves;       /* and sched_migrate */
	bool one_cpu;           /* it has no more than one */
	const struct start *start;  /* what looking ahead found, borrowed; or NULL */
	size_t epoch;           /* of *start: each loss begins one, and the time when all losses are over */
	int64_t lost_until;     /* ns, clock of the machine: when they are all over */
	bool lost_pending;      /* that has not come yet */
	int64_t begin;          /* ns host time, of its trace */
	int64_t unknown;        /* ns of its CPUs' time of which nobody knows what ran, as far as that is over */
	uint64_t contradictions;  /* events that do not follow from those before */
	uint64_t unwoken;       /* times that a thread slept and then ran, before any wakeup was seen */
	uint64_t wakerless;     /* wakeups of which nobody knows whose they are */
	uint8_t tells;          /* which kinds of handlers its trace has, if they come: HANDLERS_IRQ ... */
	uint8_t endless;        /* of which it has no ends: nobody knows how long they took */
	uint8_t isa;            /* of its exits, as told: enum isa */
	int64_t text_name;      /* id of its name */
	int64_t text_timer;     /* id of "timer", -1: not asked for yet */
	struct name_source names;
	struct cpu *cpu;
	uint32_t cpus;
	struct map thread;      /* TID -> struct thread * */
	struct map candidate;   /* TID -> index + 1 of its first in model->candidate */
	struct map request;     /* id -> struct request_attrs * */
	struct map handler_name;  /* see irq.c */
	struct map exit_name;   /* see guest_exit_model.c */
	struct refills *refills;  /* of a host whose vCPUs have a quota, or NULL */
	struct told_exit { uint64_t code; int64_t name; } told_exit[EXITS_TOLD];  /* the last ones of exit_name */
	char node[NODE_LONGEST];  /* "/Host/Threads/42", of the thread whose attribute was declared last */
	int32_t node_tid;       /* 0: of none */
};

struct model {
	struct model_sink sink;
	struct machine **machine;  /* [0] is the host, traced or not */
	uint32_t machines;
	struct vcpu *vcpu;
	uint32_t vcpus;
	size_t vcpu_cap;
	struct candidate *candidate;
	size_t candidates, candidate_cap;
	int64_t text_thread;    /* id of "thread", -1: not asked for yet */
	unsigned set_vcpu, set_thread, set_owner, set_request, set_out_by, set_polling;
	uint32_t owners;        /* VMs that have an owner state of their own */
	struct map groups;      /* TID of the host -> id of the text of its control groups */
	bool paper_states;
	bool told_parents;      /* the history knows which machine runs which */
	uint64_t events;
};

/* thread.c: the table of live threads and their attributes */
struct thread *thread_find(const struct machine *mc, int64_t tid);
struct thread *thread_get(struct machine *mc, int64_t tid);  /* made, with an UNKNOWN state, when there is none */
void thread_die(struct machine *mc, struct thread *th);      /* frees it */
void thread_forget(struct machine *mc);                      /* frees all, writes nothing */
void thread_set_at(struct machine *mc, struct thread *th, int64_t t, enum thread_attr what, int64_t value);  /* late */
void thread_groups(struct model *m, const struct model_groups *groups, size_t n);  /* of threads that will come */
void thread_nice(struct machine *mc, struct thread *th, int8_t nice);  /* as struct thread has it; it is switched in */
void thread_take(struct machine *mc, struct thread *th, int64_t comm, int64_t pid);  /* see thread_learn() */
void thread_enters(struct machine *mc, struct thread *th);   /* a guest, on its CPU: its vCPU may have moved to it */
void thread_rename(struct machine *mc, struct thread *th, const char *name);
void thread_place(struct machine *mc, struct thread *th, int64_t cpu);                /* where it is queued */
void thread_displace(struct machine *mc, struct thread *th);  /* nobody knows where it is */
/* It goes on, on that CPU, or from that one's queue, and no event told when it was woken. */
void thread_wakes(struct machine *mc, struct thread *th, int32_t cpu);
/* It gets that CPU: did no event tell that it moved there? */
void thread_strays(struct machine *mc, struct thread *th, uint32_t cpu);
void thread_waker(struct machine *mc, struct thread *th);
void thread_pid_ns(struct machine *mc, struct thread *th, int64_t ns);     /* the first one told of a thread holds */
void thread_cgroup_ns(struct machine *mc, struct thread *th, int64_t ns);  /* tell the pid namespace first */
bool tid_valid(int64_t tid);                                                           /* a thread's, not idle's */

static inline void thread_set(struct machine *mc, struct thread *th, enum thread_attr what, int64_t value)
{
	if (th->attr[what] != HISTORY_NONE && !th->mirror)
		sink_set(&mc->model->sink, th->attr[what], value);
	else
		thread_set_at(mc, th, mc->model->sink.now, what, value);
}

/* Its name and its process, of which absent ones change nothing.  Nearly always, nor do the others. */
static inline void thread_learn(struct machine *mc, struct thread *th, int64_t comm, int64_t pid)
{
	if (th->doubted || (comm > 0 && comm != (int64_t)th->comm) || (pid >= 0 && pid != th->pid))
		thread_take(mc, th, comm, pid);
}

/* update.c: consequences */
void update_thread(struct machine *mc, struct thread *th);
void update_vcpu(struct model *m, struct vcpu *v);
void update_cpu(struct machine *mc, uint32_t cpu);  /* of its vCPU and of who owns it */

/* cpu.c: CPUs and who is current on them */
struct cpu *cpu_meet(struct machine *mc, uint32_t number);  /* its first event, or the first one for long */
void cpu_enter(struct machine *mc, uint32_t number, struct thread *th, enum vcpu_mode mode);  /* NULL: idle */
void cpu_unknown(struct machine *mc, uint32_t number);
struct thread *cpu_leave(struct machine *mc, uint32_t number);  /* who was current is so no longer */
bool cpu_is_stopped(const struct machine *mc, uint32_t number);  /* its stopper, a thread of the kernel, is current */
void cpu_was_offline(struct machine *mc, uint32_t number);  /* since its last event */
bool cpu_is_open(const struct machine *mc, int64_t number);  /* whoever is runnable there may be current */
uint32_t cpu_attribute(struct machine *mc, uint32_t number, enum cpu_attr what);  /* declared if need be */
uint32_t vcpu_get(struct machine *vm, uint32_t number);  /* index; made when there is none */
void vcpu_map(struct machine *vm, uint32_t number, int64_t tid, const struct sync_life *life);

static inline struct cpu *cpu_get(struct machine *mc, uint32_t number)
{
	return number < mc->cpus && mc->cpu[number].state != CPU_UNSEEN ? &mc->cpu[number] : cpu_meet(mc, number);
}

/* loss_recovery.c: what is known without an event */
void known_begin(struct machine *mc, const struct start *start);
void known_lose(struct machine *mc, uint32_t number, const struct event *ev);  /* EV_LOST of that CPU */
void known_regain(struct machine *mc);  /* all losses are over */
void known_resume(struct machine *mc, uint32_t number);  /* that CPU's events begin, or begin again */
/* An event of time t told what the thread does, and that it is on no CPU: while events are lost elsewhere, it may have
 * changed by the next ns. */
void known_told(struct machine *mc, struct thread *th, int64_t t);

/* guest_exit_model.c */
void guest_entry(struct model *m, struct vcpu *v);
void guest_exit(struct model *m, struct vcpu *v, const struct event *ev);
void guest_lose(struct model *m, struct vcpu *v);  /* events of its thread's CPU were lost */
void guest_forget_exit(struct model *m, struct vcpu *v);  /* it may have been entered, or left, meanwhile */
void guest_tell_inside(struct model *m, struct vcpu *v, bool told);  /* where it was preempted; or that it is not */
/* Only the host tells what its guest does, and it does. */
static inline bool guest_is_dark(const struct vcpu *v)
{
	return v->quiet.known && !v->vm->active;
}

/* vcpu_throttling.c */
void limits_switch(struct machine *mc, struct cpu *c, struct thread *next, const struct event *ev);  /* at first */
void limits_look(struct cpu *c, int64_t now);       /* an interrupt begins */
void limits_timer(struct machine *mc, const struct event *ev);  /* EV_TIMER_ENTRY */
void limits_doubt(struct cpu *c);                   /* who had it is not known */
void limits_place(struct model *m, struct vcpu *v, enum vcpu_place place, bool moved);  /* one of them has changed */
void limits_called(struct model *m, struct vcpu *v, const struct event *ev);  /* its thread goes back to its monitor */
void limits_sleeps(struct vcpu *v, const struct event *ev);  /* its thread is switched out */
void limits_enter(struct model *m, struct vcpu *v);
void limits_exit(struct vcpu *v, unsigned is);  /* what exit_is() says */
void limits_moved(struct model *m, struct vcpu *v);  /* another thread takes over from v->thread */
void limits_forget(struct vcpu *v);
void limits_end(struct machine *host, bool close);  /* its trace is over; close: its vCPUs go on to be told of */

/* Each event of the CPU: from the first of them on it may have been on its way to somebody whom it runs behind the last. */
static inline void limits_stir(const struct cpu *c, int64_t now)
{
	struct left *l = c->left;
	if (!l)
		return;
	l->silence = now - l->last_event;
	if (l->silence >= GETS_GOING && !c->nest.depth)
		l->stirred = now;
	l->last_event = now;
}

/* halt_polling.c */
void polling_window(struct vcpu *v, const struct event *ev);  /* EV_HALT_POLL */
void polling_over(struct model *m, struct vcpu *v, const struct event *ev);  /* EV_VCPU_WAKEUP */

/* irq.c */
void irq_event(struct machine *mc, struct cpu *c, const struct event *ev);
void irq_clear(struct machine *mc, struct cpu *c);
void irq_foresee(struct machine *mc, const struct start *start);  /* what its trace has of handlers */
/* In what the CPU's current thread `tid` acts: the id of a handler's name, or of "thread"; HISTORY_NULL unknown. */
int64_t irq_context(struct machine *mc, const struct cpu *c, int64_t tid);

/* lock_contention.c */
void lock_event(struct machine *mc, struct cpu *c, const struct event *ev);  /* of its current thread */
void lock_forget(struct machine *mc, struct thread *th);  /* events were lost */

/* request_marks.c */
void request_event(struct machine *mc, const struct event *ev, int64_t tid);
void request_unknown(struct machine *mc);  /* events were lost */
void request_close(struct machine *mc);    /* the machine's trace is over */
void request_release(struct machine *mc);

#endif
