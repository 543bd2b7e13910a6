/* Threads that decode.  They take tasks, largest first; a thread that needs what its reader made for one thread takes an
 * idle one, or has another made. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "trace/load.h"

struct desk {
	struct recorder recorder;
	struct load *load;
	uint64_t counted;  /* bytes of the task that were reported */
};

static int at(struct outlet *o, uint64_t bytes)
{
	struct desk *d = (struct desk *)o;  /* the outlet is the first member of its first member */
	if (bytes > d->counted) {
		atomic_fetch_add_explicit(&d->load->bytes, bytes - d->counted, memory_order_relaxed);
		d->counted = bytes;
	}
	if (!load_is_over(d->load))
		return 0;
	return error_set(o->err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
}

static const struct outlet_ops ops = {
	.put = recorder_put, .covers = recorder_covers, .damaged = recorder_damaged, .at = at,
};

static void put_idle(struct load *l, struct source *s, void *entered)
{
	pthread_mutex_lock(&l->lock);
	*ARRAY_PUSH(s->idle, s->idles, s->idles_cap) = entered;
	pthread_mutex_unlock(&l->lock);
}

static void *get_idle(struct load *l, struct source *s, struct error *err)
{
	void *entered = NULL;
	pthread_mutex_lock(&l->lock);
	if (s->idles)
		entered = s->idle[--s->idles];
	pthread_mutex_unlock(&l->lock);
	return entered ? entered : s->reader->enter(s, err);
}

static int decode_task(void *arg, size_t i)
{
	struct load *l = arg;
	struct task *t = &l->task[l->order[l->apart + i]];
	struct desk d = { .load = l };
	void *entered = get_idle(l, t->source, &t->err);
	t->status = -1;
	if (!entered)
		return -1;
	recorder_open(&d.recorder, &ops, l->store, task_add(t), &t->err);
	d.recorder.outlet.only = t->source->only;
	t->status = t->source->reader->decode(entered, &t->stretch, &d.recorder.outlet);
	put_idle(l, t->source, entered);
	t->faults = d.recorder.outlet.faults;
	if (recorder_close(&d.recorder))
		t->status = -1;
	if (d.counted < t->bytes)
		atomic_fetch_add(&l->bytes, t->bytes - d.counted);
	return t->status < 0 ? -1 : 0;
}

int work_tasks(struct load *l, struct error *err)
{
	parallel_run(&(struct parallel){ .workers = l->workers, .task = decode_task, .watch = load_goes_on, .arg = l },
	             l->ordered - l->apart);
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
