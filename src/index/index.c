/* Builds a history: decodes the traces, synchronizes the clocks, runs the model, stores the provenance. */
#include "index/index.h"

#include <sys/stat.h>

#include "base/parallel.h"
#include "index/fingerprint.h"
#include "index/provenance.h"
#include "index/session.h"
#include "index/tsc_rates.h"
#include "model/model.h"
#include "query/query.h"

const char *const build_phase_name[BUILD_PHASES] = {
	[PHASE_DECODE] = "decode", [PHASE_SYNC] = "sync", [PHASE_MODEL] = "merge, model, history",
	[PHASE_WRITE] = "history: finish",
};

static void phase_begin(struct build_times *times, enum build_phase phase)
{
	if (!times)
		return;
	times->phase = phase;
	times->begun = now_ns();
}

static void phase_end(struct build_times *times, enum build_phase phase)
{
	int64_t begun = times ? times->begun : 0;
	phase_begin(times, phase + 1);
	if (times)
		times->spent[phase] += times->begun - begun;
}

static void add_reader(struct build_times *times, const char *reader)
{
	const size_t len = strlen(times->readers);
	if (reader && !strstr(times->readers, reader))
		snprintf(times->readers + len, sizeof times->readers - len, "%s%s", len ? ", " : "", reader);
}

static void release_traces(struct loaded *l)
{
	sync_result_release(&l->sync);
	for (size_t i = 0; i < l->traces; i++)
		trace_free(l->trace[i]);
	l->traces = 0;
}

static int decode_traces(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                         struct error *err)
{
	l->trace = mem_new(in->specs, sizeof(struct trace *));
	struct trace_options options = { .workers = in->jobs, .progress = progress,
		.live_for = in->live_for, .as_corrected = in->audit, .tsc_hz = in->sync_options.tsc_hz, .domain = in->domain,
		.domains = in->domains };
	if (trace_load(in->spec, in->specs, &options, l->trace, &l->notes, err))
		return -1;
	l->traces = in->specs;
	const int found = tsc_rates_find(in, l->trace, err);
	if (found > 0) {
		release_traces(l);
		notes_release(&l->notes);
		l->notes = (struct notes){ 0 };
		if (trace_load(in->spec, in->specs, &options, l->trace, &l->notes, err))
			return -1;
		l->traces = in->specs;
		tsc_rates_add_notes(in, l->trace, &l->notes);
	}
	if (found < 0)
		return -1;
	for (size_t i = 0; i < in->notes.len; i++)
		notes_copy(&l->notes, &in->notes.item[i], NULL);
	for (size_t i = 0; times && i < l->traces; i++) {
		times->events += trace_info(l->trace[i])->events;
		add_reader(times, trace_info(l->trace[i])->reader);
	}
	phase_end(times, PHASE_DECODE);
	return 0;
}

/* Refuses traces of which a guest contains kvm events and the host none: each culprit would be wrong. */
static int refuse_swapped(const struct sync_result *sync, struct error *err)
{
	for (size_t i = 0; i < sync->vms; i++)
		if (sync->vm[i].guest && sync->vm[i].reason == SYNC_REASON_MAYBE_SWAPPED)
			return error_set(err, STATUS_INPUT, "swap --host and --guest; --sync none reads them as they are",
			                 "%s: a guest with kvm events, while the host's trace %s has none",
			                 trace_info(sync->vm[i].guest)->dir, trace_info(sync->host)->dir);
	return 0;
}

static int synchronize(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                       struct error *err)
{
	in->sync_options.audit = in->audit;
	in->sync_options.progress = progress;
	in->sync_options.workers = in->jobs;
	int rc = sync_run(l->trace, l->traces, &in->sync_options, &l->sync, &l->notes, err);
	if (rc == 0 && in->sync_options.method != SYNC_NONE)
		rc = refuse_swapped(&l->sync, err);
	if (rc == 0 && l->sync.host)
		notes_rename(&l->notes, trace_info(l->sync.host)->machine, "host");  /* name of the host in histories */
	phase_end(times, PHASE_SYNC);
	return rc;
}

