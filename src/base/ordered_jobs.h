/* Ordered jobs: helper threads and one owner thread run the steps of jobs.
 *
 * The steps of a job run in order, one at a time, in any thread. An owner that needs a result runs a step itself instead
 * of waiting, so no thread waits while there is work. A thread that ran a step continues with the same job unless the
 * owner waits for another one. Results do not depend on the thread count. Cost: one lock per step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct job {
	/* Runs step `number`, starting at 0. Returns 1 to continue, 0 after the last step, -1 on failure (the job ends). */
	int (*step)(void *arg, size_t number, struct error *err);
	void *arg;
	size_t allowed;          /* steps that may run; the owner raises it */
	size_t plenty;           /* fewest runnable steps for which a helper is woken: for fewer, waking costs
	                          * more than the work */
	/* private: number of steps that have run, and result */
	size_t done;
	bool busy, ended;
	int status;
	struct error err;
};

struct ordered_jobs;

/* Starts helper threads for one owner. workers: number of threads with the owner (see struct parallel); with 1 there is
 * no helper. */
struct ordered_jobs *ordered_jobs_begin(unsigned workers);
bool ordered_jobs_have_threads(const struct ordered_jobs *jobs);
void ordered_jobs_end(struct ordered_jobs *jobs);  /* call it after all jobs were removed; NULL is allowed */

/* Adds a job. Until it is removed, the caller must not access the job or the data that its steps use. */
void ordered_jobs_add(struct ordered_jobs *jobs, struct job *job);
void ordered_jobs_remove(struct ordered_jobs *jobs, struct job *job);

/* Raises the allowed step count, and returns when `done` steps have run, if necessary in this thread. Returns 1; 0
 * if the job ended earlier; -1 if it failed. err may be NULL. */
int ordered_jobs_until(struct ordered_jobs *jobs, struct job *job, size_t allowed, size_t done, struct error *err);
