#include "ui/core/async_query.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "ui/terminal/signals.h"

#define STEP_NS 40000000      /* time slice of a query, ns; after each slice the worker looks for more urgent questions */
#define WORKERS 2
#define PROGRESS_INTERVAL_NS 250000000  /* shortest time between two progress reports, ns */

struct async_queries {
	pthread_mutex_t lock;
	pthread_cond_t work, answered;
	int pipe[2];
	bool quit;
	struct worker {
		struct async_queries *a;
		enum urgency first, last;  /* questions that this worker answers */
		pthread_t thread;
		struct query *query;       /* runs a step of this query; NULL: waits for work */
		struct question *question;   /* its question; NULL: was dropped, then the worker owns the query */
	} worker[WORKERS];
	struct question *asked;        /* list, the earliest first */
	int64_t last_report;
};

/* ---- Worker threads -------------------------------------------------------------------------------------------- */

static struct question *most_urgent(const struct worker *worker)
{
	struct question *best = NULL;
	for (struct question *q = worker->a->asked; q; q = q->next)
		if (q->phase == PENDING && q->urgency >= worker->first && q->urgency <= worker->last &&
		    (!best || q->urgency < best->urgency))
			best = q;
	return best;
}

static void report_progress(struct async_queries *a)
{
	a->last_report = now_ns();
	async_wake_viewer(a);
}

/* Stores a step's result: done as returned by query_step(). */
static void end_step(struct worker *worker, int done, const struct error *err, int64_t cost)
{
	struct async_queries *a = worker->a;
	struct question *q = worker->question;
	q->cost += cost;
	if (done == 0) {
		q->progress = (unsigned)(100 * query_done(q->query));
		if (now_ns() - a->last_report > PROGRESS_INTERVAL_NS)
			report_progress(a);
		return;
	}
	q->phase = done > 0 ? ANSWERED : FAILED;
	q->err = *err;
	report_progress(a);
}

