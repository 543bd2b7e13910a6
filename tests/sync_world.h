/* A simulated host with one guest, and the synchronization of the two. */
#pragma once

#include <stdlib.h>

#include "sync_sim.h"
#include "test.h"

struct sync_world {
	struct sync_sim sim;
	struct sim_vm vm;
	struct sim_events guest;
	struct trace *trace[2];
	struct sync_result r;
	struct notes notes;
};

static inline void world_sync(struct sync_world *w, enum sync_method method)
{
	const struct sync_options options = { .method = method };
	struct error err = ERROR_INIT;
	w->trace[0] = sim_host_trace(&w->sim);
	w->trace[1] = sim_guest_trace("Guest", &w->guest);
	assert_int_equal(sync_run(w->trace, 2, &options, &w->r, &w->notes, &err), 0);
}

static inline void world_end(struct sync_world *w)
{
	sync_result_release(&w->r);
	notes_release(&w->notes);
	trace_free(w->trace[0]);
	trace_free(w->trace[1]);
	free(w->guest.ev);
	sim_end(&w->sim);
}
