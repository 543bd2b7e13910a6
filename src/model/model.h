/* The model: merged events -> state changes in a history (paper, section "Multi-level trace analysis").
 *
 * Writes the attributes of base/schema.h; of these the meaning is not plain:
 *   Parent                       null when nobody is known to run it.  "Host Thread" and "pCPU" are TIDs and CPUs of it
 *   Woken By                     changes when the waker acts, if that is 10 us earlier than the Status or more, else
 *                                with it; null for the ns before, where it is earlier and the same as before.  Null, too,
 *                                where it is not known: a wakeup without a waking tells the waker only on another CPU,
 *                                in a handler of timers, of a thread's first one, and where there is but one CPU
 *   Woken In                     changes when a sleep ends, with the Status.  In "thread" is said only where the trace has
 *                                events of all three kinds of handlers, or says that they were asked for and did not
 *                                come, and the CPU was not idle; in a softirq only where it has those of the other two
 *   /Containers/pidns-<inode>    the threads of the host in another pid namespace than the host's
 *   /Containers/cgroupns-<inode> those in the host's pid namespace and another cgroup namespace: told by the dump at the
 *                                beginning of a trace, inherited by fork
 *   /Requests/.../State          unknown: events, or its start, were lost
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

/* The control groups that a thread of the host is in, "NUMBER:SHARES/...", as long as the first one of its TID lives. */
struct model_groups { int32_t tid; char *text; };

/* What was true before the host's first event: it may be found out while its guests are synchronized. */
struct model_look;

struct model_options {
	const struct model_groups *groups;  /* borrowed */
	size_t grouped;
	bool paper_states;         /* fold HOST_BLOCKED into PREEMPTED and WAKING into IDLE */
	unsigned workers;          /* 0 = one per core; what comes out does not depend on them */
	struct model_look *look;   /* that was begun of the host, borrowed; or NULL */
	struct progress progress;  /* in events */
};

struct model_span {
	int64_t begin, end;        /* ns host time: what to give history_finish() */
	uint64_t events;           /* that went through the model */
};

/* host: borrowed, or NULL.  NULL: there is nothing to look at.  If it has not run by then, model_run() looks itself. */
struct model_look *model_look_begin(const struct trace *host);
void model_look_run(void *look);            /* in any thread, once */
void model_look_end(struct model_look *l);  /* when nobody runs it; NULL: nothing */

/* Replays all traces of `sync` in host time and pushes every state change to `b`. */
int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_span *span, struct notes *notes, struct error *err);

#define EXIT_NAME 16  /* bytes for the number of a reason that has no name */
/* Why an EV_KVM_EXIT left the guest, as the kernel calls it ("HLT" of VMX, "hlt" of SVM); its number when that is not
 * known.  Static, or buf. */
const char *exit_name(const struct event *ev, char buf[EXIT_NAME]);

#endif
