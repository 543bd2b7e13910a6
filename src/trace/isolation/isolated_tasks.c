/* Distributes the tasks of isolated readers to child processes. */
#include <time.h>

#include "base/base.h"
#include "trace/load.h"
#include "trace/isolation/decoder_process.h"

#define LIVE_STREAMS 256              /* expected number of streams of a live trace */
#define BYTES_PER_CHILD (4ULL << 20)  /* minimum size of the input per child, bytes: every child opens the source again */

static bool tick_files(void *arg)
{
	struct load *l = arg;
	load_report_progress(l);
	return load_must_stop(l);
}

static bool tick_live(void *arg)
{
	struct load *l = arg;
	const struct progress *p = &l->options->progress;
	const uint64_t events = atomic_load(&l->live_events);
	if (p->tick && p->tick(p->arg, "reading live traces", events, PROGRESS_OPEN))
		return true;
	if (now_ns() < l->live_until)
		return false;
	l->live_until = INT64_MAX;
	return true;
}

struct job_list {
	struct decoder_job **job;
	size_t len, cap;
};

static struct decoder_job *add_job(struct job_list *c, struct source *s)
{
	struct decoder_job *t = *ARRAY_PUSH(c->job, c->len, c->cap) = mem_new(1, sizeof *t);
	t->source = s;
	return t;
}

/* Assigns the tasks order[first .. end) of one source to jobs, one job per child: each task to the job with the fewest
 * bytes. */
static void assign_tasks(struct job_list *c, struct load *l, size_t first, size_t end)
{
	struct source *s = l->task[l->order[first]].source;
	const size_t before = c->len, max_jobs = s->bytes / BYTES_PER_CHILD + 1;
	for (size_t i = 0; i < l->workers && i < max_jobs && i < end - first; i++)
		add_job(c, s);
	for (size_t i = first; i < end; i++) {
		struct decoder_job *smallest = c->job[before];
		for (size_t k = before + 1; k < c->len; k++)
			smallest = c->job[k]->bytes < smallest->bytes ? c->job[k] : smallest;
		struct task *t = &l->task[l->order[i]];
		*ARRAY_PUSH(smallest->task, smallest->tasks, smallest->tasks_cap) = t;
		smallest->bytes += t->bytes;
	}
}

static void job_list_release(struct job_list *c)
{
	for (size_t i = 0; i < c->len; i++) {
		decoder_job_release(c->job[i]);
		free(c->job[i]);
	}
	free(c->job);
}

/* Decodes live traces first, all at the same time, because their data arrives now. */
int decode_isolated_tasks(struct load *l, struct error *err)
{
	struct job_list live = { 0 }, files = { 0 };
	size_t streams = l->ordered - l->isolated;
	for (size_t i = 0, end; i < l->isolated; i = end) {
		const struct source *s = l->task[l->order[i]].source;
		for (end = i; end < l->isolated && l->task[l->order[end]].source == s; end++)
			streams += s->streams ? 1 : LIVE_STREAMS;
		assign_tasks(s->reader->endless ? &live : &files, l, i, end);
	}
	store_expect(l->store, streams);
	l->live_until = l->options->live_for ? now_ns() + l->options->live_for : INT64_MAX;
	int status = decoder_jobs_run(live.job, live.len,
	                       &(struct decoder_run){ l->store, &l->live_events, live.len, tick_live, l }, err);
	for (size_t i = 0; i < live.len && !status && !atomic_load(&l->live_events); i++) {
		const struct source *s = live.job[i]->source;
		if (s->truncation)
			status = error_set(err, STATUS_INPUT, s->reader->remedy, "%s: %s", s->location[0]->path, s->truncation);
	}
	if (!status)
		status = decoder_jobs_run(files.job, files.len,
		                   &(struct decoder_run){ l->store, &l->bytes, l->workers, tick_files, l }, err);
	job_list_release(&live);
	job_list_release(&files);
	return status;
}
