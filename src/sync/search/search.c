#include "sync/search/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/search/initial_offsets.h"
#include "sync/search/step_placement.h"
#include "sync/search/ambiguity_check.h"

#define PARTS_DEPTH 6
#define PART_LEAST_NS (SEGMENT_NS / 8)
#define STEP_FIND_NS 20000000LL

const char *const search_nowhere = "no offset puts its events into guest mode";

/* Hypotheses, the best first, all tested on the same stretch of the trace. */
struct hypothesis_list {
	struct hypothesis item[GUESSES_MAX];
	size_t n;
	struct segment at;
	bool rivals;       /* another one than the best has proved itself as well */
	bool open;         /* there may be more that nobody has looked at */
};

static int by_share(const void *pa, const void *pb)
{
	const struct hypothesis *a = pa, *b = pb;
	double sa = hypothesis_share(a), sb = hypothesis_share(b);
	if (sa != sb)
		return sa > sb ? -1 : 1;
	return a->inside > b->inside ? -1 : a->inside < b->inside;
}

/* Is it as good as the best of those before it, or is it one of them, or nothing? */
static bool worth(const struct hypothesis_list *l, size_t n, const struct hypothesis *h)
{
	if (hypothesis_share(h) < SHARE_LEAST || hypothesis_jumps(h) > 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!hypothesis_distinct(&l->item[i], h, l->at))
			return false;
	return n == 0 || h->outside <= hypothesis_may_miss(&l->item[0]);
}

/* Of one that is as good: does it prove as much? */
static bool is_rival(const struct hypothesis *best, const struct hypothesis *h)
{
	return h->evidence >= EVIDENCE_MIN && 2 * h->inside > best->inside;
}

/* Tests all on the segment; those that others are better than go. */
static void test_on(const struct seen *seen, struct segment seg, struct hypothesis_list *l)
{
	struct activity view = activity_view(seen->act, seg);
	const struct seen part = { seen->host, seen->vm, &view };
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		hypothesis_test(&l->item[i], &part);
	activity_view_end(&view);
	if (l->n > 0)
		qsort(l->item, l->n, sizeof *l->item, by_share);
	l->at = seg;
	l->rivals = false;
	for (size_t i = 0; i < l->n; i++) {
		struct hypothesis h = l->item[i];
		if (!worth(l, n, &h)) {
			hypothesis_release(&h);
			continue;
		}
		l->rivals = l->rivals || (n > 0 && is_rival(&l->item[0], &h));
		l->item[n++] = h;
	}
	l->n = n;
}

static bool passes(const struct hypothesis_list *l)
{
	return l->n > 0 && hypothesis_share(&l->item[0]) >= SHARE_MIN;
}

static void list_release(struct hypothesis_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		hypothesis_release(&l->item[i]);
	l->n = 0;
}

static bool covers_all(struct segment seg, const struct activity *act)
{
	return seg.from <= act->begin && seg.to >= act->end;
}

/* Twice as long, as far as there is something. */
static struct segment wider(struct segment seg, const struct activity *act)
{
	int64_t by = (seg.to - seg.from) / 2 + 1, left = seg.from - act->begin, right = act->end - seg.to;
	int64_t more_left = right < by ? 2 * by - right : by, more_right = left < by ? 2 * by - left : by;
	seg.from -= more_left < left ? more_left : left;
	seg.to += more_right < right ? more_right : right;
	return seg;
}

/* From the segment of the guesses outwards: to the whole trace, or, if the clock may step, as far as the best goes. */
static void test_outwards(const struct seen *seen, const struct guess_list *guesses, bool steps,
                          struct hypothesis_list *l)
{
	l->n = 0;
	for (size_t i = 0; i < guesses->n; i++)
		hypothesis_begin(&l->item[l->n++], &guesses->guess[i], guesses->seg);
	test_on(seen, guesses->seg, l);
	while (l->n > 0 && !covers_all(l->at, seen->act)) {
		struct hypothesis_list before = { .at = l->at, .n = 1, .rivals = l->rivals };
		bool passed = passes(l);
		hypothesis_copy(&before.item[0], &l->item[0]);
		test_on(seen, wider(l->at, seen->act), l);
		if (steps && passed && !passes(l)) {
			list_release(l);
			*l = before;
			break;
		}
		list_release(&before);
	}
}

/* Puts the best to the test against all others of its drift, wherever they are: one of them may be better. */
static void confront_once(const struct seen *seen, struct hypothesis_list *l)
{
	struct activity view = activity_view(seen->act, l->at);
	const struct seen part = { seen->host, seen->vm, &view };
	struct rivals r;
	const struct hypothesis *best = &l->item[0];
	rivals_find(&part, best, &r);
	for (size_t i = 0; i < r.n && l->n < GUESSES_MAX; i++)
		hypothesis_near(&l->item[l->n++], best, &view, r.rival[i].shift, r.rival[i].room);
	activity_view_end(&view);
	l->open = !r.all;
	if (r.n > 0)
		test_on(seen, l->at, l);
}

