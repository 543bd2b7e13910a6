/* Reading ahead: one thread makes batches while the caller uses those that were made before.
 *
 * Batches come in the order in which they were made, so the caller sees the same whether a thread makes them or, with one
 * worker, the caller itself.  At most AHEAD_BATCHES of them exist at a time.  Cost: a lock per batch. */
#ifndef STEALSCOPE_BASE_AHEAD_H
#define STEALSCOPE_BASE_AHEAD_H

#include <stddef.h>

#include "base/error.h"

enum { AHEAD_BATCHES = 32 };  /* of some 100 us: together as long as a thread may wait for its CPU */

struct ahead;

/* make() fills a batch of so many bytes: 1, 0 = this was the last one, -1.  Never by two threads at a time; what it uses
 * of `arg` is its own until ahead_end().  workers as in struct parallel. */
struct ahead *ahead_begin(unsigned workers, size_t bytes, int (*make)(void *arg, void *batch, struct error *err),
                          void *arg);
/* The next batch, valid until the following call: 1, 0 = there are no more, -1. */
int ahead_next(struct ahead *a, const void **batch, struct error *err);
void ahead_end(struct ahead *a);  /* at any time; NULL is allowed */

#endif
