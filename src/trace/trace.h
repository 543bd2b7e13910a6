/* Trace input: converts directories, files or live sessions to event records in time order.
 *
 * A struct trace contains one machine's events (one or more CTF traces with one clock, or a trace-cmd file).
 * trace_load() decodes each trace once into compact records; above a memory limit, these are written to an unlinked
 * temporary file. Cursors then read them any number of times without decoding the trace again. A layout (YAML,
 * stealscope-layout(5)) defines what a tracer's events mean. Times are ns since the epoch on the clock of the
 * traced machine. */
#pragma once

#include "base/base.h"
#include "base/int128.h"
#include "base/notes.h"
#include "base/progress.h"

/* X(code, name in layouts, argument count in struct event); layout.c has the arguments' names. A new kind
 * needs a row here, a row in layout.c, and rules in the layouts. At most EVENT_KINDS_MAX kinds. */
#define EVENT_KINDS(X) \
	X(EV_OTHER, "other", 0)                     /* event without a rule in the layout: only shows that its thread ran */ \
	X(EV_LOST, "lost", 2)                       /* added by the reader: the tracer discarded this CPU's events */ \
	X(EV_SWITCH, "sched_switch", 6) \
	X(EV_WAKING, "sched_waking", 4) \
	X(EV_WAKEUP, "sched_wakeup", 3)             /* also sched_wakeup_new */ \
	X(EV_MIGRATE, "sched_migrate", 3) \
	X(EV_FORK, "sched_fork", 5) \
	X(EV_EXEC, "sched_exec", 2) \
	X(EV_EXIT, "sched_exit", 1) \
	X(EV_RENAME, "task_rename", 2) \
	X(EV_PROCESS, "process_state", 6)           /* state dump: one existing thread */ \
	X(EV_PROCESS_NS, "process_pid_ns", 3)       /* state dump: a thread's pid namespace */ \
	X(EV_PROCESS_CGROUP, "process_cgroup_ns", 2)  /* state dump: a thread's cgroup namespace */ \
	X(EV_VCPU_ENTRY, "kvm_entry", 2)         /* enters guest mode; on any hypervisor */ \
	X(EV_VCPU_EXIT, "kvm_exit", 5)           /* leaves it, for a reason */ \
	X(EV_HYPERCALL, "kvm_hypercall", 3) \
	X(EV_USERSPACE_EXIT, "kvm_userspace_exit", 2)  /* the vCPU's thread returns to the VMM in user space */ \
	X(EV_INJECT, "kvm_inj_virq", 1)          /* KVM injects an interrupt into the guest, with the next entry */ \
	X(EV_ACCEPT, "kvm_apic_accept_irq", 2)   /* a vCPU's APIC accepts an interrupt, in the context that raised it */ \
	X(EV_MSI, "kvm_msi_set_irq", 2)          /* a device raises an interrupt */ \
	X(EV_IPI, "kvm_apic_ipi", 2)             /* a vCPU sends an interrupt */ \
	X(EV_VCPU_WAKEUP, "kvm_vcpu_wakeup", 2)  /* a halted vCPU wakes up */ \
	X(EV_HALT_POLL, "kvm_halt_poll_ns", 3)   /* a vCPU's halt polling limit changes */ \
	X(EV_VCPU_STATE, "vcpu_state", 6)        /* a hypervisor without host threads: a vCPU's run state changes */ \
	X(EV_VCPU_STOP, "vcpu_stop", 3)          /* ... a vCPU must not run from now on */ \
	X(EV_VM, "vm", 2)                        /* ... a VM begins or ends */ \
	X(EV_IRQ_ENTRY, "irq_entry", 2) \
	X(EV_IRQ_EXIT, "irq_exit", 2) \
	X(EV_SOFTIRQ_ENTRY, "softirq_entry", 2) \
	X(EV_SOFTIRQ_EXIT, "softirq_exit", 2) \
	X(EV_TIMER_ENTRY, "hrtimer_entry", 3) \
	X(EV_TIMER_EXIT, "hrtimer_exit", 2) \
	X(EV_CONTENTION_BEGIN, "contention_begin", 2)  /* a thread starts waiting for a kernel lock */ \
	X(EV_CONTENTION_END, "contention_end", 2) \
	X(EV_FUTEX_BEGIN, "futex_begin", 3)         /* futex() with any operation */ \
	X(EV_FUTEX_END, "futex_end", 2) \
	X(EV_SYNC, "sync", 3)                       /* one end of a synchronization pair, with the key that both ends have */ \
	X(EV_MARK, "request_mark", 2)               /* a request's start, yield, resume or end */ \
	X(EV_PROBE, "request_probe", 5)             /* a probe in a server starts, yields, resumes or ends a request */ \
	X(EV_FREQUENCY, "cpu_frequency", 2)       /* a CPU's frequency changes */ \
	X(EV_COUNTERS, "cpu_counters", 3)         /* this CPU's hardware counters; precedes or follows its sched_switch */ \
	X(EV_THROTTLED, "throttled", 2)           /* its group's quota keeps a thread from running, or does no more */ \
	X(EV_GROUP, "group_throttled", 2)         /* a control group's cpu.stat */ \
	X(EV_GROUP_MOVE, "group_move", 2)         /* a thread moves to another control group */ \
	X(EV_STEAL, "steal_clock", 2)               /* the guest's steal clock: time that the hypervisor took from this CPU */ \
	X(EV_NAMED, "named", 1)                     /* as EV_OTHER, but with the event's name; only if a trace_window is
	                                             * loaded */

