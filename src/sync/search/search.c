#include "sync/search/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/search/aim.h"
#include "sync/search/rivals.h"

#define SEGMENT_NS 4000000000LL
#define SHARE_LEAST 0.9       /* less is no hypothesis */
#define RIVAL_MISSES 3        /* a rival may have so many more events outside than thrice those of the best */
#define CROWD_MAX 0.65        /* a guess that was left out had this share of the winner's score */
#define PARTS_DEPTH 6
#define PART_NS 2000000000LL
#define PART_LEAST_NS 500000000LL
#define STEP_FIND_NS 20000000LL

const char *const search_nowhere = "no offset puts its events into guest mode";

/* Hypotheses, the best first, all tested on the same stretch of the trace. */
struct ladder {
	struct trial trial[GUESSES_MAX];
	size_t n;
	struct segment at;
	bool rivals;       /* another one than the best has proved itself as well */
	bool open;         /* there may be more that nobody has looked at */
	bool partial;      /* some part was proved to fit, what came next did not */
};

static int by_share(const void *pa, const void *pb)
{
	const struct trial *a = pa, *b = pb;
	double sa = trial_share(a), sb = trial_share(b);
	if (sa != sb)
		return sa > sb ? -1 : 1;
	return a->inside > b->inside ? -1 : a->inside < b->inside;
}

/* Is it as good as the best of those before it, or is it one of them, or nothing?  most: times that the best of them
 * can be compared at. */
static bool worth(const struct ladder *l, size_t n, const struct trial *t, uint64_t most)
{
	if (trial_share(t) < SHARE_LEAST || t->inside + t->outside < most / 4 || trial_jumps(t))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!trial_distinct(&l->trial[i], t, l->at))
			return false;
	return n == 0 || t->outside <= 3 * l->trial[0].outside + 10;
}

static bool is_rival(const struct trial *best, const struct trial *t)
{
	return t->lock.evidence >= EVIDENCE_MIN && 2 * t->inside > best->inside
	       && t->outside <= 3 * best->outside + RIVAL_MISSES;
}

/* Tests all on the segment; those that others are better than go. */
static void test_on(const struct versus *v, struct segment seg, struct ladder *l)
{
	struct activity view = activity_view(v->act, seg);
	const struct versus part = { v->host, v->vm, &view };
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		trial_lock(&l->trial[i], &part);
	activity_view_end(&view);
	if (l->n > 0)
		qsort(l->trial, l->n, sizeof *l->trial, by_share);
	l->at = seg;
	l->rivals = false;
	uint64_t most = 0;
	for (size_t i = 0; i < l->n && trial_share(&l->trial[i]) >= SHARE_MIN; i++)
		if (l->trial[i].inside + l->trial[i].outside > most)
			most = l->trial[i].inside + l->trial[i].outside;
	for (size_t i = 0; i < l->n; i++) {
		struct trial t = l->trial[i];
		if (!worth(l, n, &t, most)) {
			trial_release(&t);
			continue;
		}
		l->rivals = l->rivals || (n > 0 && is_rival(&l->trial[0], &t));
		l->trial[n++] = t;
	}
	l->n = n;
}

static bool passes(const struct ladder *l)
{
	return l->n > 0 && trial_share(&l->trial[0]) >= SHARE_MIN;
}

