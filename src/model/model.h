/* The model: merged events -> state changes in a history (paper, section "Multi-level trace analysis").
 *
 * Writes the attribute paths of stealscope(1), section ATTRIBUTES; of these the meaning is not plain:
 *   /Host/CPUs/CPU0/Owner         state set of machine names: who has this pCPU ("idle", "host", a VM, ...)
 *   /Virtual Machines/<VM>/Parent      string, the machine that runs it: "host" or a VM; "Host Thread" and "pCPU" are TIDs
 *                                 and CPUs of that one.  null when nobody is known to run it
 *   /Virtual Machines/<VM>/Clock Band  ns: how far the guest's clock may be off here (see sync/), null = unknown
 *   .../CPUs/CPU0/Interrupt       string, "irq/27-virtio0" or "softirq/7-SCHED", null when none; of host and guests
 *   /Host/Threads/<TID>/VM        string, while the thread is a vCPU's: "<VM>/<n>"
 *   .../Threads/<TID>/Waker       string "<machine>/<TID>": who ended the last BLOCKED
 *   /Containers/pidns-<inode>/Threads/<TID>/...   the threads of the host in another pid namespace than the host's
 *   /Containers/cgroupns-<inode>/Threads/<TID>/...  those in the host's pid namespace and another cgroup namespace: told
 *                                 by the dump at the beginning of a trace, inherited by fork
 *   /Requests/<machine>/<id>/State   state set: running, yielded, unknown (events, or its start, were lost); null outside
 *   /Requests/<machine>/<id>/Thread  TID that serves it; null outside
 * <machine> is "host" or the VM's name.  TID 0, the idle thread, has no row: "Current Thread" 0 means idle, null
 * unknown.  A machine's rows say something from its first event to its last: before and after, threads are null,
 * and vCPUs go by the host alone, or are UNKNOWN where the host is not traced and the guest is.  A traced guest's CPU
 * that has no event was idle or busy all the time: UNKNOWN, unless its vCPU sleeps or was plugged in meanwhile.
 * Memory is bounded by live objects, not by the length of the trace. */
#ifndef STEALSCOPE_MODEL_MODEL_H
#define STEALSCOPE_MODEL_MODEL_H

#include <stdbool.h>

#include "history/history.h"
#include "sync/sync.h"

struct model_options {
	bool paper_states;         /* fold HOST_BLOCKED into PREEMPTED and WAKING into IDLE */
	unsigned workers;          /* 0 = one per core; what comes out does not depend on them */
	struct progress progress;  /* in events */
};

struct model_span {
	int64_t begin, end;        /* ns host time: what to give history_finish() */
	uint64_t events;           /* that went through the model */
};

/* Replays all traces of `sync` in host time and pushes every state change to `b`. */
int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_span *span, struct notes *notes, struct error *err);

#endif
