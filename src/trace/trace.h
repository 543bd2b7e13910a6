/* Traces in: trace folders, or live sessions -> flat event records, in time order.
 *
 * A struct trace is everything that was recorded on one machine (one or more CTF traces with one clock), decoded
 * once through libbabeltrace2 into compact records, which spill to an unlinked temporary file past a memory limit;
 * they can then be walked as often as needed without decoding again.  What an event of a given tracer means is said
 * by a layout (YAML), not by code.  Times are ns since the epoch on the clock of the traced machine. */
#ifndef STEALSCOPE_TRACE_TRACE_H
#define STEALSCOPE_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/int128.h"
#include "base/notes.h"
#include "base/progress.h"

/* X(code, name in layouts, how many of struct event's arguments it has; their names are in layout.c).
 * A new kind is a row here, one in layout.c, and rules in the layouts; there is room for MOST_EVENT_KINDS. */
#define EVENT_KINDS(X) \
	X(EV_OTHER, "other", 0)                     /* any event the layout does not name: it only proves activity */ \
	X(EV_LOST, "lost", 2)                       /* made by the reader: events of this CPU were discarded */ \
	X(EV_SWITCH, "sched_switch", 6) \
	X(EV_WAKING, "sched_waking", 4) \
	X(EV_WAKEUP, "sched_wakeup", 3)             /* also sched_wakeup_new */ \
	X(EV_MIGRATE, "sched_migrate", 3) \
	X(EV_FORK, "sched_fork", 5) \
	X(EV_EXEC, "sched_exec", 2) \
	X(EV_EXIT, "sched_exit", 1) \
	X(EV_RENAME, "task_rename", 2) \
	X(EV_PROCESS, "process_state", 6)           /* statedump: one thread that exists */ \
	X(EV_PROCESS_NS, "process_pid_ns", 3)       /* statedump: its pid namespace */ \
	X(EV_PROCESS_CGROUP, "process_cgroup_ns", 2)  /* statedump: its cgroup namespace */ \
	X(EV_KVM_ENTRY, "kvm_entry", 2) \
	X(EV_KVM_EXIT, "kvm_exit", 5) \
	X(EV_HYPERCALL, "kvm_hypercall", 3) \
	X(EV_USERSPACE_EXIT, "kvm_userspace_exit", 2)  /* the vCPU's thread goes back to its monitor */ \
	X(EV_INJECT, "kvm_inj_virq", 1)          /* an interrupt goes into the guest, with the next entry */ \
	X(EV_ACCEPT, "kvm_apic_accept_irq", 2)   /* a vCPU's APIC takes an interrupt, in the context of who raised it */ \
	X(EV_MSI, "kvm_msi_set_irq", 2)          /* a device raises one */ \
	X(EV_IPI, "kvm_apic_ipi", 2)             /* a vCPU sends one */ \
	X(EV_VCPU_WAKEUP, "kvm_vcpu_wakeup", 2)  /* a halted vCPU goes on */ \
	X(EV_HALT_POLL, "kvm_halt_poll_ns", 3)   /* how long it will poll for that from now on, and did up to now */ \
	X(EV_IRQ_ENTRY, "irq_entry", 2) \
	X(EV_IRQ_EXIT, "irq_exit", 2) \
	X(EV_SOFTIRQ_ENTRY, "softirq_entry", 2) \
	X(EV_SOFTIRQ_EXIT, "softirq_exit", 2) \
	X(EV_TIMER_ENTRY, "hrtimer_entry", 2) \
	X(EV_TIMER_EXIT, "hrtimer_exit", 2) \
	X(EV_CONTENTION_BEGIN, "contention_begin", 2)  /* a thread begins to wait for a lock of the kernel */ \
	X(EV_CONTENTION_END, "contention_end", 2) \
	X(EV_FUTEX_BEGIN, "futex_begin", 3)         /* the system call, of any operation */ \
	X(EV_FUTEX_END, "futex_end", 2) \
	X(EV_SYNC, "sync", 3)                       /* one end of a synchronization pair, with its key */ \
	X(EV_MARK, "request_mark", 2)               /* srbn start | yield | resume | end, with the request's id */ \
	X(EV_NAMED, "named", 1)                     /* EV_OTHER with its name, where a trace_window asks for names */

#define EVENT_CODE(code, name, args) code,
enum event_kind { EVENT_KINDS(EVENT_CODE) EVENT_KIND_COUNT };
#undef EVENT_CODE
extern const char *const event_kind_name[EVENT_KIND_COUNT];

