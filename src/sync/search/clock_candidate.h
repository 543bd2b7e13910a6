/* A candidate for a guest's clock, assuming that the guest runs in a given VM (private to sync/).
 *
 * A candidate starts with wide error bounds, which containment narrows: if the possible host times of an event overlap
 * exactly one window of its vCPU, the event lies in that window, after its VM entry and before its VM exit. These two
 * facts are pairs like those of sync events. They are added to the same hull, narrow the bounds, and so determine the
 * windows of more events, until nothing changes. Events that may lie in several windows are ignored; so if the bounds
 * include the true clock at the start, they always do. Each round is linear in the event count. */
#pragma once

#include "sync/fit/piecewise_fit.h"
#include "sync/search/cross_correlation.h"

struct clock_candidate {
	struct clock_map clock;    /* no segments: the clock cannot be distinguished from chance */
	uint64_t pairs, inliers;   /* pairs used for narrowing, and pairs that the others do not contradict */
	uint64_t ambiguous;        /* events that may lie in several windows */
	double nats;               /* evidence against chance, nats: sum of -ln(duty cycle) over the windows that contain
	                            * events; the segments' smallest value */
	double nats_max;           /* the same sum over all segments if no event were outside */
	uint64_t inside, outside;  /* events inside and outside guest mode */
	bool unverified;           /* a clock step of unknown size cannot be excluded: the error bounds are void */
	enum sync_reason reason;   /* why the clock is not proven; SYNC_REASON_NONE: it is proven */
	bool no_split;             /* with a reason: splitting the trace into parts would not help either */
};

/* Initializes a candidate from an offset estimate: bounds wider than its tolerance. */
void clock_candidate_init(struct clock_candidate *h, const struct offset_estimate *g, struct ns_interval interval);
/* Initializes a candidate with the clock of another candidate shifted by `shift` ns, and bounds at `tolerance` ns on
 * both sides. */
void clock_candidate_init_around(struct clock_candidate *h, const struct clock_candidate *like,
                                 const struct activity *activity, int64_t shift, int64_t tolerance);
void clock_candidate_copy(struct clock_candidate *to, const struct clock_candidate *from);
void clock_candidate_release(struct clock_candidate *h);

/* By-products of narrowing: the pairs that the clock was fitted to, and the pairs of the guest's events under that clock
 * (empty: not computed). */
struct narrowing { struct pair_list fitted, walked; };
void narrowing_release(struct narrowing *n);

/* Narrows the clock in place. extra: additional pairs; NULL: none. *n may come from an earlier call for the clock that
 * *h starts with, or have no pairs: its memory and walked pairs are reused. */
void clock_candidate_narrow(struct clock_candidate *h, const struct evidence *evidence, const struct pair_list *extra,
                            struct narrowing *n);
/* Widens the error bounds to the bounds that pairs of the events under this clock yield within a short time: the last
 * stage of an estimation. fit_widen_bounds() does the same for a clock that clock_candidate_narrow() just returned. */
void clock_candidate_widen_bounds(struct clock_map *clock, const struct evidence *evidence, const struct pair_list *extra);

/* Narrows by the activity alone, starting from the current bounds, and counts the events inside and outside. */
void clock_candidate_test(struct clock_candidate *h, const struct evidence *evidence);
void clock_candidate_count(struct clock_candidate *h, const struct evidence *evidence);
double clock_candidate_inside_share(const struct clock_candidate *h);  /* inside / (inside + outside), 0..1 */
/* Returns the number of events outside up to which another clock counts as equally good. */
static inline uint64_t clock_candidate_allowed_violations(const struct clock_candidate *h)
{
	return VIOLATIONS_FACTOR * h->outside + VIOLATIONS_EXTRA;
}

/* Returns true if the two clocks differ by more than DISTINCT_NS at the start, middle or end of the interval. */
bool clock_candidate_distinct(const struct clock_candidate *a, const struct clock_candidate *b,
                              struct ns_interval interval);

/* Returns the clock step count; the rate's changes are not counted. */
size_t clock_candidate_steps(const struct clock_candidate *h);

/* Searches for another clock within AMBIGUITY_NS that fits as well. If there is one, widens the error bounds to include
 * both and sets the quality to APPROXIMATE. */
void clock_candidate_check_ambiguity(struct clock_candidate *h, const struct evidence *evidence);
