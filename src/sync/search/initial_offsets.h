/* Initial estimates of a guest's clock, accurate to about 10 us (private to sync/).
 *
 * An interval of the guest's trace is searched over the whole host trace. The longer the host's trace, the longer the
 * bins and the interval, so that the cost is bounded; estimates from long bins are searched again in short bins. */
#pragma once

#include "sync/search/cross_correlation.h"

#define SEGMENT_NS 4000000000LL  /* the searched interval's length, ns; usually contains enough activity */
#define LAGS_FEW (1 << 21)
#define LAGS_MANY (4 * LAGS_FEW)

/* Fills *out. center: middle of the interval in the trace, 0..1; length: length of the interval for short host traces,
 * ns; lags: maximum offset count, which is the number of bins of the host's trace. */
void find_initial_offsets(const struct evidence *evidence, double center, int64_t length, int64_t lags,
                          struct offset_list *out);
