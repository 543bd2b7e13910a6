#include "sync/search/search.h"

#include "base/base.h"
#include "sync/search/initial_offsets.h"
#include "sync/search/step_placement.h"
#include "sync/search/ambiguity_check.h"

#define PARTS_DEPTH 6
#define PART_MIN_NS (SEGMENT_NS / 8)
#define STEP_FIND_NS 20000000LL
#define SEARCH_STEPS_MAX (UINT64_C(1) << 34)  /* steps of work_budget.h for one guest in one VM */

/* Candidates, best first, that were tested on the same interval of the trace. */
struct clock_candidate_list {
	struct clock_candidate item[ESTIMATES_MAX];
	size_t n;
	struct ns_interval at;
	bool has_alternatives;       /* another candidate is supported by as much evidence as the best */
	bool incomplete;             /* alternatives that were not tested may exist */
};

static int by_share(const void *pa, const void *pb)
{
	const struct clock_candidate *a = pa, *b = pb;
	double sa = clock_candidate_inside_share(a), sb = clock_candidate_inside_share(b);
	if (sa != sb)
		return sa > sb ? -1 : 1;
	return a->inside > b->inside ? -1 : a->inside < b->inside;
}

/* Returns true if the candidate is about as good as the best one and differs from the first n. */
static bool is_competitive(const struct clock_candidate_list *l, size_t n, const struct clock_candidate *h)
{
	if (clock_candidate_inside_share(h) < CANDIDATE_SHARE_MIN || clock_candidate_steps(h) > 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!clock_candidate_distinct(&l->item[i], h, l->at))
			return false;
	return n == 0 || h->outside <= clock_candidate_allowed_violations(&l->item[0]);
}

/* Returns true if a candidate about as good as the best is also supported by enough evidence. */
static bool is_alternative(const struct clock_candidate *best, const struct clock_candidate *h)
{
	return h->nats >= EVIDENCE_MIN_NATS && 2 * h->inside > best->inside;
}

/* Tests all candidates on the interval and drops those that are worse than others. */
static void test_on_interval(const struct evidence *evidence, struct ns_interval interval, struct clock_candidate_list *l)
{
	struct activity view = activity_view(evidence->activity, interval);
	const struct evidence part = { evidence->host, evidence->vm, &view };
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		clock_candidate_test(&l->item[i], &part);
	activity_view_end(&view);
	ARRAY_SORT(l->item, l->n, by_share);
	l->at = interval;
	l->has_alternatives = false;
	for (size_t i = 0; i < l->n; i++) {
		struct clock_candidate h = l->item[i];
		if (!is_competitive(l, n, &h)) {
			clock_candidate_release(&h);
			continue;
		}
		l->has_alternatives = l->has_alternatives || (n > 0 && is_alternative(&l->item[0], &h));
		l->item[n++] = h;
	}
	l->n = n;
}

static bool best_passes(const struct clock_candidate_list *l)
{
	return l->n > 0 && clock_candidate_inside_share(&l->item[0]) >= LINE_SHARE_MIN;
}

static void list_release(struct clock_candidate_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		clock_candidate_release(&l->item[i]);
	l->n = 0;
}

static bool covers_all(struct ns_interval interval, const struct activity *activity)
{
	return interval.from <= activity->begin && interval.to >= activity->end;
}

/* Returns an interval twice as long, within the trace. */
static struct ns_interval widen_interval(struct ns_interval interval, const struct activity *activity)
{
	int64_t by = (interval.to - interval.from) / 2 + 1, left = interval.from - activity->begin,
		right = activity->end - interval.to;
	int64_t more_left = right < by ? 2 * by - right : by, more_right = left < by ? 2 * by - left : by;
	interval.from -= more_left < left ? more_left : left;
	interval.to += more_right < right ? more_right : right;
	return interval;
}

/* Tests candidates on growing intervals: up to the whole trace, or with steps up to the longest interval that the best
 * candidate fits. */
