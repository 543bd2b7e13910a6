#include "cli/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/save.h"
#include "cli/progress_bar.h"
#include "cli/provenance.h"
#include "cli/session.h"

const char *const build_phase_name[BUILD_PHASES] = {
	[PHASE_DECODE] = "decode", [PHASE_SYNC] = "sync", [PHASE_MODEL] = "merge, model, history",
	[PHASE_WRITE] = "history: finish",
};

static void times_begin(struct build_times *times)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (times)
		times->begun = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void times_end(struct build_times *times, enum build_phase phase)
{
	int64_t begun = times ? times->begun : 0;
	times_begin(times);
	if (times)
		times->spent[phase] += times->begun - begun;
}

int load_traces(struct load *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err)
{
	*l = (struct load){ .trace = mem_new(in->specs, sizeof(struct trace *)) };
	struct trace_options options = { .workers = in->jobs, .progress = progress,
		.live_for = in->live_for };
	if (trace_load(in->spec, in->specs, &options, l->trace, &l->notes, err))
		return -1;
	l->traces = in->specs;
	for (size_t i = 0; times && i < l->traces; i++)
		times->events += trace_info(l->trace[i])->events;
	times_end(times, PHASE_DECODE);
	in->sync_options.progress = progress;
	in->sync_options.workers = in->jobs;
	int rc = sync_run(l->trace, l->traces, &in->sync_options, &l->sync, &l->notes, err);
	times_end(times, PHASE_SYNC);
	return rc;
}

void load_release(struct load *l)
{
	sync_result_release(&l->sync);
	for (size_t i = 0; i < l->traces; i++)
		trace_free(l->trace[i]);
	free(l->trace);
	notes_release(&l->notes);
}

static int fill(struct history_builder *b, const char *path, struct load *l, struct input *in,
                struct progress progress, struct model_span *span, struct build_times *times, struct error *err)
{
	if (load_traces(l, in, progress, times, err))
		return -1;
	struct model_options options = { .paper_states = in->paper_states, .workers = in->jobs, .progress = progress };
	if (model_run(&l->sync, &options, b, span, &l->notes, err))
		return -1;
	times_end(times, PHASE_MODEL);
	return provenance_store(b, path, in, l->trace, &l->sync, &l->notes);
}

/* bar: NULL, or what shows the progress; it ends with the model. */
static int build(struct load *l, struct input *in, const char *path, struct progress progress,
                 struct progress_bar *bar, struct build_times *times, struct error *err)
{
	/* The output is opened first: a folder that cannot be written is better known before an hour of work. */
	struct history_builder *b = history_create(path, NULL, err);
	struct model_span span;
	times_begin(times);
	int rc = b ? fill(b, path, l, in, progress, &span, times, err) : -1;
	if (bar)
		progress_bar_end(bar);
	if (rc)
		history_abort(b);
	else
		rc = history_finish(b, span.begin, span.end, err);
	times_end(times, PHASE_WRITE);
	return rc;
}

int build_quietly(struct input *in, const char *path, struct progress progress, struct error *err)
{
	struct load l = { 0 };
	int rc = build(&l, in, path, progress, NULL, NULL, err);
	load_release(&l);
	return rc;
}

int build_history(struct input *in, const char *path, struct build_times *times, struct error *err)
{
	struct load l = { 0 };
	struct progress_bar bar;
	int rc = build(&l, in, path, progress_bar_begin(&bar), &bar, times, err);
	for (size_t i = 0; rc == 0 && i < l.notes.len; i++)
		fprintf(stderr, "stealscope: note: %s\n", l.notes.line[i]);
	load_release(&l);
	return rc;
}

/* Session files and recordings of trace-cmd are known by their names; any other file should be a history. */
bool names_history(const struct input *in)
{
	struct stat st;
	const char *dot = in->whats == 1 ? strrchr(in->what[0], '.') : NULL;
	return in->whats == 1 && !session_is_one(in->what[0]) && !(dot && strcmp(dot, ".dat") == 0) &&
	       stat(in->what[0], &st) == 0 && S_ISREG(st.st_mode);
}

