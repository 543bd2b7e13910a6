#include "sync/fit/piecewise_fit.h"

#include "base/base.h"
#include "base/bisect.h"
#include "base/int128.h"
#include "sync/fit/error_bounds.h"

#define NEIGHBOURS 15       /* pairs of the other side to compare with, before and after a pair */
#define PARTS_MAX 128       /* if the clock changes more often, the last part contains all further pairs */

struct fit_part {
	size_t from, to;  /* indices of the pairs [from, to) that share a line */
	int64_t at;       /* the part's start, guest ns */
};

static int64_t wander_ns(int64_t span)
{
	return (int64_t)((double)span * WANDER_PPM / 1e6);
}

/* Returns true if pair p contradicts three quarters of the pairs q[0..n) of the other side. */
static bool contradicts_most(const struct pair *p, const struct pair *const *q, size_t n)
{
	size_t agree = 0;
	for (size_t i = 0; i < n && agree <= n / 4; i++) {
		int64_t far = q[i]->x > p->x ? q[i]->x - p->x : p->x - q[i]->x;
		int64_t tolerance = far / 1000000 * NEIGHBOUR_DRIFT_PPM + 1000;
		int64_t d = (q[i]->y - p->y) - (q[i]->x - p->x);
		agree += (p->side == HULL_UPPER ? d : -d) <= tolerance;
	}
	return agree <= n / 4;
}

/* Rejects pairs that contradict most pairs of the other side both before and after them (PAIR_GROSS). */
static void reject_gross(struct pair_list *l)
{
	size_t n[2] = { 0, 0 }, at[2] = { 0, 0 };
	const struct pair **side[2] = { mem_resize(NULL, l->len, sizeof **side), mem_resize(NULL, l->len, sizeof **side) };
	for (size_t i = 0; i < l->len; i++)
		side[l->pair[i].side][n[l->pair[i].side]++] = &l->pair[i];
	for (size_t i = 0; i < l->len; i++) {
		struct pair *p = &l->pair[i];
		int other = p->side == HULL_UPPER ? HULL_LOWER : HULL_UPPER;
		size_t mid = at[other];  /* pairs of the other side before p */
		size_t before = mid < NEIGHBOURS ? mid : NEIGHBOURS;
		size_t after = n[other] - mid < NEIGHBOURS ? n[other] - mid : NEIGHBOURS;
		at[p->side]++;
		if (before < NEIGHBOURS / 3 && after < NEIGHBOURS / 3)
			continue;
		bool bad_before = before < NEIGHBOURS / 3 || contradicts_most(p, side[other] + mid - before, before);
		if (bad_before && (after < NEIGHBOURS / 3 || contradicts_most(p, side[other] + mid, after)))
			p->rejected = PAIR_GROSS;
	}
	free(side[0]);
	free(side[1]);
}

size_t fit_conflicts(const struct pair_list *l)
{
	const int64_t far = INT64_MAX / 2;  /* no bound */
	const int64_t tolerance = l->len == 0 ? 0 : 1000 + 2 * wander_ns(l->pair[l->len - 1].x - l->pair[0].x);
	int64_t most = far, least = -far;  /* bounds of host - guest in the current interval, ns */
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct pair *p = &l->pair[i];
		const int64_t off = p->y - p->x, drift = i == 0 ? 0 : (p->x - p[-1].x) / (1000000 / DRIFT_LIMIT_PPM) + 1;
		most += drift;
		least -= drift;
		if (p->side == HULL_UPPER && off < most)
			most = off;
		if (p->side == HULL_LOWER && off > least)
			least = off;
		if (most + tolerance >= least)
			continue;
		n++;
		most = far;
		least = -far;
	}
	return n;
}

static enum hull_effect add_to_hull(const struct pair_list *l, const struct pair *p, struct hull *h)
{
	return hull_add(h, p->side, p->x, p->side == HULL_UPPER ? p->y + l->tolerance : p->y - l->tolerance);
}

/* Splits the pairs into parts that one line satisfies each, and rejects pairs that fit no part. *last: hull of the last
 * part. */
