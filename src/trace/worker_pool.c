/* Decoding threads. The threads take tasks in order, largest first. Each reuses an idle decoding state of the source, or
 * lets the reader make a new one. */
#include "base/base.h"
#include "base/parallel.h"
#include "trace/load.h"

struct worker_sink {
	struct recorder recorder;
	struct load *load;
	uint64_t reported;  /* bytes of the task already reported as progress */
};

static int report_progress(struct event_sink *o, uint64_t bytes)
{
	struct worker_sink *d = (struct worker_sink *)o;  /* event_sink is the first member of recorder, and recorder the
	                                                   * first member of worker_sink */
	if (bytes > d->reported) {
		atomic_fetch_add_explicit(&d->load->bytes, bytes - d->reported, memory_order_relaxed);
		d->reported = bytes;
	}
	if (!load_must_stop(d->load))
		return 0;
	return error_set(o->err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
}

static const struct event_sink_ops ops = {
	.put = recorder_put,
	.add_coverage = recorder_add_coverage,
	.report_damage = recorder_report_damage,
	.report_progress = report_progress,
};

static void release_decoder(struct load *l, struct source *s, void *state)
{
	pthread_mutex_lock(&l->lock);
	*ARRAY_PUSH(s->idle, s->idles, s->idles_cap) = state;
	pthread_mutex_unlock(&l->lock);
}

static void *acquire_decoder(struct load *l, struct source *s, struct error *err)
{
	void *state = NULL;
	pthread_mutex_lock(&l->lock);
	if (s->idles)
		state = s->idle[--s->idles];
	pthread_mutex_unlock(&l->lock);
	return state ? state : s->reader->enter(s, err);
}

static int decode_task(void *arg, size_t i)
{
	struct load *l = arg;
	struct task *t = &l->task[l->order[l->isolated + i]];
	struct worker_sink d = { .load = l };
	void *state = acquire_decoder(l, t->source, &t->err);
	t->status = -1;
	if (!state)
		return -1;
	recorder_open(&d.recorder, &ops, l->store, task_add_stream(t), &t->err);
	d.recorder.event_sink.window = t->source->window;
	t->status = t->source->reader->decode(state, &t->stream_part, &d.recorder.event_sink);
	release_decoder(l, t->source, state);
	t->faults = d.recorder.event_sink.faults;
	if (recorder_close(&d.recorder))
		t->status = -1;
	if (d.reported < t->bytes)
		atomic_fetch_add(&l->bytes, t->bytes - d.reported);
	return t->status < 0 ? -1 : 0;
}

int decode_in_threads(struct load *l, struct error *err)
{
	parallel_run(&(struct parallel){ .workers = l->workers, .task = decode_task, .watch = load_continues, .arg = l },
	             l->ordered - l->isolated);
	if (atomic_load(&l->cancelled))
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	for (size_t i = 0; i < l->tasks; i++) {
		if (l->task[i].status < 0) {
			*err = l->task[i].err;
			return -1;
		}
	}
	return 0;
}
