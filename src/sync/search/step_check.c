#include "sync/search/step_check.h"

#include <stdlib.h>

#include "sync/fit/error_bounds.h"
#include "sync/search/confidence_range.h"

#define CHANCE_NATS 10.0  /* of evidence that a third must have of its own; its clock was found before it was asked */
#define PLACES 8          /* of a part, at which the rooms of two clocks are compared */
#define ROOM_MAX (16 * DOUBTED_NS)  /* how far from a clock that is not in doubt others are looked for at an end */

static int64_t band_of(const struct clock_map *clock, const struct activity *act)
{
	return clock_map_band(clock, act->begin + (act->end - act->begin) / 2);
}

/* What lies at an end of the trace does not tell its clock: none is known there. */
static void forget(struct hypothesis *h, const struct activity *all, struct segment at)
{
	const int64_t from = at.from <= all->begin ? at.to + 1 : all->begin, to = at.to >= all->end ? at.from - 1 : all->end;
	h->adrift = h->adrift || !clock_map_cut(&h->clock, from, to);
}

/* The width of what is between the two clocks' edges, in the middle of the part. */
static int64_t band_of_both(const struct clock_map *a, const struct clock_map *b, const struct activity *act)
{
	const int64_t t = act->begin + (act->end - act->begin) / 2;
	int64_t low[2], high[2];
	if (!clock_map_bounds(a, t, &low[0], &high[0]) || !clock_map_bounds(b, t, &low[1], &high[1]))
		return INT64_MAX;
	return (high[0] > high[1] ? high[0] : high[1]) - (low[0] < low[1] ? low[0] : low[1]);
}

/* Asks one of the outer thirds.  A clock that suits it, too, held there and perhaps in the middle one. */
static void ask(const struct hypothesis *found, const struct seen *seen, bool last, struct hypothesis *h)
{
	const int64_t begin = seen->act->begin, end = seen->act->end, third = (end - begin) / 3;
	const struct segment asked = { last ? end - third : begin, last ? end : begin + third };
	const struct segment held = { last ? begin + third : begin, last ? end : end - third };
	struct activity act = activity_view(seen->act, asked);
	const struct seen part = { seen->host, seen->vm, &act };
	struct hypothesis own, wide;
	hypothesis_copy(&own, found);
	hypothesis_test(&own, &part);
	hypothesis_near(&wide, found, &act, 0, DOUBTED_NS);
	hypothesis_test(&wide, &part);
	const bool chance = found->clock.piece[0].quality == SYNC_ACCURATE && own.evidence < CHANCE_NATS;
	const bool breaks = wide.clock.pieces > found->clock.pieces;
	const bool another = wide.outside < own.outside;  /* a line that puts fewer of its events out of guest mode */
	const bool open = breaks || another ||
		(wide.ambiguous > 0 && band_of(&wide.clock, &act) > 11 * band_of(&own.clock, &act) / 10);
	const bool single = found->clock.pieces == 1 && !breaks;
	if (chance)
		forget(h, seen->act, asked);
	if (open && !(single && corridor_join(&h->clock.piece[0], &wide.clock, held, DOUBTED_NS)))
		forget(h, seen->act, held);
	for (size_t i = 0; i < h->clock.pieces && (open || chance); i++)
		h->clock.piece[i].quality = SYNC_APPROXIMATE;
	hypothesis_release(&own);
	hypothesis_release(&wide);
	activity_view_end(&act);
}

/* Does the corridor reach an edge of the other one there?  Then what is beyond that may be as good. */
static bool reaches_at(const struct clock_map *clock, const struct clock_map *edges, int64_t t)
{
	int64_t low[2], high[2];
	return !clock_map_bounds(clock, t, &low[0], &high[0]) || !clock_map_bounds(edges, t, &low[1], &high[1])
	       || low[0] <= low[1] || high[0] >= high[1];
}

/* ... in the middle of the part; all: at its ends, too. */
static bool reaches(const struct clock_map *clock, const struct clock_map *edges, const struct activity *act, bool all)
{
	return reaches_at(clock, edges, act->begin + (act->end - act->begin) / 2)
	       || (all && (reaches_at(clock, edges, act->begin) || reaches_at(clock, edges, act->end)));
}

/* A part of the trace, and how much of it that part's clock may hold in; sure: the clock that was found is not in doubt. */
struct end_part { struct segment asked, held; bool sure; };

/* The clocks within `room` ns of that which was found that suit what happened in the part: false if those at the edge do,
 * too, or if they are not one line; then *out is all of them. */
