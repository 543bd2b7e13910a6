#include "base/parallel.h"

#include <malloc.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

enum { MAX_WORKERS = 64, WATCH_NS = 20000000, HEAP_PADDING = 16 << 20, STACK_BYTES = 8 << 20 };

struct crew {
	const struct parallel *p;
	pthread_mutex_t lock;
	pthread_cond_t done;
	size_t next, tasks;
	unsigned running;
	size_t failed;           /* lowest number of a failed task */
	int result;              /* the failed task's result; 0: no task failed */
};

/* Makes malloc() grow the memory of threads in larger steps than a page: each system call that grows it stops all
 * threads of the process. */
static void set_heap_padding(void)
{
#ifdef M_TOP_PAD
	mallopt(M_TOP_PAD, HEAP_PADDING);
#endif
}

static void *worker_thread(void *arg)
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

static void wait_for_worker(struct crew *c)
{
	const struct timespec until = timespec_of(clock_ns(CLOCK_MONOTONIC) + WATCH_NS);
	pthread_cond_timedwait(&c->done, &c->lock, &until);
}

/* Waits for all workers, and calls the watch function every WATCH_NS. */
static void wait_for_all(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->running) {
		if (!c->p->watch) {
			pthread_cond_wait(&c->done, &c->lock);
			continue;
		}
		wait_for_worker(c);
		pthread_mutex_unlock(&c->lock);
		bool go_on = c->p->watch(c->p->arg);
		pthread_mutex_lock(&c->lock);
		if (!go_on)
			c->next = c->tasks;
	}
	pthread_mutex_unlock(&c->lock);
}

static int run_in_caller(const struct parallel *p, size_t tasks)
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
	failed = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!failed)
		failed = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return failed;
}

int parallel_run(const struct parallel *p, size_t tasks)
{
	pthread_t thread[MAX_WORKERS];
	pthread_condattr_t monotonic;
	struct crew c = { .p = p, .tasks = tasks };
	unsigned n = p->workers < MAX_WORKERS ? p->workers : MAX_WORKERS, started = 0;
	n = n < tasks ? n : (unsigned)tasks;
	if (n == 0 || (n == 1 && !p->watch))
		return run_in_caller(p, tasks);
	set_heap_padding();
	pthread_mutex_init(&c.lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c.done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_lock(&c.lock);
	while (started < n && parallel_thread(&thread[started], worker_thread, &c) == 0)
		started++;
	c.running = started;
	pthread_mutex_unlock(&c.lock);
	if (started)
		wait_for_all(&c);
	else
		c.result = run_in_caller(p, tasks);
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
	return n < MAX_WORKERS ? n : MAX_WORKERS;
}