static void test_growing(const struct evidence *evidence, const struct offset_list *estimates, bool steps,
                         struct clock_candidate_list *l)
{
	l->n = 0;
	for (size_t i = 0; i < estimates->n; i++)
		clock_candidate_init(&l->item[l->n++], &estimates->estimate[i], estimates->interval);
	test_on_interval(evidence, estimates->interval, l);
	while (l->n > 0 && !covers_all(l->at, evidence->activity) && work_spend(evidence->activity->budget, 0)) {
		struct clock_candidate_list before = { .at = l->at, .n = 1, .has_alternatives = l->has_alternatives };
		bool passed = best_passes(l);
		clock_candidate_copy(&before.item[0], &l->item[0]);
		test_on_interval(evidence, widen_interval(l->at, evidence->activity), l);
		if (steps && passed && !best_passes(l)) {
			list_release(l);
			*l = before;
			break;
		}
		list_release(&before);
	}
}

/* Adds candidates with the drift of the best candidate at other offsets, and tests all of them. */
static void add_alternatives(const struct evidence *evidence, struct clock_candidate_list *l)
{
	struct activity view = activity_view(evidence->activity, l->at);
	const struct evidence part = { evidence->host, evidence->vm, &view };
	struct alternatives r;
	const struct clock_candidate *best = &l->item[0];
	alternatives_find(&part, best, &r);
	for (size_t i = 0; i < r.n && l->n < ESTIMATES_MAX; i++)
		clock_candidate_init_around(&l->item[l->n++], best, &view, r.alternative[i].shift, r.alternative[i].tolerance);
	activity_view_end(&view);
	l->incomplete = !r.complete;
	if (r.n > 0)
		test_on_interval(evidence, l->at, l);
}

static void check_alternatives(const struct evidence *evidence, struct clock_candidate_list *l)
{
	struct work_budget *budget = evidence->activity->budget;
	for (uint64_t outside = UINT64_MAX; l->n > 0 && l->item[0].outside < outside && work_spend(budget, 0);) {
		outside = l->item[0].outside;
		add_alternatives(evidence, l);
	}
}

/* Returns the reason why the best candidate is not proven; SYNC_REASON_NONE: it is proven. */
static enum sync_reason reason_against(const struct clock_candidate_list *l)
{
	const struct clock_candidate *h = &l->item[0];
	const bool contains = clock_candidate_inside_share(h) >= LINE_SHARE_MIN;
	if ((contains ? h->nats : h->nats_max) < EVIDENCE_MIN_NATS)
		return SYNC_REASON_FEW_EVENTS;
	if (!contains)
		return SYNC_REASON_NO_OFFSET;
	if (l->has_alternatives)
		return SYNC_REASON_SEVERAL_OFFSETS;
	if (l->incomplete)
		return SYNC_REASON_PERIODIC_EVENTS;
	return SYNC_REASON_NONE;
}

/* Moves the best candidate to *out. */
static void move_best(struct clock_candidate_list *l, enum sync_reason reason, struct clock_candidate *out)
{
	*out = l->item[0];
	out->reason = reason;
	l->item[0].clock = (struct clock_map){ .segment = NULL };
}

/* Finds one clock without steps for the whole trace. In a sampled trace (time_sampling.h) the search starts at the
 * beginning, because few times in the middle are stored. */
static void solve_whole(const struct evidence *evidence, struct clock_candidate *out)
{
	struct offset_list estimates;
	struct clock_candidate_list l = { .n = 0 };
	find_initial_offsets(evidence, evidence->host->slice_bits > 0 || evidence->activity->slice_bits > 0 ? 0 : 0.5,
	                     SEGMENT_NS, LAGS_FEW, &estimates);
	test_growing(evidence, &estimates, false, &l);
	check_alternatives(evidence, &l);
	if (l.n > 0) {
		enum sync_reason reason = reason_against(&l);
		if (!reason)
			clock_candidate_check_ambiguity(&l.item[0], evidence);
		move_best(&l, reason, out);
		out->no_split = reason && clock_candidate_inside_share(out) >= LINE_SHARE_MIN;
	}
	list_release(&l);
}

/* ---- clocks with steps: parts of the trace that one line fits */

/* Returns true if one line contains the events of `whole`, and also the events of the new part `more` alone, which may
 * be short and entirely after a step. */
