#include "sync/search/clock_candidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/fit/error_bounds.h"

/* A corridor of `room` ns to both sides of a line that passes through two points. */
static void corridor(const struct hull_point p[2], int64_t room, struct clock_piece *piece)
{
	struct hull h;
	hull_init(&h);
	for (int i = 0; i < 2; i++) {
		hull_add(&h, HULL_UPPER, p[i].x, p[i].y + room);
		hull_add(&h, HULL_LOWER, p[i].x, p[i].y - room);
	}
	hull_piece(&h, p[0].x, DRIFT_LIMIT_PPM, piece);
	hull_release(&h);
}

void hypothesis_begin(struct hypothesis *h, const struct guess *g, struct segment seg)
{
	struct hull_point p[2] = { { seg.from, 0 }, { seg.to, 0 } };
	*h = (struct hypothesis){ 0 };
	for (int i = 0; i < 2; i++)
		p[i].y = g->at_host + (int64_t)((double)(p[i].x - g->at_guest) * (1 + g->ppm / 1e6));
	h->clock.piece = mem_new(1, sizeof *h->clock.piece);
	h->clock.pieces = 1;
	h->clock.piece[0].from = seg.from;
	corridor(p, g->slack / 2 + 8000, &h->clock.piece[0]);
}

void hypothesis_near(struct hypothesis *h, const struct hypothesis *like, const struct activity *act, int64_t shift,
                     int64_t room)
{
	const struct clock_map *clock = &like->clock;
	*h = (struct hypothesis){ 0 };
	h->clock = (struct clock_map){ .piece = mem_new(clock->pieces, sizeof *clock->piece), .pieces = clock->pieces };
	for (size_t i = 0; i < clock->pieces; i++) {
		struct hull_point p[2] = { { i == 0 ? act->begin : clock->piece[i].from, 0 },
			{ i + 1 == clock->pieces ? act->end : clock->piece[i + 1].from, 0 } };
		for (int k = 0; k < 2; k++)
			p[k].y = clock_line_at(&clock->piece[i].line, p[k].x) + shift;
		h->clock.piece[i].from = clock->piece[i].from;
		corridor(p, room, &h->clock.piece[i]);
	}
}

void hypothesis_copy(struct hypothesis *to, const struct hypothesis *from)
{
	*to = *from;
	clock_map_copy(&to->clock, &from->clock);
}

void hypothesis_release(struct hypothesis *h)
{
	clock_map_release(&h->clock);
}

void hypothesis_count(struct hypothesis *h, const struct seen *seen)
{
	const struct host_view *host = seen->host;
	h->inside = h->outside = 0;
	for (unsigned c = 0; c < seen->act->cpus; c++) {
		size_t near = 0;
		const struct vthread *last = NULL;
		for (size_t i = 0; i < seen->act->cpu[c].len; i++) {
			int64_t at = clock_map_at(&h->clock, seen->act->cpu[c].ts[i]);
			if (at < host->begin || at > host->end)
				continue;
			const struct vthread *th = vm_thread_at(host, seen->vm, c, at);
			if (th != last)
				near = 0;
			last = th;
			enum guest_mode mode = th ? vthread_mode(th, at, &near) : MODE_OUT;
			h->inside += mode == MODE_IN;
			h->outside += mode == MODE_OUT;
		}
	}
}

void hypothesis_test(struct hypothesis *h, const struct seen *seen)
{
	struct narrowed unused = { 0 };
	hypothesis_narrow(h, seen, NULL, &unused);
	narrowed_release(&unused);
	hypothesis_count(h, seen);
}

double hypothesis_share(const struct hypothesis *h)
{
	uint64_t all = h->inside + h->outside;
	return all == 0 ? 0 : (double)h->inside / (double)all;
}

bool hypothesis_distinct(const struct hypothesis *a, const struct hypothesis *b, struct segment seg)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = seg.from + (seg.to - seg.from) / 2 * i;
		if (llabs(clock_map_at(&a->clock, t) - clock_map_at(&b->clock, t)) > DISTINCT_NS)
			return true;
	}
	return false;
}

size_t hypothesis_jumps(const struct hypothesis *h)
{
	size_t n = 0;
	for (size_t i = 1; i < h->clock.pieces; i++)
		n += fit_jumps(&h->clock, i);
	return n;
}

/* Is the corridor of `a` within that of `b`, give or take a tenth, at both ends and in the middle? */
static bool as_narrow(const struct clock_map *a, const struct clock_map *b, const struct activity *act)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = act->begin + (act->end - act->begin) / 2 * i, low[2], high[2];
		if (!clock_map_bounds(a, t, &low[0], &high[0]) || !clock_map_bounds(b, t, &low[1], &high[1]))
			return false;
		const int64_t by = (high[1] - low[1]) / 10 + 1;
		if (high[0] - low[0] > high[1] - low[1] + by || high[0] < low[1] - by || low[0] > high[1] + by)
			return false;
	}
	return true;
}

/* Piece i's corridor becomes as wide as to hold that of the other clock's, too. */
static void join_piece(struct clock_map *clock, const struct clock_map *other, size_t i, const struct activity *act)
{
	struct clock_piece *p = &clock->piece[i], *next = i + 1 < clock->pieces ? p + 1 : NULL;
	const struct segment at = { i == 0 ? act->begin : p->from, next ? next->from : act->end };
	(void)corridor_join(p, &(struct clock_map){ .piece = &other->piece[i], .pieces = 1 }, at, DOUBTED_NS);
}

/* The narrowing began in a corridor that was guessed; what it found is right if the guess was, and another guess nearby may
 * lead to other windows that contain all events as well.  Here it begins again in a corridor so wide that the true
 * clock cannot be missed, and decides only what can be decided.  Where that ends at the same corridor, no other clock
 * fits.  Where it stays wider, that is what is known; where it is another clock, which fits less well, it is both's. */
void hypothesis_doubt(struct hypothesis *h, const struct seen *seen)
{
	struct hypothesis wide;
	hypothesis_near(&wide, h, seen->act, 0, DOUBTED_NS);
	hypothesis_test(&wide, seen);
	bool better = hypothesis_share(&wide) >= hypothesis_share(h);
	if (wide.clock.pieces != h->clock.pieces && !better) {
		hypothesis_release(&wide);
		return;
	}
	bool same = as_narrow(&wide.clock, &h->clock, seen->act);
	bool ambiguous = !same && (!better || wide.ambiguous > 0);
	for (size_t i = 0; i < wide.clock.pieces && !better && !same; i++) {
		wide.clock.piece[i].line = h->clock.piece[i].line;
		join_piece(&wide.clock, &h->clock, i, seen->act);
	}
	if (better) {
		hypothesis_release(h);
		*h = wide;
	} else if (!same) {
		hypothesis_release(h);
		h->clock = wide.clock;
	} else {
		hypothesis_release(&wide);
	}
	for (size_t i = 0; i < h->clock.pieces && ambiguous; i++)
		if (h->clock.piece[i].quality == SYNC_ACCURATE)
			h->clock.piece[i].quality = SYNC_APPROXIMATE;
}
