#include "base/ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"

struct ahead {
	int (*make)(void *arg, void *batch, struct error *err);
	void *arg;
	unsigned char *batch;     /* `slots` of them, taken in turn */
	size_t slots, bytes;      /* bytes of one */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;     /* of what follows */
	pthread_cond_t changed;
	size_t made, used;        /* batches ever; the caller looks at number used - 1 */
	bool over, unwanted;
	int status;               /* of the batch after the last one */
	struct error err;
};

static void *slot(const struct ahead *a, size_t number)
{
	return a->batch + number % a->slots * a->bytes;
}

/* With the lock held. */
static void make_one(struct ahead *a)
{
	void *batch = slot(a, a->made);
	struct error err = ERROR_INIT;
	pthread_mutex_unlock(&a->lock);
	int status = a->make(a->arg, batch, &err);
	pthread_mutex_lock(&a->lock);
	a->made += status >= 0;
	a->over = status <= 0;
	if (status < 0) {
		a->status = status;
		a->err = err;
	}
}

static void *worker(void *arg)
{
	struct ahead *a = arg;
	pthread_mutex_lock(&a->lock);
	while (!a->over && !a->unwanted) {
		/* The one that the caller looks at is not to be made anew. */
		if (a->made - a->used + (a->used > 0) == a->slots) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		make_one(a);
		pthread_cond_signal(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct ahead *ahead_begin(unsigned workers, size_t bytes, int (*make)(void *arg, void *batch, struct error *err),
                          void *arg)
{
	struct ahead *a = mem_new(1, sizeof *a);
	*a = (struct ahead){ .make = make, .arg = arg, .slots = workers > 1 ? AHEAD_BATCHES : 1, .bytes = bytes,
		.err = ERROR_INIT };
	a->batch = mem_new(a->slots, bytes);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->threaded = workers > 1 && parallel_thread(&a->thread, worker, a) == 0;
	return a;
}

int ahead_next(struct ahead *a, const void **batch, struct error *err)
{
	pthread_mutex_lock(&a->lock);
	while (a->made == a->used && !a->over) {
		if (a->threaded)
			pthread_cond_wait(&a->changed, &a->lock);
		else
			make_one(a);
	}
	bool more = a->made > a->used;
	if (more)
		*batch = slot(a, a->used++);
	else if (a->status && err)
		*err = a->err;
	const int status = more ? 1 : a->status;
	if (a->made - a->used <= a->slots / 2)  /* to wake it for each batch costs more than the batch */
		pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	return status;
}

void ahead_end(struct ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->unwanted = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a->batch);
	free(a);
}
