/* Loading: decodes the traces of all machines, each byte once.
 *
 * Steps: find the locations and open them, which yields their streams; cut the streams into tasks; decode the tasks of
 * isolated readers in child processes, then the others in threads; assemble the results. */
#include "trace/load.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/parallel.h"

#define FILES_NEEDED 20  /* files that a reader's library may need in addition to our open files */
#define MEMORY_DEFAULT ((size_t)32 << 20)  /* default size of the records in memory, bytes; further records are stored in
                                            * a file */

void load_report_progress(struct load *l)
{
	const struct progress *p = &l->options->progress;
	uint64_t done = atomic_load(&l->bytes);
	if (p->tick && p->tick(p->arg, "reading traces", done < l->total ? done : l->total, l->total))
		atomic_store(&l->cancelled, true);
}

/* Returns true if loading must restart with one worker: the string table is full, and the workers' order must not
 * determine which strings are dropped. Live traces never restart, because they can be read only once. */
static bool must_restart_alone(const struct load *l)
{
	bool full = false;
	for (size_t i = 0; i < l->machines && l->workers > 1; i++)
		full |= l->machine[i].trace && atomic_load_explicit(&l->machine[i].trace->names.full, memory_order_relaxed);
	for (size_t i = 0; i < l->sources && full; i++)
		full = !l->source[i]->reader->endless;
	return full;
}

bool load_must_stop(const struct load *l)
{
	return atomic_load_explicit(&l->cancelled, memory_order_relaxed) || must_restart_alone(l);
}

bool load_continues(void *arg)
{
	struct load *l = arg;
	load_report_progress(l);
	return !load_must_stop(l);
}

/* Checks that enough files can be opened. The libraries do not report this failure; they report damage instead, or
 * crash. */
static int check_file_limit(struct error *err)
{
	int file[FILES_NEEDED], status = 0;
	size_t n = 0;
	while (n < FILES_NEEDED && !status) {
		file[n] = open("/", O_PATH | O_CLOEXEC);  /* exists in a root without /dev */
		if (file[n] < 0)
			status = error_system(err, NULL, "reading traces: cannot open %d files", FILES_NEEDED);
		else
			n++;
	}
	while (n)
		close(file[--n]);
	return status;
}

bool source_skip(struct source *s, const struct error *err)
{
	if (err->status != STATUS_INPUT || !s->skippable)
		return false;
	if (!s->is_skipped)
		note_add(&s->notes, TRACE_SKIPPED, NULL, err->text, err->remedy);
	s->is_skipped = true;
	return true;
}

/* Result of opening a source in parallel; set by the thread that opened it. */
struct open_result {
	bool is_done;
	int status;
	struct error why;
};

static int call_open(struct source *s, struct error *why)
{
	return s->reader->open ? s->reader->open(s, why) : 0;
}

static int open_in_parallel(void *arg, size_t i)
{
	const struct load *l = arg;
	struct open_result *opened = &l->open_results[i];
	opened->why = (struct error)ERROR_INIT;
	opened->is_done = l->source[i]->reader->opens_in_parallel && !load_must_stop(l);
	if (opened->is_done)
		opened->status = call_open(l->source[i], &opened->why);
	return 0;
}

static int open_source(struct load *l, struct source *s, const struct open_result *opened, struct error *err)
{
	struct error why = opened->is_done ? opened->why : (struct error)ERROR_INIT;
	int status = opened->is_done ? opened->status : call_open(s, &why);
	load_report_progress(l);
	if (status && source_skip(s, &why))
		status = 0;
	else if (status && err)
		*err = why;
	if (!status && atomic_load(&l->cancelled))
		status = error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	return status;
}

/* Opens the sources, in parallel if their readers allow it: with many guests this is a large part of the reading time. */
static int open_sources(struct load *l, struct error *err)
{
	int status = 0;
	l->open_results = mem_new(l->sources + 1, sizeof *l->open_results);
	parallel_run(&(struct parallel){ .workers = l->workers, .task = open_in_parallel, .watch = load_continues, .arg = l },
	             l->sources);
	for (size_t i = 0; i < l->sources && !status; i++)
		status = open_source(l, l->source[i], &l->open_results[i], err);
	free(l->open_results);
	l->open_results = NULL;
	return status;
}

/* Fails if all sources were skipped as unreadable. */
static int check_any_source_read(const struct load *l, struct error *err)
{
	for (size_t i = 0; i < l->sources; i++)
		if (!l->source[i]->is_skipped)
			return 0;
	return !l->sources ? 0 :
		error_repeat(err, STATUS_INPUT, "copy the traces again", "none of the traces can be read: %s",
		             l->source[0]->notes.item[l->source[0]->notes.len - 1].text);
}

static int run_load(struct load *l, const struct trace_spec *spec, struct error *err)
{
	if (machines_open(l, spec, err) || check_file_limit(err))
		return -1;
	for (size_t i = 0; i < l->sources; i++)
		l->total += l->source[i]->bytes;
	if (open_sources(l, err))
		return -1;
	partition_streams(l);
	if (decode_isolated_tasks(l, err) || decode_in_threads(l, err))
		return -1;
	machines_describe(l);
	return check_any_source_read(l, err);
}

static void source_release(struct source *s)
{
	for (size_t i = 0; i < s->idles; i++)
		s->reader->leave(s->idle[i]);
	free(s->idle);
	if (s->reader->close)
		s->reader->close(s);
	for (size_t i = 0; i < s->streams; i++) {
		free(s->stream[i].name);
		free(s->stream[i].cut);
	}
	free(s->stream);
	free(s->location);
	free(s->trace);
	free(s->truncation);
	notes_release(&s->notes);
	free(s);
}

static void load_release(struct load *l)
{
	for (size_t i = 0; i < l->tasks; i++)
		task_release_results(&l->task[i], l->store);
	for (size_t i = 0; i < l->sources; i++)
		source_release(l->source[i]);
	machines_release(l);
	free(l->source);
	free(l->task);
	free(l->order);
	store_unref(l->store);
	pthread_mutex_destroy(&l->lock);
}

int trace_load(const struct trace_spec *spec, size_t n, const struct trace_options *options, struct trace **out,
               struct notes *notes, struct error *err)
{
	static const struct trace_options defaults = { 0 };
	struct load l = { .options = options ? options : &defaults, .machines = n };
	l.workers = parallel_workers(l.options->workers);
	pthread_mutex_init(&l.lock, NULL);
	l.machine = mem_new(n + 1, sizeof *l.machine);
	l.store = store_new(l.options->memory ? l.options->memory : MEMORY_DEFAULT, l.options->spill_dir, err);
	int status = l.store ? run_load(&l, spec, err) : -1;
	if (l.store && !atomic_load(&l.cancelled) && must_restart_alone(&l)) {
		struct trace_options single_worker = *l.options;
		single_worker.workers = 1;
		load_release(&l);
		if (err)
			*err = (struct error)ERROR_INIT;
		return trace_load(spec, n, &single_worker, out, notes, err);
	}
	for (size_t i = 0; i < n && !status; i++)
		status = assemble_trace(&l, i, notes, err);
	for (size_t i = 0; i < n && !status; i++) {
		out[i] = l.machine[i].trace;
		l.machine[i].trace = NULL;
	}
	load_release(&l);
	return status;
}
