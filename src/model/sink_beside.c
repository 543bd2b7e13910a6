#include "model/sink_beside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/strtab.h"

enum { CHANGES = 2048, BATCHES = 32 };

struct change_batch {
	size_t len;
	struct waiting_change { int64_t t, value; uint32_t attr; } change[CHANGES];
};

struct sink_beside {
	struct history_builder *builder;  /* the thread's, while there is something in the queue */
	struct change_batch *batch;       /* BATCHES of them, taken in turn; the model fills number `made` */
	struct strtab text;               /* that the builder knows, and by which ids */
	int64_t *id;
	size_t ids, ids_cap;
	pthread_t thread;
	pthread_mutex_t lock;             /* of what follows */
	pthread_cond_t changed;
	size_t made, used;                /* batches ever */
	bool busy, over, failed;          /* busy: the thread sets number `used` */
	struct error err;                 /* why it failed */
};

/* ---- the thread */

static int set_all(struct history_builder *b, const struct change_batch *batch, struct error *err)
{
	for (size_t i = 0; i < batch->len; i++) {
		const struct waiting_change *c = &batch->change[i];
		if (history_set(b, c->t, c->attr, c->value, err))
			return -1;
	}
	return 0;
}

static void *build(void *arg)
{
	struct sink_beside *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->used == s->made && !s->over)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->used == s->made)
			break;
		s->busy = true;
		const bool failed = s->failed;
		pthread_mutex_unlock(&s->lock);
		struct error err = ERROR_INIT;
		const int status = failed ? 0 : set_all(s->builder, &s->batch[s->used % BATCHES], &err);
		pthread_mutex_lock(&s->lock);
		s->failed |= status != 0;
		if (status)
			s->err = err;
		s->used++;
		s->busy = false;
		if (s->made - s->used <= BATCHES / 2)  /* to wake it for each batch costs more than the batch */
			pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the model */

/* The batch is full: the thread may have it, and there is room for the next one. */
static int hand_over(struct sink_beside *s, struct error *err)
{
	pthread_mutex_lock(&s->lock);
	s->made++;
	if (s->made - s->used >= BATCHES / 2)  /* not for each: on few CPUs who is woken takes the waker's */
		pthread_cond_signal(&s->changed);
	while (s->made - s->used == BATCHES)
		pthread_cond_wait(&s->changed, &s->lock);
	s->batch[s->made % BATCHES].len = 0;
	const bool failed = s->failed;
	pthread_mutex_unlock(&s->lock);
	if (failed && err)
		*err = s->err;
	return failed ? -1 : 0;
}

/* Empties the queue: what the thread has not begun is set here, which takes less time than to wait for it. */
static int catch_up(struct sink_beside *s, struct error *err)
{
	pthread_mutex_lock(&s->lock);
	while (s->busy)
		pthread_cond_wait(&s->changed, &s->lock);
	for (; !s->failed && s->used < s->made; s->used++)
		s->failed = set_all(s->builder, &s->batch[s->used % BATCHES], &s->err) != 0;
	struct change_batch *last = &s->batch[s->made % BATCHES];
	if (!s->failed)
		s->failed = set_all(s->builder, last, &s->err) != 0;
	s->used = s->made;
	last->len = 0;
	const bool failed = s->failed;
	pthread_mutex_unlock(&s->lock);
	if (failed && err)
		*err = s->err;
	return failed ? -1 : 0;
}

static unsigned beside_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	struct sink_beside *s = to;
	(void)catch_up(s, NULL);
	return history_state_set(s->builder, name, state, n);
}

static uint32_t beside_attribute(void *to, const char *path, enum history_type type, unsigned set, struct error *err)
{
	struct sink_beside *s = to;
	return catch_up(s, err) ? HISTORY_NONE : history_attribute(s->builder, path, type, set, err);
}

static int beside_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	struct sink_beside *s = to;
	struct change_batch *batch = &s->batch[s->made % BATCHES];  /* only this thread changes `made` */
	batch->change[batch->len++] = (struct waiting_change){ t, value, attr };
	return batch->len == CHANGES ? hand_over(s, err) : 0;
}

static int64_t beside_text(void *to, const char *text, struct error *err)
{
	struct sink_beside *s = to;
	if (strlen(text) > STRTAB_LONGEST)
		return catch_up(s, err) ? -1 : history_text(s->builder, text, err);
	const uint32_t known = strtab_put(&s->text, text);
	while (s->ids <= known)
		*ARRAY_PUSH(s->id, s->ids, s->ids_cap) = -1;
	if (s->id[known] < 0 && catch_up(s, err) == 0)
		s->id[known] = history_text(s->builder, text, err);
	return s->id[known];
}

const struct model_sink_ops sink_beside = {
	.state_set = beside_state_set, .attribute = beside_attribute, .set = beside_set, .text = beside_text,
};

/* ---- from its beginning to its end */

static void release(struct sink_beside *s)
{
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	strtab_release(&s->text);
	free(s->id);
	free(s->batch);
	free(s);
}

struct sink_beside *sink_beside_begin(struct history_builder *b)
{
	struct sink_beside *s = mem_new(1, sizeof *s);
	*s = (struct sink_beside){ .builder = b, .batch = mem_new(BATCHES, sizeof *s->batch), .err = ERROR_INIT };
	strtab_init(&s->text);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (parallel_thread(&s->thread, build, s) == 0)
		return s;
	release(s);
	return NULL;
}

int sink_beside_end(struct sink_beside *s, struct error *err)
{
	if (!s)
		return 0;
	const int status = catch_up(s, err);
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	release(s);
	return status;
}
