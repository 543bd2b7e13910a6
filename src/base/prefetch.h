/* Prefetch: a job (base/ordered_jobs.h) fills batches in advance while the caller uses earlier ones.
 *
 * Batches arrive in the order in which they are filled. At most PREFETCH_BATCHES exist at a time. */
#pragma once

#include "base/ordered_jobs.h"

enum { PREFETCH_BATCHES = 32 };

struct prefetch;

/* Starts to fill batches. make() fills one batch of `bytes` bytes; it returns 1, 0 after the last batch, -1 on failure.
 * Calls of make() do not overlap; the data behind `arg` belongs to it until prefetch_end(). */
struct prefetch *prefetch_begin(struct ordered_jobs *ordered_jobs, size_t bytes,
                                int (*make)(void *arg, void *batch, struct error *err), void *arg);
/* Returns 1 with the next batch, valid until the next call; 0 at the end; -1 on failure. */
int prefetch_next(struct prefetch *a, const void **batch, struct error *err);
void prefetch_end(struct prefetch *a);  /* may be called before the data's end; NULL is allowed */