int load_traces(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err)
{
	*l = (struct loaded){ 0 };
	return decode_traces(l, in, progress, times, err) || synchronize(l, in, progress, times, err) ? -1 : 0;
}

void loaded_release(struct loaded *l)
{
	release_traces(l);
	json_object_put(l->files);
	free(l->trace);
	notes_release(&l->notes);
}

/* Returns the only trace of a host; NULL: there is none, or several. */
static const struct trace *find_host(const struct loaded *l)
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

static int build_contents(struct history_builder *b, const char *path, struct loaded *l, struct input *in,
                          struct progress progress, struct model_interval *recorded, struct build_times *times,
                          struct error *err)
{
	/* Taken before decoding, so that a file which changes during decoding makes the history stale. */
	l->files = fingerprint_make(in, err);
	if (!l->files || decode_traces(l, in, progress, times, err))
		return -1;
	struct model_options options = { .paper_states = in->paper_states, .workers = in->jobs, .progress = progress,
	                                 .groups = in->group, .grouped = in->groups, .topology = &in->topology,
	                                 .control_groups = &in->control_groups,
	                                 .look = host_prescan_begin(find_host(l)) };
	in->sync_options.background_task = options.look ? host_prescan_run : NULL;
	in->sync_options.arg = options.look;
	int rc = synchronize(l, in, progress, times, err);
	in->sync_options.background_task = NULL;
	if (rc == 0)
		rc = model_run(&l->sync, &options, b, recorded, &l->notes, err);
	host_prescan_end(options.look);
	if (rc)
		return -1;
	phase_end(times, PHASE_MODEL);
	history_derive(b, culprit_sums_derive, &in->jobs);
	return provenance_store(b, path, in, l);
}

/* Last step: one thread finishes the history while another frees the traces. Freeing takes 20 % of the time for
 * finishing. */
struct finish_tasks {
	struct history_builder *b;
	const struct model_interval *recorded;
	struct loaded *l;
	struct error *err;
	int status;
};

static int run_finish_task(void *arg, size_t i)
{
	struct finish_tasks *e = arg;
	if (i == 0)
		e->status = history_finish(e->b, e->recorded->begin, e->recorded->end, e->err);
	else
		release_traces(e->l);
	return 0;
}

static int finish_history(struct history_builder *b, const struct model_interval *recorded, struct loaded *l,
                  const struct input *in, struct error *err)
{
	struct finish_tasks e = { b, recorded, l, err, 0 };
	parallel_run(&(struct parallel){ .workers = parallel_workers(in->jobs), .task = run_finish_task, .arg = &e }, 2);
	return e.status;
}

/* Returns true if the history is stored in a recording that only its owner can read, such as those of `record`. */
static bool is_in_private_recording(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = mem_printf("%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	char *session = find_session_file(dir);
	struct stat st;
	const bool is_private = session && stat(session, &st) == 0 && !(st.st_mode & (S_IRGRP | S_IROTH));
	free(session);
	free(dir);
	return is_private;
}

int index_build(struct input *in, const char *path, struct progress progress, struct build_times *times,
                struct notes *notes, struct error *err)
{
	const struct history_options options = { .owner_only = is_in_private_recording(path) };
	/* The output is opened first, so that an unwritable directory is reported before decoding, which may take an hour. */
	struct history_builder *b = history_create(path, &options, err);
	struct loaded l = { 0 };
	struct model_interval recorded;
	phase_begin(times, PHASE_DECODE);
	int rc = b ? build_contents(b, path, &l, in, progress, &recorded, times, err) : -1;
	if (rc)
		history_abort(b);
	else
		rc = finish_history(b, &recorded, &l, in, err);
	phase_end(times, PHASE_WRITE);
	if (rc == 0 && notes) {
		*notes = l.notes;
		l.notes = (struct notes){ 0 };
	}
	loaded_release(&l);
	return rc;
}
