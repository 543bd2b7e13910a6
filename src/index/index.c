#include "index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "index/fingerprint.h"
#include "index/provenance.h"
#include "model/model.h"

const char *const build_phase_name[BUILD_PHASES] = {
	[PHASE_DECODE] = "decode", [PHASE_SYNC] = "sync", [PHASE_MODEL] = "merge, model, history",
	[PHASE_WRITE] = "history: finish",
};

static void times_begin(struct build_times *times, enum build_phase phase)
{
	if (!times)
		return;
	times->phase = phase;
	times->begun = now_ns();
}

static void times_end(struct build_times *times, enum build_phase phase)
{
	int64_t begun = times ? times->begun : 0;
	times_begin(times, phase + 1);
	if (times)
		times->spent[phase] += times->begun - begun;
}

static void add_reader(struct build_times *times, const char *reader)
{
	const size_t len = strlen(times->readers);
	if (reader && !strstr(times->readers, reader))
		snprintf(times->readers + len, sizeof times->readers - len, "%s%s", len ? ", " : "", reader);
}

static int decode(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                  struct error *err)
{
	l->trace = mem_new(in->specs, sizeof(struct trace *));
	struct trace_options options = { .reader = in->reader, .workers = in->jobs, .progress = progress,
		.live_for = in->live_for, .as_corrected = in->audit };
	if (trace_load(in->spec, in->specs, &options, l->trace, &l->notes, err))
		return -1;
	l->traces = in->specs;
	for (size_t i = 0; i < in->notes.len; i++)
		notes_copy(&l->notes, &in->notes.item[i], NULL);
	for (size_t i = 0; times && i < l->traces; i++) {
		times->events += trace_info(l->trace[i])->events;
		add_reader(times, trace_info(l->trace[i])->reader);
	}
	times_end(times, PHASE_DECODE);
	return 0;
}

static int synchronize(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                       struct error *err)
{
	in->sync_options.audit = in->audit;
	in->sync_options.progress = progress;
	in->sync_options.workers = in->jobs;
	int rc = sync_run(l->trace, l->traces, &in->sync_options, &l->sync, &l->notes, err);
	if (rc == 0 && l->sync.host)
		notes_rename(&l->notes, trace_info(l->sync.host)->machine, "host");  /* as histories call it */
	times_end(times, PHASE_SYNC);
	return rc;
}

int load_traces(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err)
{
	*l = (struct loaded){ 0 };
	return decode(l, in, progress, times, err) || synchronize(l, in, progress, times, err) ? -1 : 0;
}

static void release_traces(struct loaded *l)
{
	sync_result_release(&l->sync);
	for (size_t i = 0; i < l->traces; i++)
		trace_free(l->trace[i]);
	l->traces = 0;
}

void loaded_release(struct loaded *l)
{
	release_traces(l);
	json_object_put(l->files);
	free(l->trace);
	notes_release(&l->notes);
}

/* NULL: there is none, or several. */
static const struct trace *host_of(const struct loaded *l)
{
	const struct trace *host = NULL;
	size_t hosts = 0;
	for (size_t i = 0; i < l->traces; i++)
		if (trace_info(l->trace[i])->role == ROLE_HOST) {
			host = l->trace[i];
			hosts++;
		}
	return hosts == 1 ? host : NULL;
}

static int fill(struct history_builder *b, const char *path, struct loaded *l, struct input *in,
                struct progress progress, struct model_span *span, struct build_times *times, struct error *err)
{
	/* Before the traces are read: what is added to them meanwhile is not in the history, which then fits them no more. */
	l->files = fingerprint_take(in, err);
	if (!l->files || decode(l, in, progress, times, err))
		return -1;
	struct model_options options = { .paper_states = in->paper_states, .workers = in->jobs, .progress = progress,
	                                 .groups = in->group, .grouped = in->groups,
	                                 .look = model_look_begin(host_of(l)) };
	in->sync_options.meanwhile = options.look ? model_look_run : NULL;
	in->sync_options.arg = options.look;
	int rc = synchronize(l, in, progress, times, err);
	in->sync_options.meanwhile = NULL;
	if (rc == 0)
		rc = model_run(&l->sync, &options, b, span, &l->notes, err);
	model_look_end(options.look);
	if (rc)
		return -1;
	times_end(times, PHASE_MODEL);
	return provenance_store(b, path, in, l);
}

/* What is left to do once all is known: the history is finished, and meanwhile the traces, of no use any more, are let go
 * of, which keeps the kernel busy for a fifth of that time. */
struct ending {
	struct history_builder *b;
	const struct model_span *span;
	struct loaded *l;
	struct error *err;
	int status;
};

static int end_part(void *arg, size_t i)
{
	struct ending *e = arg;
	if (i == 0)
		e->status = history_finish(e->b, e->span->begin, e->span->end, e->err);
	else
		release_traces(e->l);
	return 0;
}

static int end(struct history_builder *b, const struct model_span *span, struct loaded *l, const struct input *in,
               struct error *err)
{
	struct ending e = { b, span, l, err, 0 };
	parallel_run(&(struct parallel){ .workers = parallel_workers(in->jobs), .task = end_part, .arg = &e }, 2);
	return e.status;
}

int index_build(struct input *in, const char *path, struct progress progress, struct build_times *times,
                struct notes *notes, struct error *err)
{
	/* The output is opened first: a folder that cannot be written is better known before an hour of work. */
	struct history_builder *b = history_create(path, NULL, err);
	struct loaded l = { 0 };
	struct model_span span;
	times_begin(times, PHASE_DECODE);
	int rc = b ? fill(b, path, &l, in, progress, &span, times, err) : -1;
	if (rc)
		history_abort(b);
	else
		rc = end(b, &span, &l, in, err);
	times_end(times, PHASE_WRITE);
	if (rc == 0 && notes) {
		*notes = l.notes;
		l.notes = (struct notes){ 0 };
	}
	loaded_release(&l);
	return rc;
}