#define EVENT_CODE(code, name, args) code,
enum event_kind { EVENT_KINDS(EVENT_CODE) EVENT_KIND_COUNT };
#undef EVENT_CODE
extern const char *const event_kind_name[EVENT_KIND_COUNT];

/* Set of kinds, for example KIND(EV_SWITCH) | KIND(EV_WAKEUP), or ALL_KINDS & ~KIND(EV_LOST). */
typedef uint128 event_kinds;
#define EVENT_KINDS_MAX 128
extern const unsigned char event_args[EVENT_KINDS_MAX];
#define KIND(k) ((event_kinds)1 << (k))
#define ALL_KINDS (~(event_kinds)0 >> (EVENT_KINDS_MAX - EVENT_KIND_COUNT))

/* The end of a synchronization pair that an EV_SYNC is. a: guest sends, b: host receives; c: host sends, d: guest receives
 * (paper, Fig. 2). NET_SEND (a or c, depending on the machine) and NET_RECEIVE (b or d) are TCP segments. */
enum sync_end { SYNC_A, SYNC_B, SYNC_C, SYNC_D, SYNC_NET_SEND, SYNC_NET_RECEIVE };
enum mark { MARK_START, MARK_YIELD, MARK_RESUME, MARK_END,
            MARK_DROP /* EV_PROBE: ends without an answer */,
            MARK_RECEIVE /* EV_PROBE: starts; its thread's wakeup was its arrival */ };
enum process_type { PROCESS_USER, PROCESS_KERNEL };  /* thread type in a state dump */
/* A thread's state when it leaves its CPU; the layout maps the tracer's numbers to it. RUN_UNINTERRUPTIBLE: blocked, and
 * signals do not end the wait. */
enum run_state { RUN_RUNNABLE, RUN_BLOCKED, RUN_DEAD, RUN_UNINTERRUPTIBLE };

/* A vCPU's run state in the hypervisor's scheduler, with Xen's numbers. OFFLINE: not allowed to run. */
enum vcpu_run_state { VCPU_STATE_RUNNING, VCPU_STATE_RUNNABLE, VCPU_STATE_BLOCKED, VCPU_STATE_OFFLINE, VCPU_RUN_STATES };

