#include "sync/search/step_check.h"

#include <stdlib.h>

#include "sync/fit/error_bounds.h"
#include "sync/search/confidence_range.h"

#define SAMPLE_POINTS 8  /* intervals between the times at which the bounds of two clocks are compared */

static int64_t width_at_middle(const struct clock_map *clock, const struct activity *activity)
{
	return clock_map_error_width(clock, activity->begin + (activity->end - activity->begin) / 2);
}

/* Drops the error bounds in an interval at one end of the trace. */
static void mark_unknown(struct clock_candidate *h, const struct activity *all, struct ns_interval at)
{
	const int64_t from = at.from <= all->begin ? at.to + 1 : all->begin, to = at.to >= all->end ? at.from - 1 : all->end;
	h->unverified = h->unverified || !clock_map_cut(&h->clock, from, to);
}

/* Returns the width of the bounds of both clocks together, in the part's middle, ns; INT64_MAX: a clock has no bounds. */
static int64_t joint_width_at_middle(const struct clock_map *a, const struct clock_map *b, const struct activity *activity)
{
	const int64_t t = activity->begin + (activity->end - activity->begin) / 2;
	int64_t low[2], high[2];
	if (!clock_map_bounds(a, t, &low[0], &high[0]) || !clock_map_bounds(b, t, &low[1], &high[1]))
		return INT64_MAX;
	return (high[0] > high[1] ? high[0] : high[1]) - (low[0] < low[1] ? low[0] : low[1]);
}

/* Checks one of the outer thirds. Another clock that fits it may have held there and in the middle third (`held`). */
static void check_third(const struct clock_candidate *found, const struct evidence *evidence, bool last,
                        struct clock_candidate *h)
{
	const int64_t begin = evidence->activity->begin, end = evidence->activity->end, third = (end - begin) / 3;
	const struct ns_interval checked = { last ? end - third : begin, last ? end : begin + third };
	const struct ns_interval held = { last ? begin + third : begin, last ? end : end - third };
	struct activity activity = activity_view(evidence->activity, checked);
	const struct evidence part = { evidence->host, evidence->vm, &activity };
	struct clock_candidate own, wide;
	clock_candidate_copy(&own, found);
	clock_candidate_test(&own, &part);
	clock_candidate_init_around(&wide, found, &activity, 0, AMBIGUITY_NS);
	clock_candidate_test(&wide, &part);
	const bool chance = found->clock.segment[0].quality == SYNC_ACCURATE && own.nats < PART_EVIDENCE_MIN_NATS;
	const bool splits = wide.clock.segments > found->clock.segments;
	const bool is_better = wide.outside < own.outside;  /* another line has fewer events outside guest mode */
	const bool differs = splits || is_better ||
		(wide.ambiguous > 0 && width_at_middle(&wide.clock, &activity) > 11 * width_at_middle(&own.clock, &activity) / 10);
	const bool single = found->clock.segments == 1 && !splits;
	if (chance)
		mark_unknown(h, evidence->activity, checked);
	if (differs && !(single && error_bounds_join(&h->clock.segment[0], &wide.clock, held, AMBIGUITY_NS)))
		mark_unknown(h, evidence->activity, held);
	for (size_t i = 0; i < h->clock.segments && (differs || chance); i++)
		h->clock.segment[i].quality = SYNC_APPROXIMATE;
	clock_candidate_release(&own);
	clock_candidate_release(&wide);
	activity_view_end(&activity);
}

/* Returns true if the bounds of the clock touch the bounds `edges`: clocks beyond these may fit as well. */
static bool touches_bounds_at(const struct clock_map *clock, const struct clock_map *edges, int64_t t)
{
	int64_t low[2], high[2];
	return !clock_map_bounds(clock, t, &low[0], &high[0]) || !clock_map_bounds(edges, t, &low[1], &high[1])
	       || low[0] <= low[1] || high[0] >= high[1];
}

/* Returns true if the bounds touch in the part's middle; all: or at its ends. */
static bool touches_bounds(const struct clock_map *clock, const struct clock_map *edges, const struct activity *activity,
                           bool all)
{
	return touches_bounds_at(clock, edges, activity->begin + (activity->end - activity->begin) / 2)
	       || (all && (touches_bounds_at(clock, edges, activity->begin) || touches_bounds_at(clock, edges, activity->end)));
}

/* A part of the trace to check, the interval in which another clock may have held, and whether the estimated clock is
 * ACCURATE. */
struct end_check { struct ns_interval checked, held; bool sure; };

/* Finds the clocks within `tolerance` ns of the estimated clock that fit the part's events. Returns false if clocks
 * at that limit fit as well, or if the clocks are not one line; *out then contains all clocks within the tolerance. */
