#include "base/ordered_jobs.h"

#include <pthread.h>

#include "base/base.h"
#include "base/parallel.h"

enum { HELPERS_MAX = 2 };  /* most jobs, and most helper threads */

struct ordered_jobs {
	pthread_t thread[HELPERS_MAX];
	unsigned threads;
	pthread_mutex_t lock;    /* protects the members below and all jobs; not held while a step runs */
	pthread_cond_t allowed;  /* signalled when a job gets steps to run, and at the end */
	pthread_cond_t done;     /* signalled when a step has run */
	struct job *job[HELPERS_MAX];
	size_t count;
	bool ended;
};

static size_t remaining_steps(const struct job *job)
{
	return job->busy || job->ended || job->allowed < job->done ? 0 : job->allowed - job->done;
}

static bool has_many_steps(const struct job *job)
{
	return remaining_steps(job) > 0 && remaining_steps(job) >= job->plenty;
}

/* Returns the idle job with most steps left; NULL: no job has any. */
static struct job *choose_job(const struct ordered_jobs *jobs)
{
	struct job *best = NULL;
	for (size_t i = 0; i < jobs->count; i++)
		if (remaining_steps(jobs->job[i]) > (best ? remaining_steps(best) : 0))
			best = jobs->job[i];
	return best;
}

/* Chooses the next job of a helper thread. Prefers the job of its last step, which is in the cache, if that has many
 * steps left or no other job has. */
static struct job *next_job(const struct ordered_jobs *jobs, struct job *last)
{
	struct job *best = choose_job(jobs);
	for (size_t i = 0; i < jobs->count && best; i++)
		if (jobs->job[i] == last && remaining_steps(last) > 0 && (has_many_steps(last) || !has_many_steps(best)))
			return last;
	return best;
}

/* Runs one step. Called with the lock held; releases it during the step. */
static void run_step(struct ordered_jobs *jobs, struct job *job)
{
	struct error err = ERROR_INIT;
	job->busy = true;
	pthread_mutex_unlock(&jobs->lock);
	const int status = job->step(job->arg, job->done, &err);
	pthread_mutex_lock(&jobs->lock);
	job->busy = false;
	job->done += status >= 0;
	job->ended = status <= 0;
	job->status = status < 0 ? status : 0;
	if (status < 0)
		job->err = err;
}

static void *helper_thread(void *arg)
{
	struct ordered_jobs *jobs = arg;
	struct job *last = NULL;
	pthread_mutex_lock(&jobs->lock);
	while (!jobs->ended) {
		struct job *job = next_job(jobs, last);
		if (job) {
			last = job;
			run_step(jobs, job);
			pthread_cond_signal(&jobs->done);
		} else {
			pthread_cond_wait(&jobs->allowed, &jobs->lock);
		}
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

struct ordered_jobs *ordered_jobs_begin(unsigned workers)
{
	struct ordered_jobs *jobs = mem_new(1, sizeof *jobs);
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->allowed, NULL);
	pthread_cond_init(&jobs->done, NULL);
	while (jobs->threads < HELPERS_MAX && jobs->threads + 1 < workers &&
	       parallel_thread(&jobs->thread[jobs->threads], helper_thread, jobs) == 0)
		jobs->threads++;
	return jobs;
}

bool ordered_jobs_have_threads(const struct ordered_jobs *jobs)
{
	return jobs->threads > 0;
}

void ordered_jobs_end(struct ordered_jobs *jobs)
{
	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->ended = true;
	pthread_cond_broadcast(&jobs->allowed);
	pthread_mutex_unlock(&jobs->lock);
	for (unsigned i = 0; i < jobs->threads; i++)
		pthread_join(jobs->thread[i], NULL);
	pthread_cond_destroy(&jobs->done);
	pthread_cond_destroy(&jobs->allowed);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}

void ordered_jobs_add(struct ordered_jobs *jobs, struct job *job)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->job[jobs->count++] = job;
	if (remaining_steps(job) > 0)
		pthread_cond_signal(&jobs->allowed);
	pthread_mutex_unlock(&jobs->lock);
}

void ordered_jobs_remove(struct ordered_jobs *jobs, struct job *job)
{
	pthread_mutex_lock(&jobs->lock);
	job->ended = true;
	while (job->busy)
		pthread_cond_wait(&jobs->done, &jobs->lock);
	size_t i = 0;
	while (jobs->job[i] != job)
		i++;
	jobs->job[i] = jobs->job[--jobs->count];
	pthread_mutex_unlock(&jobs->lock);
}

int ordered_jobs_until(struct ordered_jobs *jobs, struct job *job, size_t allowed, size_t done, struct error *err)
{
	pthread_mutex_lock(&jobs->lock);
	job->allowed = allowed;
	while (job->done < done && !job->ended) {
		struct job *mine = remaining_steps(job) > 0 ? job : choose_job(jobs);
		if (mine)
			run_step(jobs, mine);
		else
			pthread_cond_wait(&jobs->done, &jobs->lock);
	}
	if (remaining_steps(job) >= job->plenty)
		pthread_cond_signal(&jobs->allowed);
	const int status = job->done >= done ? 1 : job->status;
	if (status < 0 && err)
		*err = job->err;
	pthread_mutex_unlock(&jobs->lock);
	return status;
}