/* Reason for which Xen's paravirtualized vCPU enters the hypervisor: one of these, plus the hypercall's or the trap's
 * number. */
enum { EXIT_ISA_VMX = 1, EXIT_ISA_SVM, EXIT_ISA_XEN_PV = 4 };  /* vcpu_exit.isa; of XEN_PV, vcpu_exit.reason is an enum
                                                                * xen_pv_entry */
enum xen_pv_entry {
	XEN_PV_TRAP = 3 << 20, XEN_PV_PAGE_FAULT = 4 << 20, XEN_PV_INVALID_OP = 5 << 20, XEN_PV_PRIVILEGED_OP = 6 << 20,
	XEN_PV_FPU_RESTORE = 8 << 20, XEN_PV_PAGING_FIXUP = 9 << 20, XEN_PV_DESCRIPTOR_FAULT = 10 << 20,
	XEN_PV_PAGE_TABLE_WRITE = 11 << 20, XEN_PV_HYPERCALL = 13 << 20
};

enum { WAKE_HARDIRQ = 8, WAKE_SOFTIRQ = 16 };  /* bits of wake.flags, as in ftrace's common_flags */

#define EVENT_ABSENT INT64_MIN  /* an argument that the event does not have */
#define EVENT_ARGS 6            /* most arguments per kind; small, because events are copied often */

/* One event. Names are string ids (trace_string()). Within one trace, equal ids mean equal strings; ids have no order,
 * and differ each time the trace is loaded. */
#define PROBE_LABEL 4           /* EV_PROBE's argument `label`, its last one */

