/* Loading of traces: the machines, their sources, and the tasks that decode them. Shared by the files that implement
 * trace_load(). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "trace/internal.h"
#include "trace/reader.h"
#include "trace/decode_output.h"

struct load_machine {
	const struct trace_spec *spec;
	struct trace *trace;
	struct layout **layout;
	size_t layouts;
	bool borrows_layouts;   /* layout[] belongs to an earlier machine */
	struct trace_location *location;
	size_t locations;
};

struct load {
	const struct trace_options *options;
	struct load_machine *machine;
	size_t machines;
	struct source **source;
	size_t sources, sources_cap;
	struct open_result *open_results;  /* [sources], results of opening them in parallel; NULL at other times */
	struct task *task;
	size_t tasks;
	size_t *order;  /* indexes into task[], in the order of decoding */
	size_t isolated;   /* tasks at the start of order[] that child processes decode, grouped by source */
	size_t ordered; /* tasks in order[]; those decoded by threads follow the isolated ones, largest first */
	struct store *store;
	pthread_mutex_t lock;  /* protects source.idle */
	unsigned workers;
	uint64_t total;        /* total size, bytes */
	_Atomic uint64_t bytes;
	_Atomic uint64_t live_events;
	int64_t live_until;    /* monotonic time at which reading of live traces ends, ns; INT64_MAX: no limit */
	atomic_bool cancelled;
};

/* machines.c: finds each machine's traces, groups them into sources, and names the machines. Returns 0 or -1. */
int machines_open(struct load *l, const struct trace_spec *spec, struct error *err);
void machines_describe(struct load *l);  /* after decoding: adds the metadata that was found while decoding */
void machines_release(struct load *l);

/* partition.c: cuts the streams into tasks, and sets the tasks' order. */
void partition_streams(struct load *l);

/* worker_pool.c decodes tasks in threads; isolated_tasks.c decodes the tasks of isolated readers in child processes. The
 * latter must run first because it forks. Both return 0 or -1. */
int decode_in_threads(struct load *l, struct error *err);
int decode_isolated_tasks(struct load *l, struct error *err);
void load_report_progress(struct load *l);  /* reports progress to the caller of trace_load(), and sets `cancelled` if
                                             * the callback requests it */
bool load_must_stop(const struct load *l);  /* returns true if loading was cancelled or must restart with one worker */
bool load_continues(void *load);  /* callback for parallel_run(): reports progress, and returns !load_must_stop() */

/* assemble_trace.c: moves the decoded streams into a machine's trace, and adds notes about faults that were
 * tolerated. Returns 0, or -1: the records cannot be stored. */
int assemble_trace(struct load *l, size_t machine, struct notes *notes, struct error *err);
