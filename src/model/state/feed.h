/* Interface to the model without traces: processes events, writes state changes. model_run() calls it with the merged
 * traces. */
#pragma once

#include "model/loss/initial_state.h"
#include "model/state/state.h"

/* Description of one machine. */
struct machine_setup {
	const char *name;             /* unique; ignored for machine 0, the host */
	int parent;                   /* index of the machine that runs it as a VM, smaller than its own; -1: none */
	bool traced;
	bool has_entries;             /* VM entries were recorded; exits alone have no duration */
	bool has_run_states, has_throttled;  /* see struct machine */
	bool one_cpu;                 /* the machine has only one CPU */
	unsigned kinds_without_exit;  /* kinds of handlers without exit events in its trace: HANDLERS_IRQ ... */
	int32_t host_pid;             /* PID of the VM's process on its parent machine; -1: unknown */
	const struct sync_vcpu *vcpu; /* borrowed during the call; a number may occur repeatedly, with different threads */
	const struct sync_vcpu_lifetime *life; /* each vCPU thread's lifetime; NULL: unknown */
	size_t vcpus;
	bool is_virtual;               /* known to be a VM */
	const char *vm_id;             /* identity at the provider; "" or NULL: none */
	struct name_source names;
};

/* Creates a model. setup[0] is the host, even without a trace (traced = false). Returns NULL with *err set if the sink
 * fails. */
struct model *model_new(const struct machine_setup *setup, size_t n, bool paper_states,
                        const struct model_sink_ops *ops, void *to, struct error *err);
void model_free(struct model *m);  /* NULL is allowed */

/* model_begin(): begins the machine's trace at t (host ns); prescan: initial state, borrowed until the end; NULL: none.
 * model_feed(): processes one event at t. model_end(): ends the trace; t is the first time without information. t must
 * never decrease between calls. Each returns 0, or -1 if the sink failed. */
int model_begin(struct model *m, uint32_t machine, int64_t t, const struct prescan *prescan, struct error *err);
int model_feed(struct model *m, uint32_t machine, int64_t t, const struct event *ev, struct error *err);
int model_end(struct model *m, uint32_t machine, int64_t t, struct error *err);

/* Returns the CPU time of the machine with an unknown current thread, up to `end` (included), ns. */
int64_t model_unknown_cpu_time(const struct model *m, uint32_t machine, int64_t end);
