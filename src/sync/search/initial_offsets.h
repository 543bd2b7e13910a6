/* Where to look first: guesses of a guest's clock, good to some 10 us (private to sync/).
 *
 * A segment of the trace is searched over the whole of the host's.  The longer the host's trace, the longer the bins
 * and the segment, so that the cost is bounded; what such a rough search finds is searched again in short bins. */
#ifndef STEALSCOPE_SYNC_SEARCH_INITIAL_OFFSETS_H
#define STEALSCOPE_SYNC_SEARCH_INITIAL_OFFSETS_H

#include "sync/search/cross_correlation.h"

#define SEGMENT_NS 4000000000LL  /* one that says enough, mostly */
#define LAGS_FEW (1 << 21)
#define LAGS_MANY (4 * LAGS_FEW)

/* where: of the middle of the segment in the trace, 0..1; length: ns, when the host's trace is short; lags: how many
 * offsets are told apart at most: as many bins does the host's trace have. */
void guess_clocks(const struct seen *seen, double where, int64_t length, int64_t lags, struct guess_list *out);

#endif
