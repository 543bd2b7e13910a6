#include "sync/search/clock_candidate.h"

#include "base/base.h"
#include "sync/fit/error_bounds.h"

/* Sets the bounds to `tolerance` ns on both sides of the line through two points. */
static void make_bounds(const struct hull_point p[2], int64_t tolerance, struct clock_segment *segment)
{
	struct hull h;
	hull_init(&h);
	for (int i = 0; i < 2; i++) {
		hull_add(&h, HULL_UPPER, p[i].x, p[i].y + tolerance);
		hull_add(&h, HULL_LOWER, p[i].x, p[i].y - tolerance);
	}
	hull_make_segment(&h, p[0].x, DRIFT_LIMIT_PPM, segment);
	hull_release(&h);
}

void clock_candidate_init(struct clock_candidate *h, const struct offset_estimate *g, struct ns_interval interval)
{
	struct hull_point p[2] = { { interval.from, 0 }, { interval.to, 0 } };
	*h = (struct clock_candidate){ 0 };
	for (int i = 0; i < 2; i++)
		p[i].y = g->at_host + (int64_t)((double)(p[i].x - g->at_guest) * (1 + g->ppm / 1e6));
	h->clock.segment = mem_new(1, sizeof *h->clock.segment);
	h->clock.segments = 1;
	h->clock.segment[0].from = interval.from;
	make_bounds(p, g->tolerance / 2 + 8000, &h->clock.segment[0]);
}

void clock_candidate_init_around(struct clock_candidate *h, const struct clock_candidate *like,
                                 const struct activity *activity, int64_t shift, int64_t tolerance)
{
	const struct clock_map *clock = &like->clock;
	*h = (struct clock_candidate){ 0 };
	h->clock = (struct clock_map){ .segment = mem_new(clock->segments, sizeof *clock->segment),
		.segments = clock->segments };
	for (size_t i = 0; i < clock->segments; i++) {
		struct hull_point p[2] = { { i == 0 ? activity->begin : clock->segment[i].from, 0 },
			{ i + 1 == clock->segments ? activity->end : clock->segment[i + 1].from, 0 } };
		for (int k = 0; k < 2; k++)
			p[k].y = clock_line_at(&clock->segment[i].line, p[k].x) + shift;
		h->clock.segment[i].from = clock->segment[i].from;
		make_bounds(p, tolerance, &h->clock.segment[i]);
	}
}

void clock_candidate_copy(struct clock_candidate *to, const struct clock_candidate *from)
{
	*to = *from;
	clock_map_copy(&to->clock, &from->clock);
}

void clock_candidate_release(struct clock_candidate *h)
{
	clock_map_release(&h->clock);
}

void clock_candidate_count(struct clock_candidate *h, const struct evidence *evidence)
{
	const struct host_timeline *host = evidence->host;
	h->inside = h->outside = 0;
	for (unsigned c = 0; c < evidence->activity->cpus; c++) {
		struct window_cursor cursor = { host, evidence->vm, c, NULL, 0 };
		for (size_t i = 0; i < evidence->activity->cpu[c].len; i++) {
			int64_t at = clock_map_at(&h->clock, evidence->activity->cpu[c].ts[i]);
			if (at < host->begin || at > host->end)
				continue;
			enum guest_mode mode = window_cursor_seek(&cursor, at) ? window_cursor_mode(&cursor, at) : MODE_OUT;
			h->inside += mode == MODE_IN;
			h->outside += mode == MODE_OUT;
		}
	}
}

void clock_candidate_test(struct clock_candidate *h, const struct evidence *evidence)
{
	struct narrowing unused = { 0 };
	clock_candidate_narrow(h, evidence, NULL, &unused);
	narrowing_release(&unused);
	clock_candidate_count(h, evidence);
}

double clock_candidate_inside_share(const struct clock_candidate *h)
{
	uint64_t all = h->inside + h->outside;
	return all == 0 ? 0 : (double)h->inside / (double)all;
}

bool clock_candidate_distinct(const struct clock_candidate *a, const struct clock_candidate *b, struct ns_interval interval)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = interval.from + (interval.to - interval.from) / 2 * i;
		if (llabs(clock_map_at(&a->clock, t) - clock_map_at(&b->clock, t)) > DISTINCT_NS)
			return true;
	}
	return false;
}

size_t clock_candidate_steps(const struct clock_candidate *h)
{
	size_t n = 0;
	for (size_t i = 1; i < h->clock.segments; i++)
		n += fit_is_step(&h->clock, i);
	return n;
}

/* Returns true if the bounds of `a` are within the bounds of `b`, up to a tenth of their width, at both ends and in the
 * middle. */
static bool is_same_width(const struct clock_map *a, const struct clock_map *b, const struct activity *activity)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = activity->begin + (activity->end - activity->begin) / 2 * i, low[2], high[2];
		if (!clock_map_bounds(a, t, &low[0], &high[0]) || !clock_map_bounds(b, t, &low[1], &high[1]))
			return false;
		const int64_t by = (high[1] - low[1]) / 10 + 1;
		if (high[0] - low[0] > high[1] - low[1] + by || high[0] < low[1] - by || low[0] > high[1] + by)
			return false;
	}
	return true;
}

/* Widens the bounds of segment i to include the bounds of the same segment of the other clock. */
static void join_segment_bounds(struct clock_map *clock, const struct clock_map *other, size_t i,
                                const struct activity *activity)
{
	struct clock_segment *p = &clock->segment[i], *next = i + 1 < clock->segments ? p + 1 : NULL;
	const struct ns_interval at = { i == 0 ? activity->begin : p->from, next ? next->from : activity->end };
	(void)error_bounds_join(p, &(struct clock_map){ .segment = &other->segment[i], .segments = 1 }, at, AMBIGUITY_NS);
}

/* Repeats the narrowing from wide bounds. Narrowing started from estimated bounds; if the estimate was wrong, events may
 * have been attributed to wrong windows that contain them as well. AMBIGUITY_NS on both sides certainly includes the
 * true clock, and then only unambiguous events count.
 *   - Same bounds: no other clock fits.
 *   - Wider bounds: these are the result.
 *   - Another clock that fits less well: the result is the bounds of both. */
void clock_candidate_check_ambiguity(struct clock_candidate *h, const struct evidence *evidence)
{
	struct clock_candidate wide;
	clock_candidate_init_around(&wide, h, evidence->activity, 0, AMBIGUITY_NS);
	clock_candidate_test(&wide, evidence);
	bool better = clock_candidate_inside_share(&wide) >= clock_candidate_inside_share(h);
	if (wide.clock.segments != h->clock.segments && !better) {
		clock_candidate_release(&wide);
		return;
	}
	bool same = is_same_width(&wide.clock, &h->clock, evidence->activity);
	bool ambiguous = !same && (!better || wide.ambiguous > 0);
	for (size_t i = 0; i < wide.clock.segments && !better && !same; i++) {
		wide.clock.segment[i].line = h->clock.segment[i].line;
		join_segment_bounds(&wide.clock, &h->clock, i, evidence->activity);
	}
	if (better) {
		clock_candidate_release(h);
		*h = wide;
	} else if (!same) {
		clock_candidate_release(h);
		h->clock = wide.clock;
	} else {
		clock_candidate_release(&wide);
	}
	for (size_t i = 0; i < h->clock.segments && ambiguous; i++)
		if (h->clock.segment[i].quality == SYNC_ACCURATE)
			h->clock.segment[i].quality = SYNC_APPROXIMATE;
}
