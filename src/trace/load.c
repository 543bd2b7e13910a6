/* Loading: all machines' traces, each byte of them decoded once.
 *
 * Their places are found and opened, which tells their streams; the streams are cut into tasks; children take those of
 * readers that trust their input, then threads take the others; what came of the tasks is put together. */
#include "trace/load.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parallel.h"

#define FEWEST_FILES 20  /* that a reader's library may want open at a time, beside ours */
#define MEMORY_DEFAULT ((size_t)32 << 20)  /* bytes of records; the rest is read back from a file */

void load_tick(struct load *l)
{
	const struct progress *p = &l->options->progress;
	uint64_t done = atomic_load(&l->bytes);
	if (p->tick && p->tick(p->arg, "reading traces", done < l->total ? done : l->total, l->total))
		atomic_store(&l->cancelled, true);
}

/* Which of too many names are left out must not depend on which worker comes first: one begins anew, alone.  Live traces
 * are read but once. */
static bool must_be_one(const struct load *l)
{
	bool full = false;
	for (size_t i = 0; i < l->machines && l->workers > 1; i++)
		full |= l->machine[i].trace && atomic_load_explicit(&l->machine[i].trace->names.full, memory_order_relaxed);
	for (size_t i = 0; i < l->sources && full; i++)
		full = !l->source[i]->reader->endless;
	return full;
}

bool load_is_over(const struct load *l)
{
	return atomic_load_explicit(&l->cancelled, memory_order_relaxed) || must_be_one(l);
}

bool load_goes_on(void *arg)
{
	struct load *l = arg;
	load_tick(l);
	return !load_is_over(l);
}

/* Libraries do not say that they could open no more files: they take it for damage, or crash. */
static int check_files(struct error *err)
{
	int file[FEWEST_FILES], status = 0;
	size_t n = 0;
	while (n < FEWEST_FILES && !status) {
		file[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (file[n] < 0)
			status = error_system(err, NULL, "reading traces: cannot open %d files", FEWEST_FILES);
		else
			n++;
	}
	while (n)
		close(file[--n]);
	return status;
}

bool source_leave_out(struct source *s, const struct error *err)
{
	if (err->status != STATUS_INPUT || !s->beside || s->options->reader != READER_AUTO)
		return false;
	if (!s->left_out)
		notes_add(&s->notes, NOTE_DAMAGE, NULL, "%s; left out (%s)", err->text, err->mend);
	s->left_out = true;
	return true;
}

/* What came of opening a source, by the reader that claimed it, beside others. */
struct opened {
	bool is_done;
	int status;
	struct error why;
};

static int open_one(struct source *s, struct error *why)
{
	return s->reader->open ? s->reader->open(s, why) : 0;
}

static int open_beside(void *arg, size_t i)
{
	const struct load *l = arg;
	struct opened *opened = &l->opened[i];
	opened->why = (struct error)ERROR_INIT;
	opened->is_done = l->source[i]->reader->opens_beside && !load_is_over(l);
	if (opened->is_done)
		opened->status = open_one(l->source[i], &opened->why);
	return 0;
}

static int open_source(struct load *l, struct source *s, const struct opened *opened, struct error *err)
{
	struct error why = opened->is_done ? opened->why : (struct error)ERROR_INIT;
	int status = opened->is_done ? opened->status : open_one(s, &why);
	while (status == OPEN_OTHER) {
		if (s->reader->close)
			s->reader->close(s);
		s->reader = s->reader->fallback;
		status = open_one(s, &why);
	}
	load_tick(l);
	if (status && source_leave_out(s, &why))
		status = 0;
	else if (status && err)
		*err = why;
	if (!status && atomic_load(&l->cancelled))
		status = error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	return status;
}

/* Where readers can, side by side: with many guests it is a good part of reading their traces. */
static int open_sources(struct load *l, struct error *err)
{
	int status = 0;
	l->opened = mem_new(l->sources + 1, sizeof *l->opened);
	parallel_run(&(struct parallel){ .workers = l->workers, .task = open_beside, .watch = load_goes_on, .arg = l },
	             l->sources);
	for (size_t i = 0; i < l->sources && !status; i++)
		status = open_source(l, l->source[i], &l->opened[i], err);
	free(l->opened);
	l->opened = NULL;
	return status;
}

/* Of several sources, all are damaged. */
static int check_any(const struct load *l, struct error *err)
{
	for (size_t i = 0; i < l->sources; i++)
		if (!l->source[i]->left_out)
			return 0;
	return !l->sources ? 0 :
		error_set(err, STATUS_INPUT, "copy the traces again", "none of the traces can be read: %s",
		          l->source[0]->notes.item[l->source[0]->notes.len - 1].text);
}

static int run(struct load *l, const struct trace_spec *spec, struct error *err)
{
	if (machines_open(l, spec, err) || check_files(err))
		return -1;
	for (size_t i = 0; i < l->sources; i++)
		l->total += l->source[i]->bytes;
	if (open_sources(l, err))
		return -1;
	plan_tasks(l);
	if (apart_tasks(l, err) || work_tasks(l, err))
		return -1;
	plan_again(l);
	if (apart_tasks(l, err) || work_tasks(l, err))
		return -1;
	machines_describe(l);
	return check_any(l, err);
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
	free(s->place);
	free(s->trace);
	free(s->cut);
	notes_release(&s->notes);
	free(s);
}

static void release(struct load *l)
{
	for (size_t i = 0; i < l->tasks; i++)
		task_forget(&l->task[i], l->store);
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
	int status = l.store ? run(&l, spec, err) : -1;
	if (l.store && !atomic_load(&l.cancelled) && must_be_one(&l)) {
		struct trace_options alone = *l.options;
		alone.workers = 1;
		release(&l);
		if (err)
			*err = (struct error)ERROR_INIT;
		return trace_load(spec, n, &alone, out, notes, err);
	}
	for (size_t i = 0; i < n && !status; i++)
		status = deliver(&l, i, notes, err);
	for (size_t i = 0; i < n && !status; i++) {
		out[i] = l.machine[i].trace;
		l.machine[i].trace = NULL;
	}
	release(&l);
	return status;
}
