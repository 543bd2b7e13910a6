#include "base/clock.h"
#include "base/parallel.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORKERS = 64, WATCH_NS = 20000000, ROOM = 16 << 20, STACK = 8 << 20 };

struct crew {
	const struct parallel *p;
	pthread_mutex_t lock;
	pthread_cond_t done;
	size_t next, tasks;
	unsigned running;
	size_t failed;   /* the first task, by number, that failed */
	int result;      /* ... and its result; 0: none */
};

/* malloc() lets the memory of a thread other than the first grow by a page at a time, each a system call that stops all
 * threads of the process, unless it is told to begin with more. */
static void give_room(void)
{
#ifdef M_TOP_PAD
	mallopt(M_TOP_PAD, ROOM);
#endif
}

static void *worker(void *arg)
{
	struct crew *c = arg;
	pthread_mutex_lock(&c->lock);
	while (c->next < c->tasks) {
		const size_t i = c->next++;
		pthread_mutex_unlock(&c->lock);
		int result = c->p->task(c->p->arg, i);
		pthread_mutex_lock(&c->lock);
		if (result && (!c->result || i < c->failed)) {
			c->result = result;
			c->failed = i;
		}
		if (result)
			c->next = c->tasks;
	}
	c->running--;
	pthread_cond_signal(&c->done);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void sleep_a_bit(struct crew *c)
{
	const struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + WATCH_NS);
	pthread_cond_timedwait(&c->done, &c->lock, &until);
}

/* Until all workers are done. */
static void watch(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->running) {
		if (!c->p->watch) {
			pthread_cond_wait(&c->done, &c->lock);
			continue;
		}
		sleep_a_bit(c);
		pthread_mutex_unlock(&c->lock);
		bool go_on = c->p->watch(c->p->arg);
		pthread_mutex_lock(&c->lock);
		if (!go_on)
			c->next = c->tasks;
	}
	pthread_mutex_unlock(&c->lock);
}

static int run_here(const struct parallel *p, size_t tasks)
{
	int result = 0;
	for (size_t i = 0; i < tasks && !result; i++) {
		if (p->watch && !p->watch(p->arg))
			break;
		result = p->task(p->arg, i);
	}
	return result;
}

int parallel_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int failed = pthread_attr_init(&attr);
	if (failed)
		return failed;
	failed = pthread_attr_setstacksize(&attr, STACK);
	if (!failed)
		failed = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return failed;
}

int parallel_run(const struct parallel *p, size_t tasks)
{
	pthread_t thread[MOST_WORKERS];
	struct crew c = { .p = p, .tasks = tasks };
	unsigned n = p->workers < MOST_WORKERS ? p->workers : MOST_WORKERS, started = 0;
	n = n < tasks ? n : (unsigned)tasks;
	if (n == 0 || (n == 1 && !p->watch))
		return run_here(p, tasks);
	give_room();
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.done, NULL);
	pthread_mutex_lock(&c.lock);
	while (started < n && parallel_thread(&thread[started], worker, &c) == 0)
		started++;
	c.running = started;
	pthread_mutex_unlock(&c.lock);
	if (started)
		watch(&c);
	else
		c.result = run_here(p, tasks);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_cond_destroy(&c.done);
	pthread_mutex_destroy(&c.lock);
	return c.result;
}

unsigned parallel_workers(unsigned wanted)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = wanted ? wanted : cores > 1 ? (unsigned)cores : 1;
	return n < MOST_WORKERS ? n : MOST_WORKERS;
}
