/* Reading ahead: batches are made, as a chore (base/ordered_jobs.h), while the caller uses those that were made before.
 *
 * They come in the order in which they were made.  At most AHEAD_BATCHES of them exist at a time. */
#ifndef STEALSCOPE_BASE_PREFETCH_H
#define STEALSCOPE_BASE_PREFETCH_H

#include "base/ordered_jobs.h"

enum { AHEAD_BATCHES = 32 };

struct ahead;

/* make() fills a batch of so many bytes: 1, 0 = this was the last one, -1.  Never by two threads at a time; what it uses
 * of `arg` is its own until ahead_end(). */
struct ahead *ahead_begin(struct chores *chores, size_t bytes, int (*make)(void *arg, void *batch, struct error *err),
                          void *arg);
/* The next batch, valid until the following call: 1, 0 = there are no more, -1. */
int ahead_next(struct ahead *a, const void **batch, struct error *err);
void ahead_end(struct ahead *a);  /* at any time; NULL is allowed */

#endif
