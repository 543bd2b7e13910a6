/* Sync pairs: sync events of guest and host with equal keys, matched one to one (private to sync/). */
#pragma once

#include "sync/confidence.h"
#include "sync/evidence/host_timeline.h"
#include "sync/fit/hull.h"

/* A message between guest and host: x guest ns, y host ns. */
struct pair {
	int64_t x, y;
	enum hull_side side;
	int32_t cpu;       /* guest CPU; -1: not bound to a CPU (network) */
	int32_t thread;    /* the host thread's index; -1: unknown */
	uint8_t rejected;  /* the fit's verdict: PAIR_GOOD, PAIR_GROSS or PAIR_SUSPECT */
};

enum { PAIR_GOOD, PAIR_GROSS, PAIR_SUSPECT };

struct pair_list {
	struct pair *pair;
	size_t len, cap;
	uint64_t unmatched;  /* sync events without a unique partner */
	int64_t tolerance;   /* ns by which the fitted line may violate each pair, because the clock wanders */
};

/* Matches a guest's sync events with the host's events of the owners *vm and of owner 0 (vm NULL: of owner 0 only). A
 * key that occurs equally often on both sides is matched in order of time; otherwise it is ambiguous and skipped. The
 * result is sorted by x and reuses the memory of *out. O(n log n). */
void pairs_match(const struct sync_event_set *guest, const struct sync_event_set *host, const struct sync_event_owners *vm,
                 struct pair_list *out);
/* Adds the number of beacon events that pairs_match() left unmatched to out->unmatched; separate, because few callers
 * need it. */
void pairs_count_unmatched(const struct sync_event_set *guest, const struct sync_event_set *host,
                           const struct sync_event_owners *vm, struct pair_list *out);
void pairs_release(struct pair_list *l);

/* Sorts pairs by x, stable. O(n log r) for r runs that are already in order. */
void pairs_sort(struct pair *pair, size_t n);