static void confront(const struct seen *seen, struct hypothesis_list *l)
{
	for (uint64_t outside = UINT64_MAX; l->n > 0 && l->item[0].outside < outside;) {
		outside = l->item[0].outside;
		confront_once(seen, l);
	}
}

/* What speaks against the best, or NULL. */
static const char *doubt_of(const struct hypothesis_list *l)
{
	const struct hypothesis *h = &l->item[0];
	const bool contains = hypothesis_share(h) >= SHARE_MIN;
	if ((contains ? h->evidence : h->most) < EVIDENCE_MIN)
		return "its activity is too little to tell the right offset from chance";
	if (!contains)
		return search_nowhere;
	if (l->rivals)
		return "several offsets fit its events equally well";
	if (l->open)
		return "its activity repeats itself, several offsets may fit";
	return NULL;
}

/* The best of the list goes to *out. */
static void take(struct hypothesis_list *l, const char *doubt, struct hypothesis *out)
{
	*out = l->item[0];
	out->doubt = doubt;
	l->item[0].clock = (struct clock_map){ .piece = NULL };
}

/* The whole trace with one line, or with some that follow on each other without a jump: the whole way from the coarse
 * search to a judgement.  Of a trace too long to keep, both ends are kept, and little in between. */
static void solve_whole(const struct seen *seen, struct hypothesis *out)
{
	struct guess_list guesses;
	struct hypothesis_list l = { .n = 0 };
	guess_clocks(seen, seen->host->sliced > 0 || seen->act->sliced > 0 ? 0 : 0.5, SEGMENT_NS, LAGS_FEW, &guesses);
	test_outwards(seen, &guesses, false, &l);
	confront(seen, &l);
	if (l.n > 0) {
		const char *doubt = doubt_of(&l);
		if (!doubt)
			hypothesis_doubt(&l.item[0], seen);
		take(&l, doubt, out);
		out->hopeless = doubt && hypothesis_share(out) >= SHARE_MIN;
	}
	list_release(&l);
}

/* ---- a clock that steps: the parts of the trace that one line fits, one after another */

/* Tests the clock on `whole`, which is more than it was tested on by `more`; true when both are contained, with one
 * line.  (What is new counts by itself: it may be little, and all beyond a step.) */
static bool holds(const struct seen *seen, const struct hypothesis *start, struct segment whole, struct segment more,
                  struct hypothesis *h)
{
	struct activity view = activity_view(seen->act, whole), added = activity_view(seen->act, more);
	struct hypothesis beyond;
	hypothesis_copy(h, start);
	hypothesis_test(h, &(struct seen){ seen->host, seen->vm, &view });
	beyond = *h;
	hypothesis_count(&beyond, &(struct seen){ seen->host, seen->vm, &added });
	activity_view_end(&view);
	activity_view_end(&added);
	return hypothesis_share(h) >= SHARE_MIN && h->clock.pieces == 1
	       && (double)beyond.outside <= (1 - SHARE_MIN) * (double)(beyond.inside + beyond.outside);
}

/* Moves one end of the part on which the clock holds as far as it goes. */
static void stretch(const struct seen *seen, struct segment *part, bool right, struct hypothesis *h)
{
	const struct activity *act = seen->act;
	int64_t *edge = right ? &part->to : &part->from, bad = right ? act->end + 1 : act->begin - 1;
	for (int64_t step = part->to - part->from; llabs(bad - *edge) > STEP_FIND_NS;) {
		/* Doubling steps first; halves of what is left once an end that fails is known. */
		int64_t left = llabs(bad - *edge), by = left / 2 < step ? left / 2 : step;
		if (step >= left - 1 && (bad > act->end || bad < act->begin))
			by = left - 1;
		int64_t next = right ? *edge + by : *edge - by;
		struct hypothesis longer;
		struct segment whole = { right ? part->from : next, right ? next : part->to };
		struct segment more = { right ? part->to + 1 : next, right ? next : part->from - 1 };
		if (!holds(seen, h, whole, more, &longer)) {
			bad = next;
			hypothesis_release(&longer);
			continue;
		}
		step *= 2;
		hypothesis_release(h);
		*h = longer;
		*edge = next;
	}
}

static void append(struct clock_map *map, struct clock_map *more)
{
	map->piece = mem_resize(map->piece, map->pieces + more->pieces, sizeof *map->piece);
	if (more->pieces > 0)
		memcpy(map->piece + map->pieces, more->piece, more->pieces * sizeof *more->piece);
	map->pieces += more->pieces;
	free(more->piece);
	*more = (struct clock_map){ .piece = NULL };
}

/* Beyond a step many events fit by chance, so a part may reach across it and they bend its line.  Where events lie out of
 * guest mode, does less of the part on its own lead to a clock that contains all of that?  Then that one is stretched. */