static bool is_clock_valid_on(const struct evidence *evidence, const struct clock_candidate *start,
                              struct ns_interval whole, struct ns_interval more, struct clock_candidate *h)
{
	struct activity view = activity_view(evidence->activity, whole), added = activity_view(evidence->activity, more);
	struct clock_candidate beyond;
	clock_candidate_copy(h, start);
	clock_candidate_test(h, &(struct evidence){ evidence->host, evidence->vm, &view });
	beyond = *h;
	clock_candidate_count(&beyond, &(struct evidence){ evidence->host, evidence->vm, &added });
	activity_view_end(&view);
	activity_view_end(&added);
	return clock_candidate_inside_share(h) >= LINE_SHARE_MIN && h->clock.segments == 1
	       && (double)beyond.outside <= (1 - LINE_SHARE_MIN) * (double)(beyond.inside + beyond.outside);
}

/* Moves one end of the part outwards until the clock does not hold any more. */
static void extend_part(const struct evidence *evidence, struct ns_interval *part, bool right, struct clock_candidate *h)
{
	const struct activity *activity = evidence->activity;
	int64_t *edge = right ? &part->to : &part->from, known_bad = right ? activity->end + 1 : activity->begin - 1;
	int64_t step = part->to - part->from;
	while (llabs(known_bad - *edge) > STEP_FIND_NS && work_spend(activity->budget, 0)) {
		/* Doubles the step; once a failing end is known, halves the distance to it. */
		int64_t left = llabs(known_bad - *edge), by = left / 2 < step ? left / 2 : step;
		if (step >= left - 1 && (known_bad > activity->end || known_bad < activity->begin))
			by = left - 1;
		int64_t next = right ? *edge + by : *edge - by;
		struct clock_candidate longer;
		struct ns_interval whole = { right ? part->from : next, right ? next : part->to };
		struct ns_interval more = { right ? part->to + 1 : next, right ? next : part->from - 1 };
		if (!is_clock_valid_on(evidence, h, whole, more, &longer)) {
			known_bad = next;
			clock_candidate_release(&longer);
			continue;
		}
		step *= 2;
		clock_candidate_release(h);
		*h = longer;
		*edge = next;
	}
}

static void append_segments(struct clock_map *map, struct clock_map *more)
{
	map->segment = mem_resize(map->segment, map->segments + more->segments, sizeof *map->segment);
	if (more->segments > 0)
		memcpy(map->segment + map->segments, more->segment, more->segments * sizeof *more->segment);
	map->segments += more->segments;
	free(more->segment);
	*more = (struct clock_map){ .segment = NULL };
}

/* Shortens a part that extends across a step: many events after a step fit by chance, and the line is then bent. If
 * events are outside guest mode, tries two shorter parts; a shorter part with a clock that contains all its events
 * replaces the part and is extended. */
static void retry_shorter(const struct evidence *evidence, struct ns_interval *part, struct clock_candidate *h)
{
	const int64_t third = (part->to - part->from) / 3;
	const struct ns_interval less[2] = { { part->from, part->to - third }, { part->from + third, part->to } };
	for (int i = 0; i < 2 && h->outside > 0; i++) {
		struct activity view = activity_view(evidence->activity, less[i]);
		const struct evidence on = { evidence->host, evidence->vm, &view };
		struct clock_candidate own, wide;
		clock_candidate_copy(&own, h);
		clock_candidate_count(&own, &on);
		clock_candidate_init_around(&wide, h, &view, 0, AMBIGUITY_NS);
		clock_candidate_test(&wide, &on);
		const bool better = wide.outside == 0 && own.outside > 0 && wide.inside >= own.inside && wide.clock.segments == 1;
		activity_view_end(&view);
		if (better) {
			*part = less[i];
			extend_part(evidence, part, true, &wide);
			extend_part(evidence, part, false, &wide);
		}
		clock_candidate_release(&own);
		clock_candidate_release(better ? h : &wide);
		if (better)
			*h = wide;
	}
}

/* Finds a part of the trace, around `center` (0..1), that one line fits. Returns false if no clock is proven. */
static bool try_part(const struct evidence *evidence, double center, int64_t length, int64_t lags, struct ns_interval *part,
                     struct clock_candidate *out)
{
	struct offset_list estimates;
	struct clock_candidate_list l = { .n = 0 };
	enum sync_reason reason = SYNC_REASON_NO_OFFSET;
	find_initial_offsets(evidence, center, length, lags, &estimates);
	test_growing(evidence, &estimates, true, &l);
	check_alternatives(evidence, &l);
	if (l.n > 0 && l.item[0].clock.segments == 1) {
		struct clock_candidate *h = &l.item[0];
		*part = l.at;
		extend_part(evidence, part, true, h);
		extend_part(evidence, part, false, h);
		retry_shorter(evidence, part, h);
		reason = reason_against(&l);
		if (!reason) {
			struct activity view = activity_view(evidence->activity, *part);
			clock_candidate_check_ambiguity(h, &(struct evidence){ evidence->host, evidence->vm, &view });
			activity_view_end(&view);
			h->clock.segment[0].from = part->from;
			move_best(&l, reason, out);
		}
	}
	list_release(&l);
	return !reason;
}

