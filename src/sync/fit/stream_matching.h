/* Pairs out of two streams of ends, in bounded memory whatever their number (private to sync/).
 *
 * Ends are offered roughly in the order of one clock; an end waits for its partner among at most PAIRING_WAITING others
 * of its machine, then it is purged and counts as unmatched.  Pairs are thinned out block by block to those that can
 * bound a line.  O(1) per end. */
#ifndef STEALSCOPE_SYNC_FIT_STREAM_MATCHING_H
#define STEALSCOPE_SYNC_FIT_STREAM_MATCHING_H

#include "base/map.h"
#include "sync/fit/pairs.h"

#define PAIRING_WAITING 65536u

enum pairing_kind { PAIRING_AB, PAIRING_CD, PAIRING_SEND, PAIRING_RECEIVE, PAIRING_KINDS };

struct pairing_side {
	struct map waiting[PAIRING_KINDS];  /* key -> number of the end, modulo PAIRING_WAITING its place in the ring */
	struct sync_mark *ring;
	uint64_t count;                    /* ends that have waited so far */
};

struct pairing {
	struct pairing_side guest, host;
	struct pair_list pairs;            /* thinned out, but for the last block */
	size_t thinned;                    /* pairs before this one are */
	uint64_t matched, unmatched;
};

void pairing_init(struct pairing *s);
void pairing_release(struct pairing *s);
void pairing_offer(struct pairing *s, bool from_host, const struct sync_mark *m);
void pairing_finish(struct pairing *s);  /* what still waits is unmatched; pairs are complete and in order of x */

/* All pairs of a guest in a VM, when there are more than a mark list holds.  Of the host's ends those of the threads i with
 * mine[i], and of none; mine NULL: all.  The clock is that of a sample and puts the two traces side by side. */
int pairing_traces(const struct host_view *host, const struct trace *guest, const bool *mine,
                  const struct clock_map *clock, struct pairing *out, struct error *err);

#endif