static struct fit_part *split_into_parts(struct pair_list *l, size_t *parts, struct hull *last)
{
	struct fit_part *part = NULL;
	size_t cap = 0, from = 0;
	*parts = 0;
	hull_init(last);
	while (from < l->len) {
		hull_release(last);
		size_t suspects[2] = { 0, 0 }, first[2] = { 0, 0 }, to = l->len, i;
		for (i = from; i < l->len; i++) {
			struct pair *p = &l->pair[i];
			if (p->rejected)
				continue;
			if (add_to_hull(l, p, last) != HULL_CONTRADICTS) {
				suspects[p->side] = 0;
				continue;
			}
			if (suspects[p->side]++ == 0)
				first[p->side] = i;
			p->rejected = PAIR_SUSPECT;
			if (suspects[p->side] == FIT_SUSPECTS && *parts + 1 < PARTS_MAX) {
				to = first[p->side];
				break;
			}
		}
		for (size_t k = to; k <= i && k < l->len && to < l->len; k++)
			if (l->pair[k].rejected == PAIR_SUSPECT)
				l->pair[k].rejected = PAIR_GOOD;  /* to be tried again in the next part */
		if (to == from)
			to = from + 1;  /* unreachable: the first pair of a hull never contradicts */
		*ARRAY_PUSH(part, *parts, cap) = (struct fit_part){ from, to, l->pair[from].x };
		from = to;
	}
	return part;
}

static size_t count_inliers(const struct pair_list *l, const struct fit_part *p)
{
	size_t n = 0;
	for (size_t i = p->from; i < p->to; i++)
		n += !l->pair[i].rejected;
	return n;
}

static void add_part_to_hull(struct hull *h, struct pair_list *l, const struct fit_part *p)
{
	for (size_t i = p->from; i < p->to; i++)
		if (!l->pair[i].rejected && add_to_hull(l, &l->pair[i], h) == HULL_CONTRADICTS)
			l->pair[i].rejected = PAIR_SUSPECT;
}

/* Tries one line for both parts, fitted to the bigger part. On success up to 1/16 of the pairs of the smaller part are
 * rejected. */
static bool try_merge_parts(struct pair_list *l, const struct fit_part *a, const struct fit_part *b)
{
	size_t na = count_inliers(l, a), nb = count_inliers(l, b);
	const struct fit_part *big = na >= nb ? a : b, *small = na >= nb ? b : a;
	size_t n = na >= nb ? nb : na, outliers = 0, allowed = n / 16 < 2 ? 2 : n / 16;
	size_t *lost_pairs = mem_new(allowed + 1, sizeof *lost_pairs);
	struct hull h;
	hull_init(&h);
	add_part_to_hull(&h, l, big);
	bool forward = small == b;
	for (size_t k = 0; k < small->to - small->from && outliers <= allowed; k++) {
		size_t i = forward ? small->from + k : small->to - 1 - k;
		struct pair *p = &l->pair[i];
		if (!p->rejected && add_to_hull(l, p, &h) == HULL_CONTRADICTS)
			lost_pairs[outliers++] = i;
	}
	hull_release(&h);
	for (size_t k = 0; k < outliers && outliers <= allowed; k++)
		l->pair[lost_pairs[k]].rejected = PAIR_SUSPECT;
	free(lost_pairs);
	return outliers <= allowed;
}

/* ---- changes of the rate without a step */

static void fit_part_segment(struct pair_list *l, const struct fit_part *p, int64_t ref, struct clock_segment *segment)
{
	struct hull h;
	hull_init(&h);
	add_part_to_hull(&h, l, p);
	hull_make_segment(&h, ref, DRIFT_LIMIT_PPM, segment);
	hull_release(&h);
}

static void segment_release(struct clock_segment *p)
{
	free(p->low.point);
	free(p->high.point);
}

/* Gets the intersection of two lines within [from, to], and for how long before and after it the lines are closer than
 * `tolerance`. Returns false if they do not intersect there. */