struct event {
	int64_t ts;        /* the event's time, ns since the epoch, the traced machine's clock */
	uint16_t kind;     /* enum event_kind */
	uint16_t cpu;
	int32_t tid, pid;  /* context: the current thread and its process; -1: not recorded */
	uint32_t comm;     /* context: the current thread's name; 0: not recorded */
	union {            /* every argument is one int64_t; EVENT_ABSENT: missing */
		int64_t arg[EVENT_ARGS];
		struct { int64_t end, count; } lost;               /* the loss's interval: [ts, end]; lost event count, or
		                                                    * EVENT_ABSENT */
		struct { int64_t prev_tid, next_tid, prev_state /* enum run_state */, prev_comm, next_comm,
		         next_prio /* as a nice level; below -20: real time */; } sw;
		struct { int64_t tid, comm, target_cpu, flags /* WAKE_ */; } wake;  /* EV_WAKING, EV_WAKEUP */
		struct { int64_t tid, dest_cpu, orig_cpu; } migrate;
		struct { int64_t parent_tid, child_tid, child_pid, child_comm, child_ns; } fork;
		struct { int64_t tid, filename; } exec;            /* the context's tid if the event contains none */
		struct { int64_t tid; } exit;
		struct { int64_t tid, comm; } rename;
		struct { int64_t tid, pid, comm, state /* enum run_state */, cpu,
		         type /* enum process_type */; } process;
		struct { int64_t tid, ns, vtid; } process_ns;      /* also EV_PROCESS_CGROUP, without vtid */
		struct { int64_t vcpu, reason,                     /* vcpu: only a hint, some tracers write garbage */
		         isa, ip, ret; } vcpu_exit;                /* exits only; isa: 1 VMX, 2 SVM,
		                                                    * EXIT_ISA_XEN_PV; ret: arm64, and the number of Xen's
		                                                    * hypercall with VMX and SVM */
		struct { int64_t reason, error; } userspace;       /* error: -EINTR if a signal interrupted the thread */
		struct { int64_t vector; } inject;
		struct { int64_t apic, vector; } accept;
		struct { int64_t address, data; } msi;
		struct { int64_t icr, apic; } ipi;
		struct { int64_t ns, waited; } wakeup;             /* waited == 0: the wakeup came during halt polling; ns:
		                                                    * the polling's duration */
		struct { int64_t vcpu, ns, old; } halt_poll;
		struct { int64_t nr, a0, a1; } hypercall;
		struct { int64_t vm /* EVENT_ABSENT: the pCPU's idle task */, vcpu,
		         state, old /* enum vcpu_run_state */, name /* of the VM */,
		         idle_ns /* state RUNNING: it left its last pCPU at least so long ago */; } vcpu_state;
		struct { int64_t vm /* EVENT_ABSENT: no stop, but stops are recorded from now on */, vcpu,
		         cap /* 1: the VM has a CPU time limit that works in this way */; } vcpu_stop;
		struct { int64_t vm, exists; } vm;
		struct { int64_t number, name; } irq;              /* EV_IRQ_*, EV_SOFTIRQ_* (number = vector) */
		struct { int64_t timer, function, now; } timer;    /* now: entry only, CLOCK_MONOTONIC, ns */
		struct { int64_t address, flags /* futex: the operation */, value; } lock;
		struct { int64_t khz, cpu; } frequency;            /* cpu: EVENT_ABSENT: the event's CPU */
		struct { int64_t instructions, cycles,             /* of this CPU, unsigned */
		         is_difference /* 1: since the previous read. 0: since any time; the read precedes its
		                        * sched_switch; 0: the counter does not count */; } counters;
		struct { int64_t tid, on; } throttled;             /* on: 1: from its next switch-out, or now; 0: no more */
		struct { int64_t tid, path; } group_move;          /* path: string id */
		struct { int64_t group, ns; } group;               /* group: its number in the session file; ns: throttled time
		                                                    * since the group exists, summed over CPUs */
		struct { int64_t ns, own; } steal;                 /* ns: stolen since boot; own: 1: from a field of the event's
		                                                    * CPU, otherwise the CPU is uncertain */
		struct { int64_t end /* enum sync_end */, key, uid /* the VM's uid, or EVENT_ABSENT */; } sync;
		struct { int64_t op /* enum mark */, id; } mark;
		struct { int64_t op /* enum mark */,
		         key /* identifies an open request; EVENT_ABSENT: the request of the current thread */,
		         name /* of the kind of requests */, stack /* stack pointer; EVENT_ABSENT: the probe is not at the entry
		                                                    * or return of a function */,
		         label /* the request's text, see layout_label(); EVENT_ABSENT: none */; } probe;
		struct { int64_t name; } named;
	};
};

/* On a hypervisor without host threads, the model treats each vCPU that the hypervisor schedules as a thread. Returns its
 * TID: above those on any Linux system; -1: impossible numbers. */
#define VCPU_TID_FIRST 4200000
#define VCPU_TIDS_PER_VM 10000
static inline int32_t vcpu_thread_id(int64_t vm, int64_t vcpu)
{
	return vm < 0 || vm > 0xffff || vcpu < 0 || vcpu >= VCPU_TIDS_PER_VM ? -1
	     : (int32_t)(VCPU_TID_FIRST + vm * VCPU_TIDS_PER_VM + vcpu);
}
/* Returns such a thread's process: a number per VM. */
static inline int32_t vcpu_process(int64_t vm)
{
	return (int32_t)(vm + 1);
}

enum trace_role { ROLE_UNKNOWN, ROLE_HOST, ROLE_GUEST };

/* One machine's trace to load. */
struct trace_spec {
	const char *dir;     /* directory that contains the traces at any depth, or the live sessions' URL (see
	                      * trace_is_live()) */
	const char *name;    /* the machine's name; NULL: the recorded hostname, or the directory's name if none was
	                      * recorded */
	enum trace_role role;
	const char *layout;  /* the layout's name or file; NULL: the best match for the trace's event classes */
	uint64_t tsc_millihertz; /* TSC rate of a trace with times in cycles; 0: unknown */
	bool skippable;         /* found together with other machines: skipped with a note if it is unreadable */
	/* Traces that trace_discover() found in dir, owned by the spec; NULL: trace_load() searches dir. */
	struct trace_location *location;
	size_t locations;
};

