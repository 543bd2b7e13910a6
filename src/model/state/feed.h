/* The model without traces: events in, state changes out.  model_run() is a merge of cursors around this. */
#ifndef STEALSCOPE_MODEL_STATE_FEED_H
#define STEALSCOPE_MODEL_STATE_FEED_H

#include "model/loss/initial_state.h"
#include "model/state/state.h"

/* One machine to model. */
struct machine_setup {
	const char *name;               /* unique; of machine 0 it does not matter: that is the host */
	int parent;                     /* index of the machine that runs it as a VM, -1 none; smaller than its own */
	bool traced;
	bool has_kvm;                   /* kvm entries: exits alone tell of no time */
	bool one_cpu;                   /* it has no more than one */
	unsigned endless;               /* kinds of handlers of which its trace has no ends, HANDLERS_IRQ ... */
	int32_t host_pid;               /* of the VM's process in parent, -1 unknown */
	const struct sync_vcpu *vcpu;   /* borrowed during the call; a number may occur again with another thread */
	const struct sync_life *life;   /* of each, NULL: not known */
	size_t vcpus;
	struct name_source names;
};

/* setup[0] is the host, also when there is none (traced = false).  NULL when the sink fails (see *err). */
struct model *model_new(const struct machine_setup *setup, size_t n, bool paper_states,
                        const struct model_sink_ops *ops, void *to, struct error *err);
void model_free(struct model *m);  /* NULL is allowed */

/* The machine's trace begins at t (host ns) with what `start` (may be NULL; borrowed until the end) knows; an event
 * of it at time t; its trace is over and t is the first moment of which it says nothing.  t never decreases from call
 * to call.  -1 when the sink failed. */
int model_begin(struct model *m, uint32_t machine, int64_t t, const struct start *start, struct error *err);
int model_feed(struct model *m, uint32_t machine, int64_t t, const struct event *ev, struct error *err);
int model_end(struct model *m, uint32_t machine, int64_t t, struct error *err);

/* ns of the machine's CPU time, up to `end` included, of which nobody knows what ran. */
int64_t model_unknown(const struct model *m, uint32_t machine, int64_t end);

#endif