static bool find_intersection(const struct clock_line *a, const struct clock_line *b, int64_t tolerance, int64_t from,
                              int64_t to, int64_t *at, int64_t *guard)
{
	int128 drift_change = (int128)b->drift - a->drift, one = (int128)1 << 60;
	int128 gap = (int128)clock_line_at(a, from) - clock_line_at(b, from);
	if (drift_change == 0)
		return false;
	int128 t = gap * one / drift_change, g = (drift_change > 0 ? tolerance : -(int128)tolerance) * one / drift_change;
	if (t < 0 || t > (int128)to - from)
		return false;
	*at = from + (int64_t)t;
	*guard = g > (to - from) / 8 ? (to - from) / 8 : (int64_t)g;
	return true;
}

/* Counts the pairs of both parts that contradict their line; suspects are tried again first. */
static size_t recount_outliers(struct pair_list *l, const struct fit_part *a, const struct fit_part *b)
{
	size_t n = 0;
	for (size_t i = a->from; i < b->to; i++)
		if (l->pair[i].rejected == PAIR_SUSPECT)
			l->pair[i].rejected = PAIR_GOOD;
	const struct fit_part *part[2] = { a, b };
	for (int k = 0; k < 2; k++) {
		struct hull h;
		hull_init(&h);
		add_part_to_hull(&h, l, part[k]);
		hull_release(&h);
		n += part[k]->to - part[k]->from - count_inliers(l, part[k]);
	}
	return n;
}

/* If the rate changed without a step, the lines before and after intersect. Makes the intersection the start of the
 * later part, and excludes the pairs around it, which may belong to either line, from both parts. */
static void place_drift_change(struct pair_list *l, struct fit_part *a, struct fit_part *b)
{
	struct clock_segment before = { 0 }, after = { 0 };
	const struct fit_part old[2] = { *a, *b };
	int64_t first = l->pair[a->from].x, last = l->pair[b->to - 1].x, at, guard;
	size_t to = b->to, outliers = recount_outliers(l, a, b);
	fit_part_segment(l, a, b->at, &before);
	fit_part_segment(l, b, b->at, &after);
	struct clock_map one = { .segment = &before, .segments = 1 }, two = { .segment = &after, .segments = 1 };
	int64_t tolerance = (clock_map_error_width(&one, b->at) + clock_map_error_width(&two, b->at)) / 2;
	bool intersects = tolerance > 0 && find_intersection(&before.line, &after.line, tolerance, first, last, &at, &guard);
	segment_release(&before);
	segment_release(&after);
	if (!intersects)
		return;
	for (a->to = a->from; a->to < to && l->pair[a->to].x < at - guard; a->to++)
		;
	for (b->from = a->to; b->from < to && l->pair[b->from].x <= at + guard; b->from++)
		;
	b->at = at;
	if (a->to > a->from && b->from < to && recount_outliers(l, a, b) <= outliers)
		return;
	*a = old[0];
	*b = old[1];
	(void)recount_outliers(l, a, b);
}

/* Fits the segments and their error bounds. h: hull of the only part, or an empty hull; it is released. */
static void make_segments(struct pair_list *l, const struct fit_part *part, size_t n, struct hull *h, int64_t ref,
                          struct clock_map *map)
{
	map->segment = mem_new(n, sizeof *map->segment);
	for (size_t i = 0; i < n; i++) {
		struct clock_segment *p = &map->segment[map->segments];
		if (!h->started)
			add_part_to_hull(h, l, &part[i]);
		p->from = part[i].at;
		if (hull_quality(h) > SYNC_INCOMPLETE || n == 1) {
			hull_make_segment(h, map->segments == 0 ? ref : p->from, DRIFT_LIMIT_PPM, p);
			p->rejected = part[i].to - part[i].from - count_inliers(l, &part[i]);
			map->segments++;
		}
		hull_release(h);
	}
}

/* ---- steps */

bool fit_is_step(const struct clock_map *clock, size_t i)
{
	int64_t at = clock->segment[i].from, low, high, low_before, high_before;
	return !clock_segment_bounds(&clock->segment[i], at, &low, &high)
	       || !clock_segment_bounds(&clock->segment[i - 1], at - 1, &low_before, &high_before)
	       || low > high_before + STEP_MIN_NS || low_before > high + STEP_MIN_NS;
}

