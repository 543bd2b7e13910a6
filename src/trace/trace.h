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
#include "base/notes.h"
#include "base/progress.h"

/* X(code, name in layouts) */
#define EVENT_KINDS(X) \
	X(EV_OTHER, "other")                     /* any event the layout does not name: it only proves activity */ \
	X(EV_LOST, "lost")                       /* made by the reader: events of this CPU were discarded */ \
	X(EV_SWITCH, "sched_switch") \
	X(EV_WAKING, "sched_waking") \
	X(EV_WAKEUP, "sched_wakeup")             /* also sched_wakeup_new */ \
	X(EV_MIGRATE, "sched_migrate") \
	X(EV_FORK, "sched_fork") \
	X(EV_EXEC, "sched_exec") \
	X(EV_EXIT, "sched_exit") \
	X(EV_RENAME, "task_rename") \
	X(EV_PROCESS, "process_state")           /* statedump: one thread that exists */ \
	X(EV_PROCESS_NS, "process_pid_ns")       /* statedump: its pid namespace */ \
	X(EV_PROCESS_CGROUP, "process_cgroup_ns")  /* statedump: its cgroup namespace */ \
	X(EV_KVM_ENTRY, "kvm_entry") \
	X(EV_KVM_EXIT, "kvm_exit") \
	X(EV_HYPERCALL, "kvm_hypercall") \
	X(EV_IRQ_ENTRY, "irq_entry") \
	X(EV_IRQ_EXIT, "irq_exit") \
	X(EV_SOFTIRQ_ENTRY, "softirq_entry") \
	X(EV_SOFTIRQ_EXIT, "softirq_exit") \
	X(EV_TIMER_ENTRY, "hrtimer_entry") \
	X(EV_TIMER_EXIT, "hrtimer_exit") \
	X(EV_SYNC, "sync")                       /* one end of a synchronization pair, with its key */ \
	X(EV_MARK, "request_mark")               /* srbn start | yield | resume | end, with the request's id */

#define EVENT_CODE(code, name) code,
enum event_kind { EVENT_KINDS(EVENT_CODE) EVENT_KIND_COUNT };
#undef EVENT_CODE
extern const char *const event_kind_name[EVENT_KIND_COUNT];

/* Which end of a pair an EV_SYNC is: a guest sends, b host receives; c host sends, d guest receives (paper, Fig. 2).
 * NET_SEND and NET_RECEIVE are TCP segments: a or c, b or d, depending on the machine. */
enum sync_end { SYNC_A, SYNC_B, SYNC_C, SYNC_D, SYNC_NET_SEND, SYNC_NET_RECEIVE };
enum mark { MARK_START, MARK_YIELD, MARK_RESUME, MARK_END };
enum run_state { RUN_RUNNABLE, RUN_BLOCKED, RUN_DEAD };  /* prev_state of a switch, masked by the layout */

#define EVENT_ABSENT INT64_MIN  /* a field that the event does not have */

/* One event.  Names are string ids (trace_string()): equal ids are equal strings within one trace, no more; the ids of a
 * string differ from load to load. */
struct event {
	int64_t ts;        /* ns since the epoch, clock of the traced machine */
	uint16_t kind;     /* enum event_kind */
	uint16_t cpu;
	int32_t tid, pid;  /* context: the thread that was current, -1 when the tracer did not record it */
	uint32_t comm;     /* context: its name, 0 when not recorded */
	union {            /* every field is one int64_t, EVENT_ABSENT when missing */
		int64_t arg[6];
		struct { int64_t end, count; } lost;               /* lost span [ts, end]; count, or EVENT_ABSENT */
		struct { int64_t prev_tid, next_tid, prev_state /* enum run_state */, prev_comm, next_comm; } sw;
		struct { int64_t tid, comm, target_cpu; } wake;    /* EV_WAKING, EV_WAKEUP */
		struct { int64_t tid, dest_cpu, orig_cpu; } migrate;
		struct { int64_t parent_tid, child_tid, child_pid, child_comm, child_ns; } fork;
		struct { int64_t tid, filename; } exec;            /* tid: of the context when the event has none */
		struct { int64_t tid; } exit;
		struct { int64_t tid, comm; } rename;
		struct { int64_t tid, pid, comm, status, cpu, type; } process;
		struct { int64_t tid, ns, vtid; } process_ns;      /* EV_PROCESS_CGROUP too, without vtid */
		struct { int64_t vcpu, reason; } kvm;              /* vcpu: a hint: some tracers write rubbish */
		struct { int64_t nr, a0, a1; } hypercall;
		struct { int64_t number, name; } irq;              /* EV_IRQ_*, EV_SOFTIRQ_* (number = vector) */
		struct { int64_t timer, function; } timer;
		struct { int64_t end /* enum sync_end */, key, uid /* of the VM, or EVENT_ABSENT */; } sync;
		struct { int64_t op /* enum mark */, id; } mark;
	};
};