int refuse_shape(const struct input *in, struct error *err)
{
	const char *option = in->host ? "--host" : in->guest.len > 0 ? "--guest" : in->live ? "--for" : in->layout ? "--layout"
	                     : in->sync ? "--sync" : in->paper_states ? "--paper-states" : NULL;
	if (!option)
		return 0;
	return error_set(err, STATUS_USAGE, "give its traces", "%s: %s is a history: how its traces were read is settled",
	                 option,
	                 in->what[0]);
}

char *user_file(const char *variable, const char *beneath_home, const char *name)
{
	const char *xdg = getenv(variable), *home = getenv("HOME");
	if (!(xdg && *xdg) && !(home && *home))
		return NULL;
	char *base = xdg && *xdg ? mem_dup(xdg) : mem_printf("%s/%s", home, beneath_home);
	char *path = mem_printf("%s/stealscope/%s", base, name);
	free(base);
	return path;
}

/* Only a single folder has a place of its own; anything else is known by a hash of all its names. */
static char *user_cache(const struct input *in, struct error *err)
{
	uint64_t h = 0xCBF29CE484222325ULL;
	for (size_t i = 0; i < in->specs; i++) {
		char *real = realpath(in->spec[i].dir, NULL);
		for (const char *s = real ? real : in->spec[i].dir; *s; s++)
			h = (h ^ (unsigned char)*s) * 0x100000001B3ULL;
		free(real);
		h = (h ^ '\n') * 0x100000001B3ULL;
	}
	char name[32];
	snprintf(name, sizeof name, "%016" PRIx64 ".steal", h);
	char *path = user_file("XDG_CACHE_HOME", ".cache", name);
	if (path)
		save_folders(path);
	else
		error_set(err, STATUS_USAGE, "give the place: stealscope index WHAT -o FILE", "nowhere to keep the history");
	return path;
}

char *cache_path(const struct input *in, struct error *err)
{
	struct stat st;
	if (in->whats == 1 && !in->host && in->guest.len == 0 && stat(in->what[0], &st) == 0 && S_ISDIR(st.st_mode) &&
	    access(in->what[0], W_OK) == 0)
		return mem_printf("%s/stealscope.steal", in->what[0]);
	return user_cache(in, err);
}

/* 1: the cache fits; 0: it has to be built; -1: error. */
static int cache_fits(const char *path, const struct input *in, struct error *err)
{
	if (access(path, F_OK) != 0)
		return 0;
	char why[512];
	struct error damage = ERROR_INIT;
	struct history *h = history_open(path, &damage);
	if (!h) {
		fprintf(stderr, "stealscope: indexing again: %s\n", damage.text);
		return 0;
	}
	int stale = provenance_stale(h, in, why, sizeof why, err);
	history_close(h);
	if (stale == 1)
		fprintf(stderr, "stealscope: indexing again: %s: %s\n", path, why);
	return stale < 0 ? -1 : !stale;
}


struct history *open_what(struct input *in, struct error *err)
{
	if (names_history(in))
		return refuse_shape(in, err) ? NULL : history_open(in->what[0], err);
	if (input_resolve(in, err))
		return NULL;
	char *path = cache_path(in, err);
	int fits = path ? cache_fits(path, in, err) : -1;
	struct history *h = NULL;
	if (fits == 1 || (fits == 0 && build_history(in, path, NULL, err) == 0))
		h = history_open(path, err);
	free(path);
	return h;
}

struct history *open_named(char *what, struct error *err)
{
	struct input in = { .what = &what, .whats = 1 };
	struct history *h = open_what(&in, err);
	input_release(&in);
	return h;
}

int close_what(struct history *h, int rc, struct error *err)
{
	if (h && rc == 0)
		rc = history_damage(h, err);
	history_close(h);
	return rc;
}
