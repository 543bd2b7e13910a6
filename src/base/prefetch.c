#include "base/prefetch.h"

#include "base/base.h"

struct prefetch {
	struct ordered_jobs *ordered_jobs;
	struct job job;
	int (*make)(void *arg, void *batch, struct error *err);
	void *arg;
	unsigned char *batch;    /* `slots` batches, used as a ring */
	size_t slots, bytes;     /* batch count; size of one batch */
	size_t used;             /* batches that the caller has received; it uses the last one */
};

static void *batch_slot(const struct prefetch *a, size_t number)
{
	return a->batch + number % a->slots * a->bytes;
}

static int make_one(void *arg, size_t number, struct error *err)
{
	const struct prefetch *a = arg;
	return a->make(a->arg, batch_slot(a, number), err);
}

struct prefetch *prefetch_begin(struct ordered_jobs *ordered_jobs, size_t bytes,
                                int (*make)(void *arg, void *batch, struct error *err), void *arg)
{
	struct prefetch *a = mem_new(1, sizeof *a);
	const size_t slots = ordered_jobs_have_threads(ordered_jobs) ? PREFETCH_BATCHES : 1;
	*a = (struct prefetch){
		.ordered_jobs = ordered_jobs, .make = make, .arg = arg, .slots = slots, .bytes = bytes,
		.batch = mem_new(slots, bytes),
		.job = { .step = make_one, .arg = a, .allowed = slots, .plenty = slots / 2, .err = ERROR_INIT },
	};
	ordered_jobs_add(ordered_jobs, &a->job);
	return a;
}

int prefetch_next(struct prefetch *a, const void **batch, struct error *err)
{
	const int got = ordered_jobs_until(a->ordered_jobs, &a->job, a->used + a->slots, a->used + 1, err);
	if (got > 0)
		*batch = batch_slot(a, a->used++);
	return got;
}

void prefetch_end(struct prefetch *a)
{
	if (!a)
		return;
	ordered_jobs_remove(a->ordered_jobs, &a->job);
	free(a->batch);
	free(a);
}