static bool find_clocks_around(const struct clock_candidate *found, const struct evidence *part, int64_t tolerance,
                               bool all, struct clock_candidate *out)
{
	struct clock_candidate any;
	clock_candidate_init_around(&any, found, part->activity, 0, tolerance);
	clock_candidate_copy(out, &any);
	clock_candidate_test(out, part);
	const bool is_one = out->clock.segments == 1 && out->outside <= clock_candidate_allowed_violations(found)
	                    && !touches_bounds(&out->clock, &any.clock, part->activity, all);
	if (!is_one) {
		clock_candidate_release(out);
		*out = any;
	} else {
		clock_candidate_release(&any);
	}
	return is_one;
}

/* Returns true if the clock shifted by `shift` ns has too many events outside guest mode. */
static bool is_shift_excluded(const struct clock_candidate *found, const struct evidence *part, int64_t shift)
{
	struct clock_candidate h;
	clock_candidate_init_around(&h, found, part->activity, shift, 1);
	clock_candidate_count(&h, part);
	clock_candidate_release(&h);
	return h.outside > clock_candidate_allowed_violations(found);
}

/* Calls find_clocks_around() with a tolerance that doubles up to `most`, until the clocks are one line; all: or until
 * the clocks at both limits do not fit, even if those between them are ambiguous. Returns false if the limit is reached
 * first. */
static bool find_clocks_within(const struct clock_candidate *found, const struct evidence *part, int64_t most, bool all,
                               int64_t *tolerance, struct clock_candidate *out)
{
	for (;; *tolerance *= 2) {
		const bool is_one = find_clocks_around(found, part, *tolerance, all, out);
		const bool ends = is_one || (all && is_shift_excluded(found, part, -*tolerance) &&
		                             is_shift_excluded(found, part, *tolerance));
		if (ends || *tolerance >= most)
			return ends;
		clock_candidate_release(out);
	}
}

/* Limits *wide to clocks with the estimated clock's rate, within its error bounds: a clock keeps its rate at a
 * step. Returns false if there are no such clocks. */
static bool limit_to_rate(const struct clock_candidate *found, const struct activity *activity,
                          struct clock_candidate *wide)
{
	const int64_t tolerance = width_at_middle(&found->clock, activity) / 2;
	struct clock_point low[SAMPLE_POINTS + 1], high[SAMPLE_POINTS + 1];
	int64_t least = INT64_MIN, most = INT64_MAX;
	for (int i = 0; i <= SAMPLE_POINTS; i++) {
		const int64_t t = activity->begin + (activity->end - activity->begin) / SAMPLE_POINTS * i,
			line = clock_map_at(&found->clock, t);
		low[i].guest = high[i].guest = t;
		if (!clock_map_bounds(&wide->clock, t, &low[i].host, &high[i].host))
			return false;
		least = low[i].host - line > least ? low[i].host - line : least;
		most = high[i].host - line < most ? high[i].host - line : most;
	}
	if (least > most)
		return false;
	clock_candidate_release(wide);
	clock_candidate_init_around(wide, found, activity, least + (most - least) / 2, (most - least) / 2 + 1 + tolerance);
	for (int i = 0; i <= SAMPLE_POINTS; i++) {
		int64_t lowest, highest;
		clock_map_bounds(&wide->clock, low[i].guest, &lowest, &highest);
		low[i].host = lowest > low[i].host ? lowest : low[i].host;
		high[i].host = highest < high[i].host ? highest : high[i].host;
	}
	error_bounds_splice(&wide->clock.segment[0].low, low, SAMPLE_POINTS + 1);
	error_bounds_splice(&wide->clock.segment[0].high, high, SAMPLE_POINTS + 1);
	return true;
}

/* Widens the error bounds to include all clocks that fit the part. If clocks at the search limit fit, clocks beyond it
 * may fit as well, and the bounds are dropped. */
static void check_end(const struct clock_candidate *found, const struct evidence *evidence, const struct end_check *e,
                      struct clock_candidate *h)
{
	struct activity activity = activity_view(evidence->activity, e->checked);
	const struct evidence part = { evidence->host, evidence->vm, &activity };
	struct clock_candidate own, wide;
	int64_t tolerance = AMBIGUITY_NS;
	clock_candidate_copy(&own, found);
	clock_candidate_test(&own, &part);
	bool is_one = find_clocks_within(found, &part, END_SEARCH_MAX_NS, !e->sure, &tolerance, &wide);
	if (e->sure && is_one)
		is_one = limit_to_rate(found, &activity, &wide);
	/* A part's bounds are always wider than those of the whole trace; for an ACCURATE clock, only more than twice
	 * the width is significant. */
	const bool wider = !e->sure || !is_one
	                   || joint_width_at_middle(&wide.clock, &found->clock, &activity) >
	                      2 * width_at_middle(&found->clock, &activity);
	const bool may_differ = wider && own.inside + own.outside > 0;
	if (may_differ && (!is_one || !error_bounds_join(&h->clock.segment[0], &wide.clock, e->held, tolerance)))
		mark_unknown(h, evidence->activity, e->held);
	clock_candidate_release(&own);
	clock_candidate_release(&wide);
	activity_view_end(&activity);
}

/* Checks both ends of the trace: another clock may have held before each cut, up to the next cut, and after each cut,
 * starting at the previous cut. For an ACCURATE clock only cuts in the outer thirds are used. */
