#include "base/ordered_jobs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"

enum { MOST = 2 };  /* chores, and threads */

struct chores {
	pthread_t thread[MOST];
	unsigned threads;
	pthread_mutex_t lock;       /* of what follows, and of the chores but for their steps */
	pthread_cond_t allowed;     /* there is plenty to do */
	pthread_cond_t done;        /* a step was */
	struct chore *chore[MOST];
	size_t chores;
	bool over;
};

static size_t left_of(const struct chore *h)
{
	return h->busy || h->over || h->allowed < h->done ? 0 : h->allowed - h->done;
}

static bool is_plenty(const struct chore *h)
{
	return left_of(h) > 0 && left_of(h) >= h->plenty;
}

/* The one that nobody is at with the most to do; NULL: there is nothing. */
static struct chore *choose(const struct chores *c)
{
	struct chore *best = NULL;
	for (size_t i = 0; i < c->chores; i++)
		if (left_of(c->chore[i]) > (best ? left_of(best) : 0))
			best = c->chore[i];
	return best;
}

/* For who did a step of `last`: that one again, whose memory is at hand, while it has plenty to do, or no other has. */
static struct chore *go_on(const struct chores *c, struct chore *last)
{
	struct chore *best = choose(c);
	for (size_t i = 0; i < c->chores && best; i++)
		if (c->chore[i] == last && left_of(last) > 0 && (is_plenty(last) || !is_plenty(best)))
			return last;
	return best;
}

/* With the lock held, but for the step itself. */
static void do_step(struct chores *c, struct chore *h)
{
	struct error err = ERROR_INIT;
	h->busy = true;
	pthread_mutex_unlock(&c->lock);
	const int status = h->step(h->arg, h->done, &err);
	pthread_mutex_lock(&c->lock);
	h->busy = false;
	h->done += status >= 0;
	h->over = status <= 0;
	h->status = status < 0 ? status : 0;
	if (status < 0)
		h->err = err;
}

static void *help(void *arg)
{
	struct chores *c = arg;
	struct chore *last = NULL;
	pthread_mutex_lock(&c->lock);
	while (!c->over) {
		struct chore *h = go_on(c, last);
		if (h) {
			last = h;
			do_step(c, h);
			pthread_cond_signal(&c->done);
		} else {
			pthread_cond_wait(&c->allowed, &c->lock);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct chores *chores_begin(unsigned workers)
{
	struct chores *c = mem_new(1, sizeof *c);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->allowed, NULL);
	pthread_cond_init(&c->done, NULL);
	while (c->threads < MOST && c->threads + 1 < workers && parallel_thread(&c->thread[c->threads], help, c) == 0)
		c->threads++;
	return c;
}

bool chores_have_threads(const struct chores *c)
{
	return c->threads > 0;
}

void chores_end(struct chores *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->allowed);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->threads; i++)
		pthread_join(c->thread[i], NULL);
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->allowed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void chores_add(struct chores *c, struct chore *h)
{
	pthread_mutex_lock(&c->lock);
	c->chore[c->chores++] = h;
	if (left_of(h) > 0)
		pthread_cond_signal(&c->allowed);
	pthread_mutex_unlock(&c->lock);
}

void chores_remove(struct chores *c, struct chore *h)
{
	pthread_mutex_lock(&c->lock);
	h->over = true;
	while (h->busy)
		pthread_cond_wait(&c->done, &c->lock);
	size_t i = 0;
	while (c->chore[i] != h)
		i++;
	c->chore[i] = c->chore[--c->chores];
	pthread_mutex_unlock(&c->lock);
}

int chores_until(struct chores *c, struct chore *h, size_t allowed, size_t done, struct error *err)
{
	pthread_mutex_lock(&c->lock);
	h->allowed = allowed;
	while (h->done < done && !h->over) {
		struct chore *mine = left_of(h) > 0 ? h : choose(c);
		if (mine)
			do_step(c, mine);
		else
			pthread_cond_wait(&c->done, &c->lock);
	}
	if (left_of(h) >= h->plenty)
		pthread_cond_signal(&c->allowed);
	const int status = h->done >= done ? 1 : h->status;
	if (status < 0 && err)
		*err = h->err;
	pthread_mutex_unlock(&c->lock);
	return status;
}