/* Tries several positions of the trace, because steps may be anywhere. Returns false if no part is found. */
static bool find_part(const struct evidence *evidence, struct ns_interval *part, struct clock_candidate *out)
{
	static const double center[] = { 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875 };
	int64_t span = evidence->activity->end - evidence->activity->begin,
		length = span / 3 < SEGMENT_NS / 2 ? span / 3 : SEGMENT_NS / 2;
	length = length < PART_MIN_NS ? PART_MIN_NS : length;
	size_t places = (size_t)(span / length) + 1;
	for (size_t i = 0; i < sizeof center / sizeof *center && i < places; i++)
		if (try_part(evidence, center[i], length, i == 0 ? LAGS_FEW : LAGS_MANY, part, out))
			return true;
	return false;
}

static void solve_parts(const struct evidence *evidence, int depth, struct clock_candidate *out)
{
	struct ns_interval part;
	struct clock_candidate found;
	if (depth > PARTS_DEPTH || evidence->activity->end - evidence->activity->begin < PART_MIN_NS ||
	    !find_part(evidence, &part, &found))
		return;
	const struct ns_interval side[2] = { { evidence->activity->begin, part.from - 1 },
		{ part.to + 1, evidence->activity->end } };
	for (int i = 0; i < 2; i++) {
		struct activity view = activity_view(evidence->activity, side[i]);
		if (i == 1)
			append_segments(&out->clock, &found.clock);
		solve_parts(&(struct evidence){ evidence->host, evidence->vm, &view }, depth + 1, out);
		activity_view_end(&view);
	}
	out->pairs += found.pairs;
	out->inliers += found.inliers;
}

/* Narrows all parts together: events on both sides of a boundary determine its time. */
static void refine_whole(const struct evidence *evidence, struct clock_candidate *parts)
{
	struct clock_candidate all;
	clock_candidate_copy(&all, parts);
	clock_candidate_test(&all, evidence);
	steps_place(evidence, &(struct pair_list){ 0 }, &all.clock);  /* events around the steps belong to neither part */
	if (clock_candidate_inside_share(&all) < clock_candidate_inside_share(parts) ||
	    all.clock.segments > parts->clock.segments) {
		clock_candidate_release(&all);
		return;
	}
	clock_candidate_check_ambiguity(&all, evidence);
	for (size_t i = 0; i < all.clock.segments && i < parts->clock.segments; i++)
		if (parts->clock.segment[i].quality < all.clock.segment[i].quality)
			all.clock.segment[i].quality = parts->clock.segment[i].quality;
	clock_candidate_release(parts);
	*parts = all;
}

static void solve(const struct evidence *evidence, bool steps, struct clock_candidate *out)
{
	if (!steps) {
		solve_whole(evidence, out);
		return;
	}
	struct clock_candidate parts = { 0 };
	solve_parts(evidence, 0, &parts);
	clock_candidate_count(&parts, evidence);
	if (parts.clock.segments == 0)
		return;
	refine_whole(evidence, &parts);
	*out = parts;
}

void search_containment(const struct evidence *evidence, bool steps, struct clock_candidate *out)
{
	struct work_budget own = { SEARCH_STEPS_MAX }, *budget = evidence->activity->budget ? evidence->activity->budget : &own;
	struct activity activity = *evidence->activity;
	activity.budget = budget;
	*out = (struct clock_candidate){ .reason = SYNC_REASON_NO_OFFSET };
	solve(&(struct evidence){ evidence->host, evidence->vm, &activity }, steps, out);
	if (!work_is_used_up(budget))
		return;
	clock_candidate_release(out);
	*out = (struct clock_candidate){ .reason = SYNC_REASON_SEARCH_LIMIT, .no_split = true };
}