static bool clocks_about(const struct hypothesis *found, const struct seen *part, int64_t room, bool all,
                         struct hypothesis *out)
{
	struct hypothesis any;
	hypothesis_near(&any, found, part->act, 0, room);
	hypothesis_copy(out, &any);
	hypothesis_test(out, part);
	const bool is_one = out->clock.pieces == 1 && out->outside <= hypothesis_may_miss(found)
	                    && !reaches(&out->clock, &any.clock, part->act, all);
	if (!is_one) {
		hypothesis_release(out);
		*out = any;
	} else {
		hypothesis_release(&any);
	}
	return is_one;
}

/* Does a clock that is off by that much put events out of guest mode? */
static bool is_refuted(const struct hypothesis *found, const struct seen *part, int64_t shift)
{
	struct hypothesis h;
	hypothesis_near(&h, found, part->act, shift, 1);
	hypothesis_count(&h, part);
	hypothesis_release(&h);
	return h.outside > hypothesis_may_miss(found);
}

/* The same, with more and more room, up to `most`, until they are one line; all: or until those at both edges do not suit,
 * though nothing tells which of those between is right. */
static bool clocks_within(const struct hypothesis *found, const struct seen *part, int64_t most, bool all, int64_t *room,
                          struct hypothesis *out)
{
	for (;; *room *= 2) {
		const bool is_one = clocks_about(found, part, *room, all, out);
		const bool ends = is_one || (all && is_refuted(found, part, -*room) && is_refuted(found, part, *room));
		if (ends || *room >= most)
			return ends;
		hypothesis_release(out);
	}
}

/* A clock that stepped goes on at its rate: of all clocks that suit the part those with the rate of that which was found,
 * give or take what its corridor leaves open; false: there are none. */
static bool keep_rate(const struct hypothesis *found, const struct activity *act, struct hypothesis *wide)
{
	const int64_t slack = band_of(&found->clock, act) / 2;
	struct clock_point low[PLACES + 1], high[PLACES + 1];
	int64_t least = INT64_MIN, most = INT64_MAX;
	for (int i = 0; i <= PLACES; i++) {
		const int64_t t = act->begin + (act->end - act->begin) / PLACES * i, line = clock_map_at(&found->clock, t);
		low[i].guest = high[i].guest = t;
		if (!clock_map_bounds(&wide->clock, t, &low[i].host, &high[i].host))
			return false;
		least = low[i].host - line > least ? low[i].host - line : least;
		most = high[i].host - line < most ? high[i].host - line : most;
	}
	if (least > most)
		return false;
	hypothesis_release(wide);
	hypothesis_near(wide, found, act, least + (most - least) / 2, (most - least) / 2 + 1 + slack);
	for (int i = 0; i <= PLACES; i++) {
		int64_t lowest, highest;
		clock_map_bounds(&wide->clock, low[i].guest, &lowest, &highest);
		low[i].host = lowest > low[i].host ? lowest : low[i].host;
		high[i].host = highest < high[i].host ? highest : high[i].host;
	}
	corridor_splice(&wide->clock.piece[0].low, low, PLACES + 1);
	corridor_splice(&wide->clock.piece[0].high, high, PLACES + 1);
	return true;
}

/* Opens the corridor to any clock that suits what happened there.  Where those at the edges of all that are asked about
 * do, clocks farther away are no worse, and it has none. */
static void open_end(const struct hypothesis *found, const struct seen *seen, const struct end_part *e,
                     struct hypothesis *h)
{
	struct activity act = activity_view(seen->act, e->asked);
	const struct seen part = { seen->host, seen->vm, &act };
	struct hypothesis own, wide;
	int64_t room = DOUBTED_NS;
	hypothesis_copy(&own, found);
	hypothesis_test(&own, &part);
	bool is_one = clocks_within(found, &part, ROOM_MAX, !e->sure, &room, &wide);
	if (e->sure && is_one)
		is_one = keep_rate(found, &act, &wide);
	/* A part leaves a clock more room than the whole does, always: of one that is not in doubt, twice as much is doubt. */
	const bool wider = !e->sure || !is_one
	                   || band_of_both(&wide.clock, &found->clock, &act) > 2 * band_of(&found->clock, &act);
	const bool asks = wider && own.inside + own.outside > 0;
	if (asks && (!is_one || !corridor_join(&h->clock.piece[0], &wide.clock, e->held, room)))
		forget(h, seen->act, e->held);
	hypothesis_release(&own);
	hypothesis_release(&wide);
	activity_view_end(&act);
}

/* It is not certain that a clock is one line: before each cut it may have been another one, until the next cut perhaps,
 * and after it.  For one that is not in doubt the thirds have spoken already. */