/* A set of kinds: KIND(EV_SWITCH) | KIND(EV_WAKEUP), ALL_KINDS & ~KIND(EV_LOST). */
typedef uint128 event_kinds;
#define MOST_EVENT_KINDS 128
extern const unsigned char event_args[MOST_EVENT_KINDS];
#define KIND(k) ((event_kinds)1 << (k))
#define ALL_KINDS (~(event_kinds)0 >> (MOST_EVENT_KINDS - EVENT_KIND_COUNT))

/* Which end of a pair an EV_SYNC is: a guest sends, b host receives; c host sends, d guest receives (paper, Fig. 2).
 * NET_SEND and NET_RECEIVE are TCP segments: a or c, b or d, depending on the machine. */
enum sync_end { SYNC_A, SYNC_B, SYNC_C, SYNC_D, SYNC_NET_SEND, SYNC_NET_RECEIVE };
enum mark { MARK_START, MARK_YIELD, MARK_RESUME, MARK_END };
enum process_type { PROCESS_USER, PROCESS_KERNEL };  /* of a thread, in a state dump */
/* Of a thread; the layout says which number means it.  Uninterruptible: blocked, and not even signals end that. */
enum run_state { RUN_RUNNABLE, RUN_BLOCKED, RUN_DEAD, RUN_UNINTERRUPTIBLE };

enum { WAKE_HARDIRQ = 8, WAKE_SOFTIRQ = 16 };  /* bits of wake.flags, as in ftrace's common_flags */

#define EVENT_ABSENT INT64_MIN  /* a field that the event does not have */
#define EVENT_ARGS 6            /* fields that an event can have: no more than some kind has, events are copied often */

/* One event.  Names are string ids (trace_string()): equal ids are equal strings within one trace, no more; the ids of a
 * string differ from load to load. */
struct event {
	int64_t ts;        /* ns since the epoch, clock of the traced machine */
	uint16_t kind;     /* enum event_kind */
	uint16_t cpu;
	int32_t tid, pid;  /* context: the thread that was current, -1 when the tracer did not record it */
	uint32_t comm;     /* context: its name, 0 when not recorded */
	union {            /* every field is one int64_t, EVENT_ABSENT when missing */
		int64_t arg[EVENT_ARGS];
		struct { int64_t end, count; } lost;               /* lost span [ts, end]; count, or EVENT_ABSENT */
		struct { int64_t prev_tid, next_tid, prev_state /* enum run_state */, prev_comm, next_comm,
		         next_prio /* as nice levels; below -20: real time */; } sw;
		struct { int64_t tid, comm, target_cpu, flags /* WAKE_ */; } wake;  /* EV_WAKING, EV_WAKEUP */
		struct { int64_t tid, dest_cpu, orig_cpu; } migrate;
		struct { int64_t parent_tid, child_tid, child_pid, child_comm, child_ns; } fork;
		struct { int64_t tid, filename; } exec;            /* tid: of the context when the event has none */
		struct { int64_t tid; } exit;
		struct { int64_t tid, comm; } rename;
		struct { int64_t tid, pid, comm, state /* enum run_state */, cpu,
		         type /* enum process_type */; } process;
		struct { int64_t tid, ns, vtid; } process_ns;      /* EV_PROCESS_CGROUP too, without vtid */
		struct { int64_t vcpu, reason,                     /* vcpu: a hint: some tracers write rubbish */
		         isa, ip, ret; } kvm;                      /* of an exit; isa: 1 VMX, 2 SVM; ret: of arm64 */
		struct { int64_t reason, error; } userspace;       /* -EINTR: its thread was called back */
		struct { int64_t vector; } inject;
		struct { int64_t apic, vector; } accept;
		struct { int64_t address, data; } msi;
		struct { int64_t icr, apic; } ipi;
		struct { int64_t ns, waited; } wakeup;             /* not waited: it came while it polled */
		struct { int64_t vcpu, ns, old; } halt_poll;
		struct { int64_t nr, a0, a1; } hypercall;
		struct { int64_t number, name; } irq;              /* EV_IRQ_*, EV_SOFTIRQ_* (number = vector) */
		struct { int64_t timer, function; } timer;
		struct { int64_t address, flags, /* of a futex: its operation, */ value; } lock;
		struct { int64_t end /* enum sync_end */, key, uid /* of the VM, or EVENT_ABSENT */; } sync;
		struct { int64_t op /* enum mark */, id; } mark;
		struct { int64_t name; } named;
	};
};

enum trace_role { ROLE_UNKNOWN, ROLE_HOST, ROLE_GUEST };

