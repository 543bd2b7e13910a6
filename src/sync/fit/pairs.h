/* Synchronization pairs: ends with equal keys, one to one (private to sync/). */
#ifndef STEALSCOPE_SYNC_FIT_PAIRS_H
#define STEALSCOPE_SYNC_FIT_PAIRS_H

#include "sync/evidence/host_timeline.h"
#include "sync/fit/hull.h"

/* A message: x guest ns, y host ns. */
struct pair {
	int64_t x, y;
	enum hull_side side;
	int32_t cpu;     /* of the guest, -1 = not bound to one (network) */
	int32_t thread;  /* instance on the host, -1 = not known */
	uint8_t rejected; /* enum verdict of the fit, 0 = good */
};

enum { PAIR_GOOD, PAIR_GROSS, PAIR_SUSPECT };

struct pair_list {
	struct pair *pair;
	size_t len, cap;
	uint64_t unmatched;  /* ends without a partner, or with too many */
	int64_t slack;       /* ns by which the fit lets a line miss every pair, because the clock is none */
};

/* Matches a guest's ends with those of the host that are owned as *vm says, or by nobody (vm NULL: by nobody).  A key
 * that occurs equally often on both sides is matched in order of time, else it is ambiguous and left out.  The result is
 * in order of x; it takes the place, and the room, of what was in *out.  O(n log n) time. */
void pairs_match(const struct mark_list *guest, const struct mark_list *host, const struct mark_owners *vm,
                 struct pair_list *out);
/* Adds what pairs_match() of the same lists left of the beacons' ends; most that are matched need not know. */
void pairs_count_left(const struct mark_list *guest, const struct mark_list *host, const struct mark_owners *vm,
                      struct pair_list *out);
void pairs_release(struct pair_list *l);

/* Into the order of x; equal ones stay as they are.  O(n log r) for r stretches that are in order. */
void pairs_sort(struct pair *pair, size_t n);

#endif
