/* The model turns merged events into state changes in a history (paper, section "Multi-level trace analysis").
 *
 * It writes the attributes of base/schema.h. Meaning of those that are not obvious:
 *   Parent                       machine that runs the VM; null: unknown. "Host Thread" and "pCPU" refer to that machine
 *   Woken By                     waker of the thread; null: unknown. Changes with sched_waking if that precedes the
 *                                wakeup by 10 us or more, otherwise with the Status. Null for 1 ns before an early
 *                                change to the same waker as last time. sched_wakeup alone identifies the waker only on
 *                                another CPU, in a timer handler, at the first wakeup of a new thread, or on a machine
 *                                with one CPU
 *   Woken In                     context of the waker; changes with the Status when a sleep ends. "thread" only if the
 *                                trace records all three kinds of handlers (or requested those that never occurred) and
 *                                the CPU was not idle; a softirq only if the trace records the other two kinds
 *   /Containers/pidns-<inode>    threads of the host in a pid namespace other than the host's
 *   /Containers/cgroupns-<inode> threads in the host's pid namespace and another cgroup namespace; from the state dump
 *                                at the beginning of a trace, inherited by fork
 *   /Host/Groups/<number>        control groups, from a session file; threads have one from their first event, inherited
 *                                by fork
 *   /Requests/.../State          unknown: events, or the request's start, were lost
 *
 * <machine> is "host" or the VM's name. The idle thread, TID 0, has no node: "Current Thread" is 0 for idle, null
 * for unknown.
 *
 * Threads of a machine have values from its first event to its last; before and after, they are null. Outside that
 * interval a vCPU's state depends on the host's events alone; it is UNKNOWN if only the guest was traced. A CPU of
 * a traced guest without any event was idle or busy all the time: UNKNOWN, unless its vCPU thread sleeps or the CPU was
 * plugged during the trace. Memory is bounded by the live object count, not by the trace's length. */
#pragma once

#include <stdbool.h>

#include "base/control_groups.h"
#include "base/topology.h"
#include "history/history.h"
#include "sync/sync.h"

/* Control groups of a host thread, "NUMBER:SHARES/...", valid while the first thread with this TID lives. */
struct model_groups { int32_t tid; char *text; };

/* Scan of the host's first events for its initial state; may run while the guests are synchronized. */
struct host_prescan;

struct model_options {
	const struct model_groups *groups;  /* borrowed; one per host thread */
	size_t grouped;
	const struct control_groups *control_groups;  /* borrowed; NULL: unknown */
	const struct topology *topology;  /* of the host, borrowed; NULL: unknown */
	bool paper_states;        /* replace HOST_BLOCKED by PREEMPTED and WAKING by IDLE */
	unsigned workers;         /* thread count; 0: one per core. The output does not depend on it */
	struct host_prescan *look;  /* scan started by the caller, borrowed; NULL: none */
	struct progress progress; /* unit: events */
};

struct model_interval {
	int64_t begin, end; /* host time, ns; arguments of history_finish() */
	uint64_t events;    /* events processed */
};

/* Creates a scan; `host` is borrowed. Returns NULL if the host has no events. If host_prescan_run() is not called,
 * model_run() scans the host itself. */
struct host_prescan *host_prescan_begin(const struct trace *host);
void host_prescan_run(void *host_prescan);            /* Runs the scan, in any thread; call it at most once. */
void host_prescan_end(struct host_prescan *l);  /* Frees the scan, which must not be running; NULL is allowed. */

/* Replays all traces of `sync` in host time and writes every state change to `b`. Returns 0, or -1 with *err set. */
int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_interval *span, struct notes *notes, struct error *err);

#define EXIT_NAME 24  /* size of the buffer for the number of an exit reason without a name, bytes */
/* Returns the kernel's name of the exit reason ("HLT" for VMX, "hlt" for SVM), or its number if it has no name. The
 * string is static, or in buf. */
const char *exit_name(const struct event *ev, char buf[EXIT_NAME]);