enum trace_role { ROLE_UNKNOWN, ROLE_HOST, ROLE_GUEST };

/* One machine's trace to read. */
struct trace_spec {
	const char *dir;     /* holds the CTF trace(s), at any depth; or the URL of live ones, see trace_is_live() */
	const char *name;    /* of the machine, or NULL: the trace's hostname, else the folder's name */
	enum trace_role role;
	const char *layout;  /* a name or a file, or NULL: chosen by the event classes present */
};

struct trace_options {
	unsigned workers;        /* 0 = one per core */
	size_t memory;           /* bytes for records before they spill, 0 = 96 MiB, all traces together */
	const char *spill_dir;   /* for the unlinked temporary file; NULL = $TMPDIR or /tmp */
	int64_t live_for;        /* ns: how long live sessions are read; 0 = to their end */
	struct progress progress;
};

struct trace_info {
	const char *dir;          /* as given: a folder or a URL */
	const char *machine;      /* name of the machine, unique within one load */
	const char *hostname;     /* as the tracer recorded it, or "" */
	const char *tracer;       /* "lttng-modules 2.13.9", or "" */
	const char *layout;
	const char *uuid;         /* of the CTF traces, comma separated */
	enum trace_role role;     /* as given, else HOST when there are kvm entries and exits, else GUEST */
	int64_t begin, end;       /* ns, first and last event; begin > end when there is none */
	uint64_t events;          /* decoded */
	uint64_t lost;            /* discarded by the tracer, as far as it counted */
	uint64_t uncounted;       /* times that it discarded events and did not count them */
	uint64_t bytes;           /* of the trace's files; 0 of a live one */
	unsigned cpus;            /* highest CPU number + 1 */
	bool has_kvm;             /* kvm entries or exits are present */
	/* Of a host: the vCPUs whose threads its tracer wrote down. */
	const struct trace_vcpu *vcpu;
	size_t vcpus;
};

struct trace_vcpu {
	char *guest;              /* its machine, or what the tracer calls it where there is no trace of it */
	unsigned number;          /* of the CPU in the guest */
	int32_t host_tid;
};

struct trace;
struct trace_cursor;

/* Finds the machines whose CTF traces lie below root (any depth) and appends them to *spec (malloc'ed array with
 * malloc'ed dir).  Traces of one machine (same hostname and clock) become one spec.  Refuses: no such folder, no CTF. */
int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct error *err);
void trace_specs_free(struct trace_spec *spec, size_t n);  /* of trace_discover() */

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

/* Walks the events whose kind is in `kinds` (bit per enum event_kind) in order of (ts, stream).  A trace may have many
 * cursors, from several threads.  cpu < 0: all CPUs. */
#define ALL_KINDS ((1ULL << EVENT_KIND_COUNT) - 1)
struct trace_cursor *trace_cursor_open(const struct trace *t, uint64_t kinds, int cpu, struct error *err);
/* One of several parts, for walks side by side: each event is in one of them.  A stream's parts follow each other in time;
 * those of different streams need not be of the same time. */
struct trace_cursor *trace_cursor_open_part(const struct trace *t, uint64_t kinds, int cpu, size_t part, size_t parts,
                                            struct error *err);
int trace_cursor_next(struct trace_cursor *c, struct event *ev, struct error *err);  /* 1, 0 = end, -1 */
void trace_cursor_close(struct trace_cursor *c);  /* NULL is allowed */

/* A trace made of hand-written events, for tests and tools: events of each CPU in time order.  Copies. */
struct trace *trace_from_events(const char *machine, enum trace_role role, const struct event *ev, size_t n,
                                const char *const *strings, size_t nstrings);

#endif