static void open_ends(const struct hypothesis *found, const struct seen *seen, struct hypothesis *h)
{
	static const int cut[] = { 0, 6, 9, 13, 20, 30, 44, 56, 70, 80, 87, 91, 94, 100 };  /* per cent of the trace */
	const int64_t begin = seen->act->begin, end = seen->act->end;
	const bool sure = h->clock.piece[0].quality == SYNC_ACCURATE;
	const int last = sure ? 33 : 100;  /* per cent from each end */
	int64_t at[sizeof cut / sizeof *cut];
	const size_t n = sizeof cut / sizeof *cut;
	for (size_t i = 0; i < n; i++)
		at[i] = begin + (int64_t)((double)(end - begin) * cut[i] / 100);
	for (size_t i = 1; i + 1 < n; i++) {
		if (!h->adrift && cut[i] <= last)
			open_end(found, seen, &(struct end_part){ { begin, at[i] }, { begin, at[i + 1] }, sure }, h);
		if (!h->adrift && cut[i] >= 100 - last)
			open_end(found, seen, &(struct end_part){ { at[i], end }, { at[i - 1], end }, sure }, h);
	}
	h->clock.piece[0].quality = h->adrift ? SYNC_APPROXIMATE : h->clock.piece[0].quality;
}

/* A step changes a clock's time, not its rate: how far it is from the piece's line at the ends of the stretch, ns, if
 * another piece's rate is the right one. */
static int64_t lean(const struct clock_map *clock, size_t i, struct segment at)
{
	int64_t most = 0;
	for (size_t k = 0; k < clock->pieces; k++) {
		const int64_t turn = llabs(clock->piece[k].line.drift - clock->piece[i].line.drift);
		most = turn > most ? turn : most;
	}
	return (int64_t)((double)most / (double)(INT64_C(1) << 60) * (double)(at.to - at.from) / 2) + 1;
}

/* What a guess left to a piece of a clock that jumps is no bound: opens its corridor to any clock that suits what happened
 * there, at its rate or another piece's. */
static void open_piece(struct hypothesis *h, size_t i, const struct seen *seen)
{
	struct clock_piece *p = &h->clock.piece[i];
	const bool is_last = i + 1 == h->clock.pieces;
	const struct segment at = { i == 0 ? seen->act->begin : p->unsure_to, is_last ? seen->act->end : p[1].unsure_from - 1 };
	struct activity act = activity_view(seen->act, at);
	const struct seen part = { seen->host, seen->vm, &act };
	struct hypothesis one = { .clock = { .piece = p, .pieces = 1 } }, wide;
	int64_t room = DOUBTED_NS + lean(&h->clock, i, at);
	hypothesis_count(&one, &part);
	const bool ends = clocks_within(&one, &part, ROOM_MAX, true, &room, &wide);
	const bool joined = ends && corridor_join(p, &wide.clock, at, room);
	if (!joined && (i == 0 || is_last))
		forget(h, seen->act, (struct segment){ i == 0 ? at.from : p->unsure_from, is_last ? at.to : p[1].unsure_to });
	h->adrift = h->adrift || (!joined && i > 0 && !is_last);
	hypothesis_release(&wide);
	activity_view_end(&act);
}

/* What is too little to tell. */
static void cut_ends(struct hypothesis *h, const struct clock_map *found, const struct seen *seen)
{
	const struct activity *act = seen->act;
	struct segment known;
	if (!reach_find(seen, found, CHANCE_NATS, &known)) {
		h->adrift = true;
		return;
	}
	forget(h, act, (struct segment){ act->begin, known.from - 1 });
	forget(h, act, (struct segment){ known.to + 1, act->end });
}

void steady_doubt(struct hypothesis *h, const struct seen *seen)
{
	struct hypothesis found;
	if (h->clock.pieces == 0)
		return;
	hypothesis_copy(&found, h);
	ask(&found, seen, false, h);
	ask(&found, seen, true, h);
	if (h->clock.pieces == 1 && !h->adrift)
		open_ends(&found, seen, h);
	cut_ends(h, &found.clock, seen);
	hypothesis_release(&found);
}

void steady_pieces(struct hypothesis *h, const struct seen *seen)
{
	struct hypothesis found;
	hypothesis_copy(&found, h);
	for (size_t i = 0; i < h->clock.pieces; i++)
		if (h->clock.piece[i].quality == SYNC_APPROXIMATE)
			open_piece(h, i, seen);
	cut_ends(h, &found.clock, seen);
	hypothesis_release(&found);
}