/* A trace's window, ns on the trace's clock, both ends included; from > to: empty. Only the stream parts that
 * may contain events in the window are decoded. Events outside the window are dropped, losses that overlap the window
 * are not. Events without a rule have their names (EV_NAMED). */
struct trace_window { int64_t from, to; };

/* A VM's name where the hypervisor's trace contains only its number (a Xen domain). */
struct trace_domain { uint32_t id; char *name; };

struct trace_options {
	unsigned workers;        /* thread count; 0: one per core */
	size_t memory;           /* all traces' records in memory, bytes; further ones are written to a
	                          * temporary file; 0: 32 MiB */
	const char *spill_dir;   /* the unlinked temporary file's directory; NULL: $TMPDIR or /tmp */
	bool as_corrected;       /* uses the times that the tracer corrected to the host's clock, not the recorded ones */
	int64_t live_for;        /* time to read live sessions for, ns; 0: until they end */
	const struct trace_window *window;  /* [n], each trace's window; NULL: loads all events */
	int64_t tsc_hz;          /* TSC frequency if the hypervisor's trace lacks it, Hz; 0: not given */
	const struct trace_domain *domain;  /* names that replace recorded ones */
	size_t domains;
	struct progress progress;
};

/* Conversion of a tracer's clock to ns: ns + (counter - count) * 10^12 / millihertz. */
struct clock_scale {
	uint64_t count;
	int64_t ns;
	uint64_t millihertz;      /* the counter's rate; 0: unknown, the times were recorded in ns */
	bool is_tsc;              /* the counter is the machine's TSC, and millihertz is the TSC frequency */
};
#define CLOCK_SCALE_NS INT64_C(1000000000000)  /* a counter's rate if it counts ns (10^9 Hz), mHz */
int64_t clock_scale_ns(const struct clock_scale *s, uint64_t count);  /* rounded down; s->millihertz must be > 0 */

/* Optional events that were enabled while recording: interrupt handlers' entries and exits by kind, and forks. */
enum { HANDLERS_IRQ = 1, HANDLERS_SOFTIRQ = 2, HANDLERS_TIMER = 4, HANDLERS_ALL = 7, ENABLED_FORKS = 8,
       ENABLED_EXITS = 16 /* factor: HANDLERS_IRQ * ENABLED_EXITS: interrupt exits, ... */, ENABLED_ALL = 127 };
/* Returns an event's HANDLERS_ bit if it records a handler's entry; 0 for other events. */
static inline unsigned handlers_kind(unsigned event_kind)
{
	return event_kind == EV_IRQ_ENTRY ? HANDLERS_IRQ : event_kind == EV_SOFTIRQ_ENTRY ? HANDLERS_SOFTIRQ
	     : event_kind == EV_TIMER_ENTRY ? HANDLERS_TIMER : 0;
}
/* Returns an event's HANDLERS_ bit if it records a handler's exit; 0 for other events. */
static inline unsigned handlers_exit_kind(unsigned event_kind)
{
	return event_kind == EV_IRQ_EXIT ? HANDLERS_IRQ : event_kind == EV_SOFTIRQ_EXIT ? HANDLERS_SOFTIRQ
	     : event_kind == EV_TIMER_EXIT ? HANDLERS_TIMER : 0;
}

