/* What the files that load traces share: the machines, their sources, and the tasks that decode them. */
#ifndef STEALSCOPE_TRACE_LOAD_H
#define STEALSCOPE_TRACE_LOAD_H

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
	bool borrows;   /* they are another machine's */
	struct place *place;
	size_t places;
};

struct load {
	const struct trace_options *options;
	struct load_machine *machine;
	size_t machines;
	struct source **source;
	size_t sources, sources_cap;
	struct opened *opened;  /* of each, while they are opened */
	struct task *task;
	size_t tasks;
	size_t *order;  /* in which tasks are taken: indexes */
	size_t apart;   /* the first so many: of readers that are apart, source by source */
	size_t ordered; /* the others, largest first, up to here */
	struct store *store;
	pthread_mutex_t lock;  /* of the sources' idle[] */
	unsigned workers;
	uint64_t total;        /* bytes */
	_Atomic uint64_t bytes;
	_Atomic uint64_t live_events;
	int64_t live_until;    /* ns, monotonic: when live traces have been read for long enough; INT64_MAX: never */
	atomic_bool cancelled;
};

/* machines.c: finds the traces of each machine, and what is read as a whole; names the machines. */
int machines_open(struct load *l, const struct trace_spec *spec, struct error *err);
void machines_describe(struct load *l);  /* by what only decoding told */
void machines_release(struct load *l);

/* partition.c: cuts the sources' streams into tasks for the workers: tasks, and the order to take them in. */
void plan_tasks(struct load *l);
void plan_again(struct load *l);  /* only those streams whole that could not be decoded in parts */

/* worker_pool.c: decodes tasks with several threads; isolated_tasks.c: those of readers that are apart, with child
 * processes. The latter comes first, because it forks. */
int work_tasks(struct load *l, struct error *err);
int apart_tasks(struct load *l, struct error *err);
void load_tick(struct load *l);  /* reports progress, and may cancel */
bool load_is_over(const struct load *l);  /* nobody wants what is still to be read */
bool load_goes_on(void *load);  /* the same, for parallel_run() to watch, with a tick */

/* assemble_trace.c: moves the decoded streams into the machine's trace, and says what was tolerated.  0, or -1: no room. */
int deliver(struct load *l, size_t machine, struct notes *notes, struct error *err);

#endif