/* One machine's trace to read. */
struct trace_spec {
	const char *dir;     /* holds the CTF trace(s), at any depth; or the URL of live ones, see trace_is_live() */
	const char *name;    /* of the machine, or NULL: the trace's hostname, else the folder's name */
	enum trace_role role;
	const char *layout;  /* a name or a file, or NULL: chosen by the event classes present */
	bool beside;         /* found beside others: if it cannot be read it is left out, with a note */
	struct place *place; /* what trace_discover() found in dir, the specification's; NULL: is still to be looked for */
	size_t places;
};

/* What reads CTF traces in folders: our own decoder, libbabeltrace2, or, of traces that ours knows, ours. */
enum trace_reading { READER_AUTO, READER_NATIVE, READER_BABELTRACE };

/* A part of a trace: ns of its own clock, closed; from > to: nothing.  Streams are read where they may tell of it, events
 * outside of it are not kept (losses that reach into it are), and events that the layout does not name keep their names. */
struct trace_window { int64_t from, to; };

struct trace_options {
	enum trace_reading reader;
	unsigned workers;        /* 0 = one per core */
	size_t memory;           /* bytes for records before they spill, 0 = 32 MiB, all traces together */
	const char *spill_dir;   /* for the unlinked temporary file; NULL = $TMPDIR or /tmp */
	bool as_corrected;       /* times as trace-cmd corrected them to the host's clock; else as they were recorded */
	int64_t live_for;        /* ns: how long live sessions are read; 0 = to their end */
	const struct trace_window *only;  /* of each of the traces; NULL: all of them */
	struct progress progress;
};

/* What a tracer's clock counted -> ns: ns + (what it counted - count) * 10^12 / millihertz. */
struct trace_scale {
	uint64_t count;
	int64_t ns;
	uint64_t millihertz;      /* 0: nothing is known of it, times came as ns */
	bool is_tsc;              /* it counted the TSC of the machine, by whose frequency this is */
};
#define TRACE_SCALE_NS INT64_C(1000000000000)  /* millihertz of a clock that counts ns */
int64_t trace_scale_ns(const struct trace_scale *s, uint64_t count);  /* rounded down; s->millihertz > 0 */

/* Kinds of interrupt handlers, by the events with which they begin, and what else a trace may be asked to record. */
enum { HANDLERS_IRQ = 1, HANDLERS_SOFTIRQ = 2, HANDLERS_TIMER = 4, HANDLERS_ALL = 7, ASKED_FORKS = 8, ASKED_ALL = 15 };
/* Of the event with which one begins; 0: of others. */
static inline unsigned handlers_kind(unsigned event_kind)
{
	return event_kind == EV_IRQ_ENTRY ? HANDLERS_IRQ : event_kind == EV_SOFTIRQ_ENTRY ? HANDLERS_SOFTIRQ
	     : event_kind == EV_TIMER_ENTRY ? HANDLERS_TIMER : 0;
}

struct trace_info {
	const char *dir;          /* as given: a folder or a URL */
	const char *machine;      /* name of the machine, unique within one load */
	const char *hostname;     /* as the tracer recorded it, or "" */
	const char *tracer;       /* "lttng-modules 2.13.9", or "" */
	const char *layout;
	const char *reader;       /* what decoded it: "native", "libbabeltrace2", ... */
	const char *uuid;         /* of the CTF traces, comma separated */
	enum trace_role role;     /* as given, else HOST when there are kvm entries and exits, else GUEST */
	int64_t begin, end;       /* ns, first and last event; begin > end when there is none */
	uint64_t events;          /* decoded */
	uint64_t lost;            /* discarded by the tracer, as far as it counted */
	uint64_t uncounted;       /* times that it discarded events and did not count them */
	uint64_t bytes;           /* of the trace's files; 0 of a live one */
	unsigned cpus;            /* highest CPU number + 1 */
	const struct trace_cpu *cpu;  /* of each of them: from when to when it was recorded; and of those without any event: */
	unsigned cpus_told;       /* as many as were recorded or are missing, >= cpus */
	/* Its clock was set back, and what happened at these times (in order) is left out: nobody can tell what came first. */
	const struct trace_span *twice;
	size_t twices;
	event_kinds kinds;        /* of which it has events */
	bool has_kvm;             /* kvm entries or exits are present */
	unsigned asked;           /* for what, come or not, as far as it says that: HANDLERS_IRQ ..., ASKED_FORKS */
	struct trace_scale scale;
	bool corrected;           /* its tracer corrected the times to the host's clock, and that was not undone */
	/* Of a host: the vCPUs whose threads its tracer wrote down. */
	const struct trace_vcpu *vcpu;
	size_t vcpus;
};

/* A CPU's buffer may begin later than the others', or end earlier: of what it did outside of this, its silence says
 * nothing.  Inside of it (but where events were lost) a CPU without events did what it had done before. */
