/* Matches two streams of sync events of any length in bounded memory (private to sync/).
 *
 * Events are added roughly in the order of one clock. An event waits for its partner among at most MATCHER_WAITING_MAX
 * others of its machine, then it is dropped as unmatched. Pairs are thinned block by block to those that can bound a
 * line. O(1) per event. */
#pragma once

#include "base/map.h"
#include "sync/fit/pairs.h"

#define MATCHER_WAITING_MAX 65536u

enum pair_kind { PAIR_KIND_AB, PAIR_KIND_CD, PAIR_KIND_SEND, PAIR_KIND_RECEIVE, PAIR_KINDS };

struct matcher_side {
	struct map waiting[PAIR_KINDS];  /* key -> sequence number of the event, which is modulo MATCHER_WAITING_MAX its slot
	                                  * in the ring */
	struct sync_event *ring;
	uint64_t count;                    /* events put into the ring */
};

struct stream_matcher {
	struct matcher_side guest, host;
	struct pair_list pairs;            /* thinned, except for the last block */
	size_t thinned;                    /* pairs at the start of the list that are thinned */
	uint64_t matched, unmatched;
};

void stream_matcher_init(struct stream_matcher *s);
void stream_matcher_release(struct stream_matcher *s);
void stream_matcher_add(struct stream_matcher *s, bool from_host, const struct sync_event *m);
void stream_matcher_finish(struct stream_matcher *s);  /* Counts waiting events as unmatched and sorts the pairs by x. */

/* Matches all sync events of a guest and a VM, for traces with more events than a sync event set can hold. The host's
 * events are those of the threads i with selected[i] (NULL: all) and of no known thread. *clock, estimated from a
 * sample, aligns the two streams. Returns 0, or -1 with *err set. */
int stream_match_traces(const struct host_timeline *host, const struct trace *guest, const bool *selected,
                        const struct clock_map *clock, struct stream_matcher *out, struct error *err);
