/* Chores: what other threads do for one, their owner, step by step.
 *
 * The steps of a chore are done in order, one at a time, each by whoever has time: a thread of these, or the owner, who
 * does one rather than wait for one.  So nobody waits while there is anything to do; a thread that did a step goes on with
 * the same chore where nobody waits for that.  What comes out depends on the number of threads no more than on who does
 * what.  Cost: a lock per step. */
#ifndef STEALSCOPE_BASE_ORDERED_JOBS_H
#define STEALSCOPE_BASE_ORDERED_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct chore {
	/* Step `number`, counted from 0: 1, 0 = this was the last one, -1 = failed, it is over. */
	int (*step)(void *arg, size_t number, struct error *err);
	void *arg;
	size_t allowed;    /* steps that may be done by now */
	size_t plenty;     /* left to do: to wake a thread for fewer costs more than they do */
	/* private */
	size_t done;
	bool busy, over;
	int status;
	struct error err;
};

struct chores;

/* Threads for one owner who counts as a worker, too; workers as in struct parallel.  There may be none. */
struct chores *chores_begin(unsigned workers);
bool chores_have_threads(const struct chores *c);
void chores_end(struct chores *c);  /* after all of them were removed; NULL is allowed */

/* The chore is the caller's, who leaves it alone until it is removed: what its steps use is theirs until then. */
void chores_add(struct chores *c, struct chore *h);
void chores_remove(struct chores *c, struct chore *h);

/* Allows so many steps, and returns when `done` of them have been, by the owner where need be: 1; it was over before that:
 * 0, or -1 if it failed.  err may be NULL. */
int chores_until(struct chores *c, struct chore *h, size_t allowed, size_t done, struct error *err);

#endif
