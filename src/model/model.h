/* The model: merged events -> state changes in a history (paper, section "Multi-level trace analysis"; DESIGN 5).
 *
 * Writes the attribute paths of DESIGN section 2 and these:
 *   /Host/CPUs/CPU0/Owner         state set of machine names: who has this pCPU ("idle", "host", a VM, ...)
 *   /Host/CPUs/CPU0/Interrupt     string, "irq/27-virtio0" or "softirq/7-SCHED", null when none
 *   /Host/Threads/<TID>/VM        string, for vCPU threads: "<VM>/<n>"
 *   .../Threads/<TID>/Waker       string "<machine>/<TID>": who ended the last BLOCKED
 * Memory is bounded by live objects, not by the length of the trace. */
#ifndef STEALSCOPE_MODEL_MODEL_H
#define STEALSCOPE_MODEL_MODEL_H

#include <stdbool.h>

#include "history/history.h"
#include "sync/sync.h"

struct model_options {
	bool paper_states;         /* fold HOST_BLOCKED into PREEMPTED and WAKING into IDLE */
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