static void ladder_release(struct ladder *l)
{
	for (size_t i = 0; i < l->n; i++)
		trial_release(&l->trial[i]);
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
static void climb(const struct versus *v, const struct aim *aim, bool steps, struct ladder *l)
{
	l->n = 0;
	for (size_t i = 0; i < aim->list.n; i++)
		trial_begin(&l->trial[l->n++], &aim->list.guess[i], aim->seg);
	test_on(v, aim->seg, l);
	bool proved = false;
	while (l->n > 0 && !covers_all(l->at, v->act)) {
		struct ladder before = { .at = l->at, .n = 1, .rivals = l->rivals };
		bool passed = passes(l);
		proved = proved || (passed && l->trial[0].lock.evidence >= EVIDENCE_MIN);
		trial_copy(&before.trial[0], &l->trial[0]);
		test_on(v, wider(l->at, v->act), l);
		if (steps && passed && !passes(l)) {
			ladder_release(l);
			*l = before;
			break;
		}
		ladder_release(&before);
	}
	l->partial = proved && !passes(l);
}

/* Puts the best to the test against all others of its drift, wherever they are: one of them may be better. */
static void confront_once(const struct versus *v, struct ladder *l)
{
	struct activity view = activity_view(v->act, l->at);
	const struct versus part = { v->host, v->vm, &view };
	struct rivals r;
	const struct trial *best = &l->trial[0];
	rivals_find(&part, best, &r);
	for (size_t i = 0; i < r.n && l->n < GUESSES_MAX; i++)
		trial_near(&l->trial[l->n++], best, &view, r.rival[i].shift, r.rival[i].room);
	activity_view_end(&view);
	l->open = !r.all;
	if (r.n > 0)
		test_on(v, l->at, l);
}

static void confront(const struct versus *v, struct ladder *l)
{
	for (uint64_t outside = UINT64_MAX; l->n > 0 && l->trial[0].outside < outside;) {
		outside = l->trial[0].outside;
		confront_once(v, l);
	}
}

/* What speaks against the best, or NULL. */
static const char *doubt_of(const struct ladder *l)
{
	const struct trial *t = &l->trial[0];
	if (trial_share(t) < SHARE_MIN)
		return search_nowhere;
	if (t->lock.evidence < EVIDENCE_MIN)
		return "its activity is too little to tell the right offset from chance";
	if (l->rivals)
		return "several offsets fit its events equally well";
	if (l->open && t->crowd > CROWD_MAX)
		return "its activity repeats itself, several offsets may fit";
	for (size_t i = 0; i < t->clock.pieces; i++)
		if (t->clock.piece[i].quality != SYNC_ACCURATE)
			return "its activity does not bound its clock";
	return NULL;
}

static void take(struct trial *t, const char *doubt, struct found *out)
{
	*out = (struct found){ .clock = t->clock, .lock = t->lock, .share = trial_share(t),
		.sure = doubt == NULL, .doubt = doubt };
	t->clock = (struct clock_map){ NULL, 0 };
}

/* One segment: the whole way from the coarse search to a judgement. */
static void attempt(const struct versus *v, const struct try *try, struct found *out)
{
	struct aim aim;
	struct ladder l = { .n = 0 };
	out->doubt = search_nowhere;
	aim_take(v, try, &aim);
	climb(v, &aim, false, &l);
	confront(v, &l);
	if (l.n > 0) {
		const char *doubt = doubt_of(&l);
		if (doubt == NULL)
			trial_doubt(&l.trial[0], v);
		take(&l.trial[0], doubt, out);
		out->hopeless = l.rivals && out->share >= SHARE_MIN;
	}
	out->partial = l.partial;
	ladder_release(&l);
}

/* Where to begin.  Of a trace too long to keep, both ends are kept, and little in between. */
static const struct try anywhere[] = {
	{ 0.5, SEGMENT_NS, LAGS_FEW }, { 0.3, 4 * SEGMENT_NS, LAGS_MANY }, { 0.6, 16 * SEGMENT_NS, LAGS_MANY },
};
static const struct try ends[] = {
	{ 0, SEGMENT_NS, LAGS_MANY }, { 1, SEGMENT_NS, LAGS_MANY }, { 0.5, 16 * SEGMENT_NS, LAGS_MANY },
};

/* The whole trace with one line, or with some that follow on each other without a jump. */
static void solve_whole(const struct versus *v, struct found *out)
{
	const struct try *try = v->host->sliced > 0 || v->act->sliced > 0 ? ends : anywhere;
	bool partial = false;
	for (size_t i = 0; i < 3 && !out->sure && !out->hopeless && !partial; i++) {
		struct found f = { .doubt = search_nowhere };
		if (i > 0 && try[i - 1].length >= v->act->end - v->act->begin)
			break;  /* the other segments are the same one */
		attempt(v, &try[i], &f);
		partial = f.partial;
		if (f.sure || f.hopeless || f.share > out->share) {
			found_release(out);
			*out = f;
		} else {
			found_release(&f);
		}
	}
	out->hopeless = !out->sure && out->share >= SHARE_MIN;
}

/* ---- a clock that steps: the parts of the trace that one line fits, one after another */

/* Locks the clock on `whole`, which is more than it was tested on by `more`; true when both are contained, with one
 * line.  (What is new counts by itself: it may be little, and all beyond a step.) */
static bool holds(const struct versus *v, const struct trial *start, struct segment whole, struct segment more,
                  struct trial *t)
{
	struct activity view = activity_view(v->act, whole), added = activity_view(v->act, more);
	struct trial beyond;
	trial_copy(t, start);
	trial_lock(t, &(struct versus){ v->host, v->vm, &view });
	beyond = *t;
	trial_count(&beyond, &(struct versus){ v->host, v->vm, &added });
	activity_view_end(&view);
	activity_view_end(&added);
	return trial_share(t) >= SHARE_MIN && t->clock.pieces == 1
	       && (double)beyond.outside <= (1 - SHARE_MIN) * (double)(beyond.inside + beyond.outside);
}

/* Moves one end of the part on which the clock holds as far as it goes. */
static void stretch(const struct versus *v, struct segment *part, bool right, struct trial *t)
{
	const struct activity *act = v->act;
	int64_t *edge = right ? &part->to : &part->from, bad = right ? act->end + 1 : act->begin - 1;
	for (int64_t step = part->to - part->from; llabs(bad - *edge) > STEP_FIND_NS;) {
		/* Doubling steps first; halves of what is left once an end that fails is known. */
		int64_t left = llabs(bad - *edge), by = left / 2 < step ? left / 2 : step;
		if (step >= left - 1 && (bad > act->end || bad < act->begin))
			by = left - 1;
		int64_t next = right ? *edge + by : *edge - by;
		struct trial longer;
		struct segment whole = { right ? part->from : next, right ? next : part->to };
		struct segment more = { right ? part->to + 1 : next, right ? next : part->from - 1 };
		if (!holds(v, t, whole, more, &longer)) {
			bad = next;
			trial_release(&longer);
			continue;
		}
		step *= 2;
		trial_release(t);
		*t = longer;
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
	*more = (struct clock_map){ NULL, 0 };
}

/* A part of the trace on which one line holds, about that place; false when there is none that is proved. */
static bool try_part(const struct versus *v, const struct try *try, struct segment *part, struct found *out)
{
	struct aim aim;
	struct ladder l = { .n = 0 };
	const char *doubt = search_nowhere;
	aim_take(v, try, &aim);
	climb(v, &aim, true, &l);
	confront(v, &l);
	if (l.n > 0 && l.trial[0].clock.pieces == 1) {
		struct trial *t = &l.trial[0];
		*part = l.at;
		stretch(v, part, true, t);
		stretch(v, part, false, t);
		doubt = doubt_of(&l);
		if (doubt == NULL) {
			struct activity view = activity_view(v->act, *part);
			trial_doubt(t, &(struct versus){ v->host, v->vm, &view });
			activity_view_end(&view);
			t->clock.piece[0].from = part->from;
			take(t, doubt, out);
		}
	}
	ladder_release(&l);
	return doubt == NULL;
}

/* Steps may be anywhere, so several places are tried, and places that are not the whole trace. */
static bool find_part(const struct versus *v, struct segment *part, struct found *out)
{
	static const double where[] = { 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875 };
	int64_t span = v->act->end - v->act->begin, length = span / 3 < PART_NS ? span / 3 : PART_NS;
	length = length < PART_LEAST_NS ? PART_LEAST_NS : length;
	size_t places = (size_t)(span / length) + 1;
	for (size_t i = 0; i < sizeof where / sizeof *where && i < places; i++)
		if (try_part(v, &(struct try){ where[i], length, i == 0 ? LAGS_FEW : LAGS_MANY }, part, out))
			return true;
	return false;
}

static void solve_parts(const struct versus *v, int depth, struct found *out)
{
	struct segment part;
	struct found f;
	if (depth > PARTS_DEPTH || v->act->end - v->act->begin < PART_LEAST_NS || !find_part(v, &part, &f))
		return;
	const struct segment side[2] = { { v->act->begin, part.from - 1 }, { part.to + 1, v->act->end } };
	for (int i = 0; i < 2; i++) {
		struct activity view = activity_view(v->act, side[i]);
		if (i == 1)
			append(&out->clock, &f.clock);
		solve_parts(&(struct versus){ v->host, v->vm, &view }, depth + 1, out);
		activity_view_end(&view);
	}
	out->lock.pairs += f.lock.pairs;
	out->lock.used += f.lock.used;
}

/* Locks all parts together: where one ends and the next begins is a matter of the events on both sides. */
static void polish(const struct versus *v, struct found *parts)
{
	struct trial t = { .clock = parts->clock }, all;
	trial_copy(&all, &t);
	trial_lock(&all, v);
	if (trial_share(&all) < parts->share || all.clock.pieces == 0 || all.clock.pieces > t.clock.pieces) {
		trial_release(&all);
		return;
	}
	trial_doubt(&all, v);
	for (size_t i = 0; i < all.clock.pieces && i < t.clock.pieces; i++)
		if (t.clock.piece[i].quality < all.clock.piece[i].quality)
			all.clock.piece[i].quality = t.clock.piece[i].quality;
	found_release(parts);
	take(&all, NULL, parts);
}

void search_containment(const struct versus *v, bool steps, struct found *out)
{
	memset(out, 0, sizeof *out);
	out->doubt = search_nowhere;
	if (!steps) {
		solve_whole(v, out);
		return;
	}
	struct found parts = { 0 };
	solve_parts(v, 0, &parts);
	struct trial all = { .clock = parts.clock };
	trial_count(&all, v);
	parts.share = trial_share(&all);
	if (parts.clock.pieces == 0 || parts.share < PARTS_SHARE_MIN) {
		found_release(&parts);
		return;
	}
	*out = parts;
	out->sure = true;
	out->doubt = NULL;
	polish(v, out);
}

void found_release(struct found *f)
{
	clock_map_release(&f->clock);
}