static bool pair_contradicts(const struct pair *p, const struct clock_line *line)
{
	int64_t off = p->y - clock_line_at(line, p->x);
	return !p->rejected && (p->side == HULL_UPPER ? off < 0 : off > 0);
}

static size_t pairs_before(const struct pair_list *l, int64_t x)
{
	size_t at;
	BISECT(at, l->len, l->pair[at].x < x);
	return at;
}

void fit_limit_step(const struct pair_list *l, struct clock_map *clock, size_t i, int64_t begin, int64_t end)
{
	struct clock_segment *p = &clock->segment[i];
	p->ambiguous_from = (i == 1 ? begin : p[-1].from) + 1;
	p->ambiguous_to = i + 1 == clock->segments ? end : p[1].from;
	for (size_t k = pairs_before(l, p->ambiguous_from); k < l->len; k++) {
		int64_t x = l->pair[k].x;
		if (x >= p->from && x >= p->ambiguous_to)
			break;
		if (x >= p->ambiguous_from && x < p->from && pair_contradicts(&l->pair[k], &p->line))
			p->ambiguous_from = x + 1;
		if (x < p->ambiguous_to && x >= p->from && pair_contradicts(&l->pair[k], &p[-1].line))
			p->ambiguous_to = x;
	}
	p->placed = p->repeats = false;
}

static void fit_once(struct pair_list *l, int64_t ref, struct clock_map *map)
{
	memset(map, 0, sizeof *map);
	for (size_t i = 0; i < l->len; i++)
		if (l->pair[i].rejected == PAIR_SUSPECT)
			l->pair[i].rejected = PAIR_GOOD;
	size_t parts = 0, n = 0;
	struct hull hull;
	struct fit_part *part = split_into_parts(l, &parts, &hull);
	if (parts > 1)
		hull_release(&hull);
	for (size_t i = 0; i < parts; i++) {
		if (n > 0 && try_merge_parts(l, &part[n - 1], &part[i]))
			part[n - 1].to = part[i].to;
		else
			part[n++] = part[i];
	}
	for (size_t i = 1; i < n; i++)
		place_drift_change(l, &part[i - 1], &part[i]);
	make_segments(l, part, n, &hull, ref, map);
	for (size_t i = 1; i < map->segments; i++)
		if (fit_is_step(map, i))
			fit_limit_step(l, map, i, l->pair[0].x, l->pair[l->len - 1].x);
	free(part);
}

/* ---- clocks that wander
 *
 * The width of the error bounds that pairs of a short time yield does not depend on how evenly the clock runs. If a
 * clock swings by s around its line, the bounds of all pairs together are narrower by 2 s, and these may exclude the
 * true clock. If they are less than half as wide as those of a short time, the pairs get a tolerance until they are not;
 * then the clock is within that tolerance of a line that all pairs satisfy. */

/* Widens the error bounds of the segments by the tolerance and by the missing width. Returns the tolerance that the
 * pairs should have had. */
static int64_t widen_bounds(const struct pair_list *l, struct clock_map *map)
{
	int64_t tolerance = l->tolerance;
	for (size_t i = 0, from = 0, to; i < map->segments; i++, from = to) {
		struct clock_segment *p = &map->segment[i];
		int64_t by = l->tolerance;
		for (to = from; to < l->len && (i + 1 == map->segments || l->pair[to].x < map->segment[i + 1].from); to++)
			;
		if (from == to)
			continue;
		const int64_t span = l->pair[to - 1].x - l->pair[from].x;
		const int64_t band = clock_map_error_width(&(struct clock_map){ .segment = p, .segments = 1 },
		                                           l->pair[from].x + span / 2);
		const int64_t local = error_bounds_width(l->pair + from, to - from, p);
		if (local < 0 || band < 0)
			continue;
		const int64_t most = wander_ns(span);
		/* once the swing is evident, a tolerance 1/4 greater than measured does little harm */
		int64_t lacks = l->tolerance == 0 ? (2 * band < local ? local - band : 0) : local + local / 4 - band;
		int64_t want = l->tolerance + lacks / 2 < most ? l->tolerance + lacks / 2 : most;
		tolerance = want > tolerance ? want : tolerance;
		if (local > band)
			by += local - band < most ? local - band : most;
		clock_bound_shift(&p->low, -by);
		clock_bound_shift(&p->high, by);
	}
	return tolerance;
}