/* Runs one step of the question. Called with the lock held; releases the lock during the step. */
static void run_step(struct worker *worker, struct question *q)
{
	struct async_queries *a = worker->a;
	struct error err = ERROR_INIT;
	worker->question = q;
	worker->query = q->query;
	pthread_mutex_unlock(&a->lock);
	const int64_t began = now_ns();
	const int done = query_step(worker->query, STEP_NS, &err);
	pthread_mutex_lock(&a->lock);
	if (worker->question)
		end_step(worker, done, &err, now_ns() - began + 1);
	else
		query_close(worker->query);
	worker->question = NULL;
	worker->query = NULL;
	pthread_cond_broadcast(&a->answered);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct async_queries *a = worker->a;
	pthread_mutex_lock(&a->lock);
	while (!a->quit) {
		struct question *q = most_urgent(worker);
		if (q)
			run_step(worker, q);
		else
			pthread_cond_wait(&a->work, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

bool async_report(struct async_queries *a, unsigned progress)
{
	bool is_dropped = false;
	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *worker = &a->worker[i];
		if (!worker->query || !pthread_equal(worker->thread, pthread_self()))
			continue;
		is_dropped = !worker->question;
		if (worker->question)
			worker->question->progress = progress;
	}
	pthread_mutex_unlock(&a->lock);
	return is_dropped;
}

/* ---- The viewer's side -------------------------------------------------------------------------------------------- */

/* Starts the workers. Returns the number of workers that were started; < WORKERS: error. */
static unsigned start_workers(struct async_queries *a)
{
	static const enum urgency first[WORKERS + 1] = { ASK_SENTENCE, ASK_LONG, URGENCIES };
	unsigned n = 0;
	pthread_mutex_lock(&a->lock);
	for (; n < WORKERS; n++) {
		a->worker[n] = (struct worker){ .a = a, .first = first[n], .last = first[n + 1] - 1 };
		if (signals_start_thread(&a->worker[n].thread, worker_main, &a->worker[n]) < 0)
			break;
	}
	pthread_mutex_unlock(&a->lock);
	return n;
}

static void stop_workers(struct async_queries *a, unsigned n)
{
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(a->worker[i].thread, NULL);
}

static void release_queries(struct async_queries *a)
{
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->lock);
	close(a->pipe[0]);
	close(a->pipe[1]);
	free(a);
}

struct async_queries *async_open(void)
{
	struct async_queries *a = mem_new(1, sizeof *a);
	pthread_condattr_t monotonic;
	if (pipe2(a->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	const unsigned started = start_workers(a);
	if (started < WORKERS) {
		stop_workers(a, started);
		release_queries(a);
		return NULL;
	}
	return a;
}

/* Forgets a question. A worker that runs its query closes the query after the step. */
static void forget(struct async_queries *a, struct question *q)
{
	struct question **at = &a->asked;
	if (q->phase == NOT_ASKED)
		return;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	for (unsigned i = 0; i < WORKERS; i++) {
		if (a->worker[i].question != q)
			continue;
		a->worker[i].question = NULL;
		q->query = NULL;
	}
	query_close(q->query);
	*q = (struct question){ .phase = NOT_ASKED };
}

void async_ask(struct async_queries *a, struct question *q, enum urgency urgency, struct query *query,
               const struct error *err)
{
	pthread_mutex_lock(&a->lock);
	struct question **at = &a->asked;
	forget(a, q);
	*q = (struct question){ .phase = query ? PENDING : FAILED, .urgency = urgency, .query = query };
	if (!query)
		q->err = *err;
	while (*at)
		at = &(*at)->next;
	*at = q;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
}

void async_drop(struct async_queries *a, struct question *q)
{
	pthread_mutex_lock(&a->lock);
	forget(a, q);
	pthread_mutex_unlock(&a->lock);
}

void async_drain(struct async_queries *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->asked)
		forget(a, a->asked);
	for (unsigned i = 0; i < WORKERS; i++)
		while (a->worker[i].query)
			pthread_cond_wait(&a->answered, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void async_close(struct async_queries *a)
{
	if (!a)
		return;
	async_drain(a);
	stop_workers(a, WORKERS);
	release_queries(a);
}

bool async_is_pending(struct async_queries *a, const struct question *q)
{
	pthread_mutex_lock(&a->lock);
	const bool asked = q->phase != NOT_ASKED;
	pthread_mutex_unlock(&a->lock);
	return asked;
}

bool async_is_busy(struct async_queries *a)
{
	pthread_mutex_lock(&a->lock);
	const bool busy = a->asked != NULL;
	pthread_mutex_unlock(&a->lock);
	return busy;
}

int async_take(struct async_queries *a, struct question *q, struct query **query, int64_t *cost, struct error *err)
{
	pthread_mutex_lock(&a->lock);
	const int got = q->phase == ANSWERED ? 1 : q->phase == FAILED ? -1 : 0;
	if (got < 0)
		*err = q->err;
	if (got && cost)
		*cost = q->cost;
	if (got > 0) {
		*query = q->query;
		q->query = NULL;
	}
	if (got)
		forget(a, q);
	pthread_mutex_unlock(&a->lock);
	return got;
}

unsigned async_progress(struct async_queries *a, const struct question *q)
{
	pthread_mutex_lock(&a->lock);
	unsigned progress = q->progress;
	pthread_mutex_unlock(&a->lock);
	return progress;
}

void async_wait(struct async_queries *a, const struct question *q, int64_t ns)
{
	const struct timespec until = timespec_of(now_ns() + (ns > 0 ? ns : 0));
	pthread_mutex_lock(&a->lock);
	while (q->phase == PENDING && pthread_cond_timedwait(&a->answered, &a->lock, &until) == 0)
		;
	pthread_mutex_unlock(&a->lock);
}

void async_wake_viewer(struct async_queries *a)
{
	char c = 0;
	if (write(a->pipe[1], &c, 1) < 0)
		return;  /* the pipe is full and thus already readable */
}

int async_fd(const struct async_queries *a)
{
	return a->pipe[0];
}

void async_clear_wakeup(struct async_queries *a)
{
	char bytes[64];
	while (read(a->pipe[0], bytes, sizeof bytes) == sizeof bytes)
		;
}