struct trace_cpu {
	int64_t begin, end;       /* ns, within the trace's; begin > end: nothing of it */
	bool told;                /* by the tracer; else its first and last event are all that is known */
	/* Nothing of it, though others' events send threads there: if one alone does, that may be damaged, or the last; if more
	 * do, it was not recorded. */
	bool nowhere, missing;
};

struct trace_span { int64_t begin, end; };  /* ns, both included */

struct trace_vcpu {
	char *guest;              /* its machine, or what the tracer calls it where there is no trace of it */
	unsigned number;          /* of the CPU in the guest */
	int32_t host_tid;
};

/* What an argument of such an event is called, "next_tid"; NULL: nothing.  Is it a string id, for trace_string()? */
const char *event_arg_name(enum event_kind kind, unsigned arg, bool *is_text);
/* The word for a number that is none: of a struct event's enums; NULL: there is none. */
const char *event_arg_word(const struct event *ev, unsigned arg);

struct trace;
struct trace_cursor;

/* Finds the machines whose traces lie below root (any depth) and appends them to *spec (malloc'ed array with malloc'ed
 * dir).  Traces of one machine (same hostname and clock) become one spec.  Refuses: no such folder, no trace.  What looks
 * like a trace beside others, and cannot be read, is left out with a note for each (notes may be NULL). */
int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err);
void trace_spec_release(struct trace_spec *spec);  /* dir and what was found there */
void trace_specs_free(struct trace_spec *spec, size_t n);  /* of trace_discover() */
bool trace_is_file(const char *path);  /* one that holds a trace, or a part of one, of a form that is known */

/* Live traces: what a relay daemon of LTTng (lttng-relayd) gives while, or after, it is recorded.  They are named by
 * net://RELAY[:PORT]/host/HOSTNAME/SESSION.  Without SESSION, all sessions of that host are one machine's trace;
 * net://RELAY[:PORT] alone is for trace_discover(), as a folder is that holds the traces of several machines.
 * Loading reads until the sessions end, for options->live_for, or until the progress answers "enough". */
bool trace_is_live(const char *what);

struct live_session {
	char *host, *name, *url;
	uint64_t streams, viewers;
	int64_t timer;  /* ns: how often at most its data are sent; 0: it is not live, and cannot be read */
};
/* The sessions that a relay daemon has, by host and name; of the URL, what follows the relay may say less. */
int trace_live_sessions(const char *url, struct live_session **list, size_t *n, struct error *err);
void trace_live_sessions_free(struct live_session *list, size_t n);

/* Decodes all machines' traces, each once, with options->workers threads.  out[n] are the caller's to free.
 * On failure nothing is left in out.  What was tolerated (losses, cut packets) is added to notes. */
int trace_load(const struct trace_spec *spec, size_t n, const struct trace_options *options, struct trace **out,
               struct notes *notes, struct error *err);
void trace_free(struct trace *t);  /* NULL is allowed */

const struct trace_info *trace_info(const struct trace *t);
const char *trace_string(const struct trace *t, int64_t id);  /* "" for EVENT_ABSENT and unknown ids */

/* What its tracer wrote down as the thread's name, beside the events: "" where it did not.  Who has events since may have
 * another one.  Looks through all of them. */
const char *trace_saved_name(const struct trace *t, int32_t tid);

/* Walks the events whose kind is in `kinds` in order of (ts, stream).  A trace may have many cursors, from several
 * threads.  cpu < 0: all CPUs. */
struct trace_cursor *trace_cursor_open(const struct trace *t, event_kinds kinds, int cpu, struct error *err);
/* For who only wants to know when and where something happened: arg[] of its events is of no use.  One of several
 * parts, for walks side by side: each event is in one of them.  A stream's parts follow each other in time; those of
 * different streams need not be of the same time. */
struct trace_cursor *trace_cursor_open_times(const struct trace *t, event_kinds kinds, int cpu, size_t part, size_t parts,
                                             struct error *err);
int trace_cursor_next(struct trace_cursor *c, struct event *ev, struct error *err);  /* 1, 0 = end, -1 */
/* The same, and the event stays the cursor's: until the next call, or that the cursor is closed. */
int trace_cursor_borrow(struct trace_cursor *c, const struct event **ev, struct error *err);
void trace_cursor_close(struct trace_cursor *c);  /* NULL is allowed */

/* A trace made of hand-written events, for tests and tools: events of each CPU in time order.  Copies. */
struct trace *trace_from_events(const char *machine, enum trace_role role, const struct event *ev, size_t n,
                                const char *const *strings, size_t nstrings);

#endif