static void retry(const struct seen *seen, struct segment *part, struct hypothesis *h)
{
	const int64_t third = (part->to - part->from) / 3;
	const struct segment less[2] = { { part->from, part->to - third }, { part->from + third, part->to } };
	for (int i = 0; i < 2 && h->outside > 0; i++) {
		struct activity view = activity_view(seen->act, less[i]);
		const struct seen on = { seen->host, seen->vm, &view };
		struct hypothesis own, wide;
		hypothesis_copy(&own, h);
		hypothesis_count(&own, &on);
		hypothesis_near(&wide, h, &view, 0, DOUBTED_NS);
		hypothesis_test(&wide, &on);
		const bool better = wide.outside == 0 && own.outside > 0 && wide.inside >= own.inside && wide.clock.pieces == 1;
		activity_view_end(&view);
		if (better) {
			*part = less[i];
			stretch(seen, part, true, &wide);
			stretch(seen, part, false, &wide);
		}
		hypothesis_release(&own);
		hypothesis_release(better ? h : &wide);
		if (better)
			*h = wide;
	}
}

/* A part of the trace on which one line holds, about that place; false when there is none that is proved. */
static bool try_part(const struct seen *seen, double where, int64_t length, int64_t lags, struct segment *part,
                     struct hypothesis *out)
{
	struct guess_list guesses;
	struct hypothesis_list l = { .n = 0 };
	const char *doubt = search_nowhere;
	guess_clocks(seen, where, length, lags, &guesses);
	test_outwards(seen, &guesses, true, &l);
	confront(seen, &l);
	if (l.n > 0 && l.item[0].clock.pieces == 1) {
		struct hypothesis *h = &l.item[0];
		*part = l.at;
		stretch(seen, part, true, h);
		stretch(seen, part, false, h);
		retry(seen, part, h);
		doubt = doubt_of(&l);
		if (!doubt) {
			struct activity view = activity_view(seen->act, *part);
			hypothesis_doubt(h, &(struct seen){ seen->host, seen->vm, &view });
			activity_view_end(&view);
			h->clock.piece[0].from = part->from;
			take(&l, doubt, out);
		}
	}
	list_release(&l);
	return !doubt;
}

/* Steps may be anywhere, so several places are tried, and places that are not the whole trace. */
static bool find_part(const struct seen *seen, struct segment *part, struct hypothesis *out)
{
	static const double where[] = { 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875 };
	int64_t span = seen->act->end - seen->act->begin, length = span / 3 < SEGMENT_NS / 2 ? span / 3 : SEGMENT_NS / 2;
	length = length < PART_LEAST_NS ? PART_LEAST_NS : length;
	size_t places = (size_t)(span / length) + 1;
	for (size_t i = 0; i < sizeof where / sizeof *where && i < places; i++)
		if (try_part(seen, where[i], length, i == 0 ? LAGS_FEW : LAGS_MANY, part, out))
			return true;
	return false;
}

static void solve_parts(const struct seen *seen, int depth, struct hypothesis *out)
{
	struct segment part;
	struct hypothesis found;
	if (depth > PARTS_DEPTH || seen->act->end - seen->act->begin < PART_LEAST_NS || !find_part(seen, &part, &found))
		return;
	const struct segment side[2] = { { seen->act->begin, part.from - 1 }, { part.to + 1, seen->act->end } };
	for (int i = 0; i < 2; i++) {
		struct activity view = activity_view(seen->act, side[i]);
		if (i == 1)
			append(&out->clock, &found.clock);
		solve_parts(&(struct seen){ seen->host, seen->vm, &view }, depth + 1, out);
		activity_view_end(&view);
	}
	out->pairs += found.pairs;
	out->used += found.used;
}

/* Narrows all parts together: where one ends and the next begins is a matter of the events on both sides. */
static void polish(const struct seen *seen, struct hypothesis *parts)
{
	struct hypothesis all;
	hypothesis_copy(&all, parts);
	hypothesis_test(&all, seen);
	jumps_place(seen, &(struct pair_list){ 0 }, &all.clock);  /* what lies about them is of neither part */
	if (hypothesis_share(&all) < hypothesis_share(parts) || all.clock.pieces > parts->clock.pieces) {
		hypothesis_release(&all);
		return;
	}
	hypothesis_doubt(&all, seen);
	for (size_t i = 0; i < all.clock.pieces && i < parts->clock.pieces; i++)
		if (parts->clock.piece[i].quality < all.clock.piece[i].quality)
			all.clock.piece[i].quality = parts->clock.piece[i].quality;
	hypothesis_release(parts);
	*parts = all;
}

void search_containment(const struct seen *seen, bool steps, struct hypothesis *out)
{
	*out = (struct hypothesis){ .doubt = search_nowhere };
	if (!steps) {
		solve_whole(seen, out);
		return;
	}
	struct hypothesis parts = { 0 };
	solve_parts(seen, 0, &parts);
	hypothesis_count(&parts, seen);
	if (parts.clock.pieces == 0)
		return;
	polish(seen, &parts);
	*out = parts;
}