struct trace_info {
	const char *dir;          /* directory or URL, as specified */
	const char *machine;      /* the machine's name, unique within one load */
	const char *hostname;     /* hostname recorded by the tracer; "": none */
	const char *vm_id;        /* the VM's identity at its provider, recorded by `record --guest-only`; "": none */
	bool guest_only;          /* recorded by `record --guest-only` */
	bool is_monotonic;        /* the clock is CLOCK_MONOTONIC, which the kernel corrects like CLOCK_REALTIME */
	int64_t realtime_error;   /* the times' largest error against CLOCK_REALTIME at the start, ns; 0: not recorded */
	const char *tracer;       /* for example "lttng-modules 2.13.9"; "": not recorded */
	const char *layout;
	const char *reader;       /* the reader's name: "native", "perf", ... */
	const char *uuid;         /* the CTF traces' UUIDs, comma separated */
	enum trace_role role;     /* as specified, otherwise HOST if has_guest_mode, otherwise GUEST */
	int64_t begin, end;       /* the first and the last event's time, ns; begin > end: no event */
	uint64_t events;          /* decoded event count */
	uint64_t lost;            /* events discarded by the tracer, without uncounted losses */
	uint64_t uncounted;       /* losses for which the tracer recorded no event count */
	uint64_t bytes;           /* the trace's files, bytes; 0: live */
	unsigned cpus;            /* highest CPU number + 1 */
	const struct trace_cpu *cpu;  /* [cpus_listed], each CPU's recorded interval, also without events */
	unsigned cpus_listed;       /* length of cpu[]: recorded and missing CPUs, >= cpus */
	/* Intervals whose times occur twice because the clock was set back, sorted. The reader drops their events, because
	 * their order is unknown. */
	const struct trace_interval *twice;
	size_t twices;
	event_kinds kinds;        /* kinds that occur */
	bool has_guest_mode;      /* VM entries or exits, or vCPU run states occur */
	bool has_vcpu_states;     /* vCPU run states occur: the machine is a hypervisor without host threads */
	bool name_is_given;       /* the user named the machine */
	unsigned asked;           /* HANDLERS_ and ENABLED_ bits of the events that were enabled while recording, whether
	                           * they occur or not; 0 if the trace's metadata does not show it */
	struct clock_scale scale;
	bool in_cycles;           /* the times are the TSC's cycles, not ns: see trace_spec.tsc_millihertz */
	bool corrected;           /* the tracer corrected the times to the host's clock, and the reader did not undo it */
	/* Host only: vCPU threads that the tracer recorded. */
	const struct trace_vcpu *vcpu;
	size_t vcpus;
};

/* One CPU's recorded interval. Recording may begin later or end earlier than on other CPUs; outside this interval,
 * missing events imply nothing. Inside it (except during losses), a CPU without events keeps its state. */
struct trace_cpu {
	int64_t begin, end;       /* ns, within the trace; begin > end: nothing recorded */
	bool is_recorded;         /* the tracer recorded the interval; false: derived from the first and the last event */
	/* No events were recorded, but other CPUs' events send threads to this CPU. nowhere: at least one such event,
	 * which may be damaged or the trace's last event; missing: several, so the CPU was not recorded. */
	bool nowhere, missing;
};

struct trace_interval { int64_t begin, end; };  /* ns, both included */

struct trace_vcpu {
	char *guest;              /* the machine's name; without a trace, the name that the tracer recorded */
	unsigned number;          /* the CPU's number in the guest */
	int32_t host_tid;
};

/* Returns an argument's name, for example "next_tid"; NULL: the kind has no such argument. *is_text: the argument
 * is a string id, for trace_string(). */
const char *event_arg_name(enum event_kind kind, unsigned arg, bool *is_text);
/* Returns the name of an argument's enum value; NULL: the argument is a plain number. */
const char *event_arg_word(const struct event *ev, unsigned arg);

struct trace;
struct trace_cursor;

/* Finds the machines with traces below root (at any depth) and appends them to *spec (malloc'ed array with malloc'ed
 * dir). One machine's traces (same hostname and clock) become one spec. Fails if root does not exist or contains no
 * trace. If some traces can be read, a file that looks like a trace but cannot be read is skipped with a note (notes may
 * be NULL). Returns 0 or -1. */
