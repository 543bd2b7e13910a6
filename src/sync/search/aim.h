/* Where to look first: guesses of a guest's clock, good to some 10 us (private to sync/).
 *
 * A segment of the trace is searched over the whole of the host's.  The longer the host's trace, the longer the bins
 * and the segment, so that the cost is bounded; what such a rough search finds is searched again in short bins. */
#ifndef STEALSCOPE_SYNC_AIM_H
#define STEALSCOPE_SYNC_AIM_H

#include "sync/search/coarse.h"

struct aim {
	struct segment seg;      /* that the guesses are about */
	struct guess_list list;
};

/* Where the middle of the segment lies in the trace, 0..1; how long it is, in ns, when the host's trace is short; and
 * how many offsets are told apart at most: as many bins does the host's trace have. */
struct try { double where; int64_t length, lags; };
#define LAGS_FEW (1 << 21)
#define LAGS_MANY (1 << 23)

void aim_take(const struct versus *v, const struct try *try, struct aim *out);

#endif
