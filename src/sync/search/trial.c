#include "sync/search/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

/* Around a guess: what the sweep left open, and some more. */
void trial_begin(struct trial *t, const struct guess *g, struct segment seg)
{
	struct hull_point p[2] = { { seg.from, 0 }, { seg.to, 0 } };
	*t = (struct trial){ .crowd = g->crowd };
	for (int i = 0; i < 2; i++)
		p[i].y = g->at_host + (int64_t)((double)(p[i].x - g->at_guest) * (1 + g->ppm / 1e6));
	t->clock.piece = mem_new(1, sizeof *t->clock.piece);
	t->clock.pieces = 1;
	t->clock.piece[0].from = seg.from;
	corridor(p, g->slack / 2 + 8000, &t->clock.piece[0]);
}

void trial_near(struct trial *t, const struct trial *like, const struct activity *act, int64_t shift, int64_t room)
{
	const struct clock_map *clock = &like->clock;
	*t = (struct trial){ .crowd = like->crowd, .clock = { mem_new(clock->pieces, sizeof *clock->piece), clock->pieces } };
	for (size_t i = 0; i < clock->pieces; i++) {
		struct hull_point p[2] = { { i == 0 ? act->begin : clock->piece[i].from, 0 },
			{ i + 1 == clock->pieces ? act->end : clock->piece[i + 1].from, 0 } };
		for (int k = 0; k < 2; k++)
			p[k].y = clock_line_at(&clock->piece[i].line, p[k].x) + shift;
		t->clock.piece[i].from = clock->piece[i].from;
		corridor(p, room, &t->clock.piece[i]);
	}
}

void trial_copy(struct trial *to, const struct trial *from)
{
	*to = *from;
	clock_map_copy(&to->clock, &from->clock);
}

void trial_release(struct trial *t)
{
	clock_map_release(&t->clock);
}

void trial_count(struct trial *t, const struct versus *v)
{
	const struct host_view *host = v->host;
	t->inside = t->outside = 0;
	for (unsigned c = 0; c < v->act->cpus; c++) {
		size_t near = 0;
		const struct vthread *last = NULL;
		for (size_t i = 0; i < v->act->cpu[c].len; i++) {
			int64_t at = clock_map_at(&t->clock, v->act->cpu[c].ts[i]);
			if (at < host->begin || at > host->end)
				continue;
			const struct vthread *th = vm_thread_at(host, v->vm, c, at);
			if (th != last)
				near = 0;
			last = th;
			enum mode mode = th == NULL ? MODE_OUT : vthread_mode(th, at, &near);
			t->inside += mode == MODE_IN;
			t->outside += mode == MODE_OUT;
		}
	}
}

void trial_lock(struct trial *t, const struct versus *v)
{
	lock_clock(v, NULL, &t->clock, &t->lock);
	trial_count(t, v);
}

double trial_share(const struct trial *t)
{
	uint64_t all = t->inside + t->outside;
	return all == 0 ? 0 : (double)t->inside / (double)all;
}

bool trial_distinct(const struct trial *a, const struct trial *b, struct segment seg)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = seg.from + (seg.to - seg.from) / 2 * i;
		if (llabs(clock_map_at(&a->clock, t) - clock_map_at(&b->clock, t)) > DISTINCT_NS)
			return true;
	}
	return false;
}

bool trial_jumps(const struct trial *t)
{
	for (size_t i = 1; i < t->clock.pieces; i++)
		if (fit_jumps(&t->clock, i))
			return true;
	return false;
}

/* Is the corridor of `a` within that of `b`, give or take a tenth, at both ends and in the middle? */
static bool as_narrow(const struct clock_map *a, const struct clock_map *b, const struct activity *act)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = act->begin + (act->end - act->begin) / 2 * i;
		int64_t wa = clock_map_band(a, t), wb = clock_map_band(b, t);
		if (wa < 0 || wb < 0 || wa > wb + wb / 10 + 1)
			return false;
	}
	return true;
}

/* The lock began in a corridor that was guessed; what it found is right if the guess was, and another guess nearby may
 * lead to other windows that contain all events as well.  Here it begins again in a corridor so wide that the true
 * clock cannot be missed, and decides only what can be decided.  Where that ends at the same corridor, no other clock
 * fits.  Where it stays wider, that is what is known. */
void trial_doubt(struct trial *t, const struct versus *v)
{
	struct trial wide;
	trial_near(&wide, t, v->act, 0, DOUBTED_NS);
	trial_lock(&wide, v);
	bool better = trial_share(&wide) >= trial_share(t);
	if (wide.clock.pieces != t->clock.pieces && !better) {
		trial_release(&wide);
		return;
	}
	bool same = as_narrow(&wide.clock, &t->clock, v->act);
	bool ambiguous = !same && (!better || wide.lock.ambiguous > 0);
	for (size_t i = 0; i < wide.clock.pieces && !better; i++)
		wide.clock.piece[i].line = t->clock.piece[i].line;
	if (better || !same) {
		clock_map_release(&t->clock);
		t->clock = wide.clock;
		t->lock = better ? wide.lock : t->lock;
		t->inside = better ? wide.inside : t->inside;
		t->outside = better ? wide.outside : t->outside;
	} else {
		trial_release(&wide);
	}
	for (size_t i = 0; i < t->clock.pieces && ambiguous; i++)
		if (t->clock.piece[i].quality == SYNC_ACCURATE)
			t->clock.piece[i].quality = SYNC_APPROXIMATE;
}