void fit_pairs(struct pair_list *l, int64_t ref, struct clock_map *map)
{
	reject_gross(l);
	l->tolerance = 0;
	fit_once(l, ref, map);
	for (int64_t tolerance; (tolerance = widen_bounds(l, map)) > l->tolerance;) {
		l->tolerance = tolerance;
		clock_map_release(map);
		fit_once(l, ref, map);
	}
}

/* Returns the difference of the rates of two adjacent segments; 0 if the clock steps between them and one rate fits
 * both. */
static int64_t drift_change_between(const struct clock_segment *a, const struct clock_segment *b, bool jumps)
{
	const bool apart = a->lowest.drift > b->highest.drift || b->lowest.drift > a->highest.drift;
	return apart || !jumps ? llabs(a->line.drift - b->line.drift) : 0;
}

/* Returns the change of the rate at the ends of segment i, and the pairs that bound it. */
static struct error_bounds_drift drift_at(const struct pair_list *l, const struct clock_map *map, size_t i)
{
	struct error_bounds_drift b = { .multi_segment = map->segments > 1 };
	const bool before = i > 0 && !fit_is_step(map, i), after = i + 1 < map->segments && !fit_is_step(map, i + 1);
	const size_t from = before ? i - 1 : i, to = after ? i + 1 : i;
	const int64_t earlier = i > 0 ? drift_change_between(&map->segment[i - 1], &map->segment[i], !before) : 0;
	const int64_t later = i + 1 < map->segments ? drift_change_between(&map->segment[i], &map->segment[i + 1], !after) : 0;
	b.drift_change = earlier > later ? earlier : later;
	const size_t first = from == 0 ? 0 : pairs_before(l, map->segment[from].from);
	const size_t end = to + 1 == map->segments ? l->len : pairs_before(l, map->segment[to + 1].from);
	b.pair = l->pair + first;
	b.n = end - first;
	return b;
}

void fit_widen_bounds(const struct pair_list *l, struct clock_map *map)
{
	struct error_bounds_drift *drift = mem_new(map->segments, sizeof *drift);
	for (size_t i = 0; i < map->segments; i++)
		drift[i] = drift_at(l, map, i);
	for (size_t i = 0, from = 0, to = 0; i < map->segments; i++, from = to) {
		for (; to < l->len && (i + 1 == map->segments || l->pair[to].x < map->segment[i + 1].from); to++)
			;
		const int64_t last = i + 1 == map->segments ? INT64_MIN : map->segment[i + 1].from - 1;
		error_bounds_widen(l->pair + from, to - from, &drift[i], last, &map->segment[i]);
	}
	free(drift);
}

/* ---- thinning */

static bool is_vertex(const struct hull *h, const struct pair *p)
{
	const struct hull_chain *c = &h->side[p->side];
	struct hull_point q = { p->x - h->origin.x, p->y - h->origin.y };
	size_t at;
	BISECT(at, c->len, c->point[at].x < q.x);
	return at < c->len && c->point[at].x == q.x && c->point[at].y == q.y;
}

void pairs_thin(struct pair_list *l, size_t from, size_t block)
{
	bool *is_kept = mem_new(block, sizeof *is_kept);
	size_t n = from;
	for (; from < l->len; from += block) {
		size_t to = from + block < l->len ? from + block : l->len;
		struct hull h;
		hull_init(&h);
		for (size_t i = from; i < to; i++) {
			struct pair *p = &l->pair[i];
			is_kept[i - from] = p->rejected || hull_add(&h, p->side, p->x, p->y) == HULL_CONTRADICTS;
		}
		for (size_t i = from; i < to; i++)
			if (is_kept[i - from] || is_vertex(&h, &l->pair[i]))
				l->pair[n++] = l->pair[i];
		hull_release(&h);
	}
	l->len = n;
	free(is_kept);
}
