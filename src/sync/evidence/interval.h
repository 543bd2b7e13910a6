/* Intervals of time, and sorted lists of them (private to sync/). */
#pragma once

#include "base/base.h"

struct ns_interval { int64_t from, to; };  /* ns, both included */

/* Returns the index of the first of n sorted, disjoint intervals that ends at or after t; n: none does. */
size_t interval_find(const struct ns_interval *s, size_t n, int64_t t);
/* Appends [from, to], which must not begin before the last interval, or extends the last interval if both touch. Does
 * nothing if from > to. */
void interval_append(struct ns_interval **array, size_t *len, size_t *cap, int64_t from, int64_t to);
