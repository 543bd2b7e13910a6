/* Activity of a guest: its events' times, by CPU (private to sync/).
 *
 * If both neighbours of an event on its CPU are closer than the shortest gap between guest-mode windows, all three lie
 * in the same window; the event adds no bound and is skipped. At most ACTIVITY_MAX times are stored; for longer traces
 * only those in sampled slices of time (time_sampling.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "sync/evidence/interval.h"
#include "sync/evidence/work_budget.h"
#include "trace/trace.h"

struct activity_cpu {
	int64_t *ts;
	size_t len, cap;
};

struct activity {
	struct activity_cpu *cpu;
	unsigned cpus;
	size_t len;           /* times of all CPUs together */
	bool has_loss;        /* events were lost, so the absence of events proves nothing */
	unsigned slice_bits;  /* one slice in 2^slice_bits is stored; 0: all */
	int64_t begin, end;   /* first and last time of the guest's trace, ns */
	const struct trace_info *info;
	struct work_budget *budget;  /* of the search that uses this activity, borrowed; NULL: unlimited */
};

/* Loads a guest's activity. min_gap_ns: shortest gap between guest-mode windows; stop: see struct host_timeline. */
int activity_load(struct activity *a, const struct trace *guest, int64_t min_gap_ns, const atomic_bool *stop,
                  struct error *err);
void activity_release(struct activity *a);
/* Returns the index of the first time >= t. */
size_t activity_find(const struct activity_cpu *c, int64_t t);

/* Returns the activity within an interval; the view borrows the times of `a`. activity_view_end() releases it. */
struct activity activity_view(const struct activity *a, struct ns_interval seg);
void activity_view_end(struct activity *view);
size_t activity_count(const struct activity *a, struct ns_interval seg);
