#include "model/sink_async.h"

#include "base/base.h"
#include "base/streaming_store.h"
#include "base/strtab.h"

enum { CHANGES = 2048, BATCHES = 32, CACHE_LINE = 64 };

/* Batch of changes; small, because it moves between the caches of two CPUs. */
struct change_batch {
	size_t len;
	uint64_t since; /* base of the times in the batch, ns */
	struct queued_change { uint64_t value, target; } change[CHANGES];  /* target: attribute in the low 32 bits, ns after
	                                                                    * `since` in the high 32 bits */
};

#define TIME_BASE (UINT64_C(1) << 31)    /* distance from `since` to the first change, ns: later changes may have earlier
                                          * times */

struct sink_async {
	struct history_builder *builder;  /* used by the job that writes a batch, or by the model while the queue is empty */
	struct change_batch *batch; /* ring of BATCHES batches; the model fills batch number `filled` */
	size_t filled;
	size_t written;             /* batches that are known to be written */
	struct strtab text;         /* strings that the builder has; id[i]: their ids, -1: none yet */
	int64_t *id;
	size_t ids, ids_cap;
	struct ordered_jobs *ordered_jobs;
	struct job job;
	/* Members written for each change: in a cache line that the other thread does not read. */
	_Alignas(CACHE_LINE) struct change_batch *to;  /* batch number `filled` */
	size_t len;                 /* changes in that batch */
	uint64_t since;
	char padding[CACHE_LINE];
};

/* Writes one batch. Reads the batch header only once, because the model's CPU writes it. */
static int set_batch(void *arg, size_t number, struct error *err)
{
	const struct sink_async *s = arg;
	struct history_builder *const b = s->builder;
	const struct change_batch *batch = &s->batch[number % BATCHES];
	const uint64_t since = batch->since;
	const struct queued_change *c = batch->change, *const end = c + batch->len;
	for (; c < end; c++)
		if (history_set(b, (int64_t)(since + (c->target >> 32)), (uint32_t)c->target, (int64_t)c->value, err))
			return -1;
	return 1;
}

static void close_batch(struct sink_async *s)
{
	s->to->len = s->len;
	s->to->since = s->since;
	s->len = 0;
	streaming_fence();
}

/* Queues the current batch. Returns when at most `left` batches are unwritten: 0, or -1 with *err set. */
static int queue_batch(struct sink_async *s, size_t left, struct error *err)
{
	close_batch(s);
	s->filled++;
	s->to = &s->batch[s->filled % BATCHES];
	const size_t written = s->filled > left ? s->filled - left : 0;
	const int status = ordered_jobs_until(s->ordered_jobs, &s->job, s->filled, written, err);
	if (status < 0)
		return -1;
	s->written = written;
	return 0;
}

/* Writes all queued changes; if only the current batch is left, this thread writes it. Returns 0, or -1 with *err set. */
static int write_queued(struct sink_async *s, struct error *err)
{
	if (s->written < s->filled)
		return queue_batch(s, 0, err);
	close_batch(s);
	return set_batch(s, s->filled, err) < 0 ? -1 : 0;
}

static unsigned async_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	struct sink_async *s = to;
	(void)write_queued(s, NULL);
	return history_state_set(s->builder, name, state, n);
}

static uint32_t async_attribute(void *to, const char *path, enum history_type type, unsigned set, struct error *err)
{
	struct sink_async *s = to;
	return write_queued(s, err) ? HISTORY_NONE : history_attribute(s->builder, path, type, set, err);
}

static int async_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	struct sink_async *s = to;
	if ((uint64_t)t - s->since > UINT32_MAX && queue_batch(s, BATCHES - 1, err))
		return -1;
	if (s->len == 0)
		s->since = (uint64_t)t - TIME_BASE;
	struct queued_change *c = &s->to->change[s->len++];
	store_word_streaming(&c->value, (uint64_t)value, true);
	store_word_streaming(&c->target, attr | ((uint64_t)t - s->since) << 32, true);
	return s->len == CHANGES ? queue_batch(s, BATCHES - 1, err) : 0;
}

static int64_t async_text(void *to, const char *text, struct error *err)
{
	struct sink_async *s = to;
	if (strlen(text) > STRTAB_MAX)
		return write_queued(s, err) ? -1 : history_text(s->builder, text, err);
	const uint32_t index = strtab_put(&s->text, text);
	while (s->ids <= index)
		*ARRAY_PUSH(s->id, s->ids, s->ids_cap) = -1;
	if (s->id[index] < 0 && write_queued(s, err) == 0)
		s->id[index] = history_text(s->builder, text, err);
	return s->id[index];
}

const struct model_sink_ops sink_async = {
	.state_set = async_state_set, .attribute = async_attribute, .set = async_set, .text = async_text,
};

struct sink_async *sink_async_begin(struct history_builder *b, struct ordered_jobs *ordered_jobs)
{
	struct sink_async *s = mem_cache_lines(sizeof *s);
	*s = (struct sink_async){
		.builder = b, .batch = mem_new(BATCHES, sizeof *s->batch), .ordered_jobs = ordered_jobs,
		.job = { .step = set_batch, .arg = s, .plenty = BATCHES / 2, .err = ERROR_INIT },
	};
	s->to = s->batch;
	strtab_init(&s->text);
	ordered_jobs_add(ordered_jobs, &s->job);
	return s;
}

int sink_async_end(struct sink_async *s, struct error *err)
{
	if (!s)
		return 0;
	const int status = write_queued(s, err);
	ordered_jobs_remove(s->ordered_jobs, &s->job);
	strtab_release(&s->text);
	free(s->id);
	free(s->batch);
	free(s);
	return status;
}