static void check_ends(const struct clock_candidate *found, const struct evidence *evidence, struct clock_candidate *h)
{
	static const int cut[] = { 0, 6, 9, 13, 20, 30, 44, 56, 70, 80, 87, 91, 94, 100 };  /* percent of the trace */
	const int64_t begin = evidence->activity->begin, end = evidence->activity->end;
	const bool sure = h->clock.segment[0].quality == SYNC_ACCURATE;
	const int last = sure ? 33 : 100;  /* percent of the trace that are checked, from each end */
	int64_t at[sizeof cut / sizeof *cut];
	const size_t n = sizeof cut / sizeof *cut;
	for (size_t i = 0; i < n; i++)
		at[i] = begin + (int64_t)((double)(end - begin) * cut[i] / 100);
	for (size_t i = 1; i + 1 < n; i++) {
		if (!h->unverified && cut[i] <= last)
			check_end(found, evidence, &(struct end_check){ { begin, at[i] }, { begin, at[i + 1] }, sure }, h);
		if (!h->unverified && cut[i] >= 100 - last)
			check_end(found, evidence, &(struct end_check){ { at[i], end }, { at[i - 1], end }, sure }, h);
	}
	h->clock.segment[0].quality = h->unverified ? SYNC_APPROXIMATE : h->clock.segment[0].quality;
}

/* Returns the distance from the segment's line at the interval's ends, ns, if the clock had the rate of another
 * segment. A step changes a clock's time, not its rate, so the rate of any segment may be right. */
static int64_t drift_uncertainty(const struct clock_map *clock, size_t i, struct ns_interval at)
{
	int64_t most = 0;
	for (size_t k = 0; k < clock->segments; k++) {
		const int64_t turn = llabs(clock->segment[k].line.drift - clock->segment[i].line.drift);
		most = turn > most ? turn : most;
	}
	return (int64_t)((double)most / (double)(INT64_C(1) << 60) * (double)(at.to - at.from) / 2) + 1;
}

/* Widens the bounds of a segment to any clock that fits its events at the rate of any segment: the bounds derive from an
 * estimate and are no proof. */
static void check_segment(struct clock_candidate *h, size_t i, const struct evidence *evidence)
{
	struct clock_segment *p = &h->clock.segment[i];
	const bool is_last = i + 1 == h->clock.segments;
	const struct ns_interval at = { i == 0 ? evidence->activity->begin : p->ambiguous_to,
		is_last ? evidence->activity->end : p[1].ambiguous_from - 1 };
	struct activity activity = activity_view(evidence->activity, at);
	const struct evidence part = { evidence->host, evidence->vm, &activity };
	struct clock_candidate one = { .clock = { .segment = p, .segments = 1 } }, wide;
	int64_t tolerance = AMBIGUITY_NS + drift_uncertainty(&h->clock, i, at);
	clock_candidate_count(&one, &part);
	const bool ends = find_clocks_within(&one, &part, END_SEARCH_MAX_NS, true, &tolerance, &wide);
	const bool joined = ends && error_bounds_join(p, &wide.clock, at, tolerance);
	if (!joined && (i == 0 || is_last))
		mark_unknown(h, evidence->activity,
		             (struct ns_interval){ i == 0 ? at.from : p->ambiguous_from, is_last ? at.to : p[1].ambiguous_to });
	h->unverified = h->unverified || (!joined && i > 0 && !is_last);
	clock_candidate_release(&wide);
	activity_view_end(&activity);
}

/* Drops the bounds at the ends where there are too few events to verify the clock. */
static void cut_unverified_ends(struct clock_candidate *h, const struct clock_map *found, const struct evidence *evidence)
{
	const struct activity *activity = evidence->activity;
	struct ns_interval known;
	if (!confidence_range_find(evidence, found, PART_EVIDENCE_MIN_NATS, &known)) {
		h->unverified = true;
		return;
	}
	mark_unknown(h, activity, (struct ns_interval){ activity->begin, known.from - 1 });
	mark_unknown(h, activity, (struct ns_interval){ known.to + 1, activity->end });
}

void step_check_line(struct clock_candidate *h, const struct evidence *evidence)
{
	struct clock_candidate found;
	if (h->clock.segments == 0)
		return;
	clock_candidate_copy(&found, h);
	check_third(&found, evidence, false, h);
	check_third(&found, evidence, true, h);
	if (h->clock.segments == 1 && !h->unverified)
		check_ends(&found, evidence, h);
	cut_unverified_ends(h, &found.clock, evidence);
	clock_candidate_release(&found);
}

void step_check_segments(struct clock_candidate *h, const struct evidence *evidence)
{
	struct clock_candidate found;
	clock_candidate_copy(&found, h);
	for (size_t i = 0; i < h->clock.segments; i++)
		if (h->clock.segment[i].quality == SYNC_APPROXIMATE)
			check_segment(h, i, evidence);
	cut_unverified_ends(h, &found.clock, evidence);
	clock_candidate_release(&found);
}