int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err);
/* The same for one machine among several: if its trace's description is damaged, adds a note and appends nothing. */
int trace_discover_or_skip(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err);
void trace_spec_release(struct trace_spec *spec);  /* frees dir and the traces found there */
void trace_specs_free(struct trace_spec *spec, size_t n);  /* frees trace_discover()'s array */
/* A file may contain several machines' traces (Perfetto). FILE#MACHINE names one, wherever a directory or
 * file may be named. Returns the length of FILE; for all other names, their whole length. */
size_t trace_path_length(const char *name);
bool trace_is_file(const char *path);  /* returns true for a regular file with a trace, or with a part of one, in a known
                                        * format */

/* Live traces are sent by LTTng's relay daemon (lttng-relayd) during or after a recording. Their URLs are
 * net://RELAY[:PORT]/host/HOSTNAME/SESSION. Without SESSION, all sessions on that host form one machine's trace.
 * net://RELAY[:PORT] is only allowed for trace_discover(), like a directory with several machines' traces. Loading
 * reads until the sessions end, for options->live_for, or until the progress callback stops it. */
bool trace_is_live(const char *input);

struct live_session {
	char *host, *name, *url;
	uint64_t streams, viewers;
	int64_t timer;  /* shortest interval between data deliveries, ns; 0: not a live session, it cannot be read */
};
/* Lists a relay daemon's sessions, sorted by host and name. If the URL contains a host or a session, lists only the
 * matching sessions. Returns 0 or -1. */
int trace_live_sessions(const char *url, struct live_session **list, size_t *n, struct error *err);
void trace_live_sessions_free(struct live_session *list, size_t n);

/* Decodes all machines' traces, each once, with options->workers threads. The caller frees the traces in out[n].
 * On failure, out is unchanged. Adds notes about tolerated faults (losses, truncated packets). Returns 0 or -1. */
int trace_load(const struct trace_spec *spec, size_t n, const struct trace_options *options, struct trace **out,
               struct notes *notes, struct error *err);
void trace_free(struct trace *t);  /* t may be NULL */

const struct trace_info *trace_info(const struct trace *t);
const char *trace_string(const struct trace *t, int64_t id);  /* returns "" for EVENT_ABSENT and for unknown ids */

/* Returns the thread's name from the table that the tracer saved with the events; "": not in the table. The name may be
 * wrong if the thread was renamed during the recording. Cost: a scan through the whole table. */
const char *trace_find_saved_name(const struct trace *t, int32_t tid);

/* Opens a cursor that returns the events with a kind in `kinds`, ordered by (ts, stream). A trace may have many
 * cursors, used by several threads. cpu < 0: all CPUs' events. Returns NULL, with *err set, on failure. */
struct trace_cursor *trace_cursor_open(const struct trace *t, event_kinds kinds, int cpu, struct error *err);
/* Opens a cursor that returns events without arguments (arg[] is undefined), for callers that need only time, kind and
 * CPU. The cursor covers one part, for parallel processing: each event is in exactly one part. One stream's
 * parts follow each other in time; different streams' parts may cover different times. */
struct trace_cursor *trace_cursor_open_times(const struct trace *t, event_kinds kinds, int cpu, size_t part, size_t parts,
                                             struct error *err);
int trace_cursor_next(struct trace_cursor *c, struct event *ev, struct error *err);  /* returns 1, 0 = end, or -1 */
/* As trace_cursor_next(), without a copy: the cursor owns the event until the next call, or until it is closed. */
int trace_cursor_borrow(struct trace_cursor *c, const struct event **ev, struct error *err);
void trace_cursor_close(struct trace_cursor *c);  /* c may be NULL */

/* Makes a trace from an event list, for tests and tools; each CPU's events must be in time order. Copies its input. */
struct trace *trace_from_events(const char *machine, enum trace_role role, const struct event *ev, size_t n,
                                const char *const *strings, size_t nstrings);
