#include "sync/search/clock_candidate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define ROUNDS 32

struct round {
	const struct seen *seen;
	const struct clock_map *clock;
	double *evidence;  /* by piece of the clock */
	int64_t from, to;  /* host ns, what the activity spans */
	struct pair_list pairs;
	size_t thinned;  /* pairs before this one are thinned out */
	struct hypothesis *out;
};

/* The window that an event at [low, high] lies in: its index, or -1 = unclear, or -2 = none. */
static int64_t window_of(const struct vthread *th, int64_t low, int64_t high, size_t *near, bool *violates)
{
	*violates = false;
	const size_t n = *near = vthread_windows(th, high, *near);
	if (n > 0 && th->window[n - 1].to >= low)
		return n > 1 && th->window[n - 2].to >= low ? -1 : (int64_t)n - 1;
	*violates = true;
	int64_t before = n > 0 ? low - th->window[n - 1].to : INT64_MAX;
	int64_t after = n < th->windows ? th->window[n].from - high : INT64_MAX;
	if (before <= DELAY_NS && after / 3 > before)
		return (int64_t)n - 1;
	if (after <= DELAY_NS && before / 3 > after)
		return (int64_t)n;
	return -2;
}

struct open_window { const struct vthread *th; int64_t index, first, last; };

static void emit(struct round *r, struct open_window *w, unsigned cpu)
{
	if (w->index < 0)
		return;
	struct pair_list *l = &r->pairs;
	const struct span *s = &w->th->window[w->index];
	size_t before = l->len;
	int32_t thread = (int32_t)(w->th - r->seen->host->thread);
	/* The ends of the host's trace bound windows that it did not see begin or end. */
	if (s->from > r->seen->host->begin)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = (struct pair){ w->first, s->from, HULL_LOWER, (int32_t)cpu, thread, 0 };
	if (s->to < r->seen->host->end)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = (struct pair){ w->last, s->to, HULL_UPPER, (int32_t)cpu, thread, 0 };
	r->out->pairs += l->len - before;
	w->index = -1;
	if (l->len - r->thinned >= 8 * THIN_PAIRS) {
		pairs_thin(l, r->thinned, THIN_PAIRS / 2);
		r->thinned = l->len;
	}
}

static void walk_cpu(struct round *r, const struct activity_cpu *c, unsigned cpu)
{
	struct open_window w = { NULL, -1, 0, 0 };
	struct clock_near edge = { 0 };
	size_t near = 0, piece = 0, gap = SIZE_MAX;  /* the one between windows that an event was seen in */
	double weight = 0;
	for (size_t i = 0; i < c->len; i++) {
		int64_t t = c->ts[i], low, high;
		while (piece + 1 < r->clock->pieces && r->clock->piece[piece + 1].from <= t)
			piece++;
		if (clock_map_unsure(r->clock, t) || !clock_map_bounds_near(r->clock, t, &edge, &low, &high) ||
		    low < r->seen->host->begin || high > r->seen->host->end)
			continue;
		const struct vthread *th = vm_thread_at(r->seen->host, r->seen->vm, cpu, low);
		if (!th || vthread_blind(th, low, high))
			continue;
		if (th != w.th) {
			emit(r, &w, cpu);
			near = 0;
			weight = -log(fmax(fmin(vthread_duty(r->seen->host, th, r->from, r->to), 0.9999), 1e-4));
		}
		w.th = th;
		bool violates;
		int64_t index = window_of(th, low, high, &near, &violates);
		r->out->ambiguous += index == -1;
		if (index == -2 && near != gap) {
			gap = near;
			r->out->most += weight;
		}
		if (index < 0)
			continue;
		if (index != w.index) {
			emit(r, &w, cpu);
			w.first = t;
			r->out->most += weight;
			r->evidence[piece] += violates ? -weight : weight;
		}
		w.index = index;
		w.last = t;
	}
	emit(r, &w, cpu);
}

/* All events under the clock so far: pairs, in any order. */
static void walk(struct round *r)
{
	const struct activity *act = r->seen->act;
	r->out->pairs = r->out->ambiguous = 0;
	r->out->evidence = r->out->most = 0;
	r->evidence = mem_new(r->clock->pieces, sizeof *r->evidence);
	r->from = clock_map_at(r->clock, act->begin);
	r->to = clock_map_at(r->clock, act->end);
	for (unsigned c = 0; c < act->cpus; c++)
		walk_cpu(r, &act->cpu[c], c);
	for (size_t i = 0; i < r->clock->pieces; i++)
		r->out->evidence = i == 0 ? r->evidence[i] : fmin(r->evidence[i], r->out->evidence);
	free(r->evidence);
}

/* What the events say under a clock, in one number. */
static uint64_t hash_of(const struct pair_list *l)
{
	uint64_t h = 0;
	for (size_t i = 0; i < l->len; i++)
		h = hash_number(hash_number(h, (uint64_t)l->pair[i].x), (uint64_t)l->pair[i].y);
	return h;
}

/* With the others, in order, and no more than can matter. */
static void complete(struct pair_list *l, const struct pair_list *extra)
{
	for (size_t i = 0; extra && i < extra->len; i++)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = extra->pair[i];
	pairs_sort(l->pair, l->len);
	if (l->len > THIN_PAIRS)
		pairs_thin(l, 0, l->len / (THIN_PAIRS / 8));
}

static bool same_edge(const struct clock_edge *a, const struct clock_edge *b)
{
	return a->points == b->points && memcmp(&a->left, &b->left, sizeof a->left) == 0 &&
		memcmp(&a->right, &b->right, sizeof a->right) == 0 &&
		(a->points == 0 || memcmp(a->point, b->point, a->points * sizeof *a->point) == 0);
}

/* Would a walk find the same under both? */
static bool same_clock(const struct clock_map *a, const struct clock_map *b)
{
	bool same = a->pieces == b->pieces;
	for (size_t i = 0; i < a->pieces && same; i++) {
		const struct clock_piece *p = &a->piece[i], *q = &b->piece[i];
		same = p->from == q->from && p->unsure_from == q->unsure_from && p->unsure_to == q->unsure_to &&
			memcmp(&p->line, &q->line, sizeof p->line) == 0 && same_edge(&p->low, &q->low) &&
			same_edge(&p->high, &q->high);
	}
	return same;
}

/* Into the room of another list. */
static void copy_pairs(struct pair_list *to, const struct pair_list *from)
{
	if (to->cap < from->len)
		to->pair = mem_resize(to->pair, to->cap = from->len, sizeof *to->pair);
	if (from->len > 0)
		memcpy(to->pair, from->pair, from->len * sizeof *to->pair);
	*to = (struct pair_list){ .pair = to->pair, .len = from->len, .cap = to->cap };
}

static void swap_clocks(struct clock_map *a, struct clock_map *b)
{
	const struct clock_map was = *a;
	*a = *b;
	*b = was;
}

void narrowed_release(struct narrowed *n)
{
	pairs_release(&n->walked);
	pairs_release(&n->fitted);
}

void hypothesis_narrow(struct hypothesis *h, const struct seen *seen, const struct pair_list *extra, struct narrowed *n)
{
	uint64_t before = 0;
	bool stays = false;
	for (int round = 0; round < ROUNDS && !stays; round++) {
		struct clock_map next;
		if (round > 0 || n->walked.len == 0) {
			struct round r = { .seen = seen, .clock = &h->clock, .out = h,
				.pairs = { .pair = n->walked.pair, .cap = n->walked.cap } };
			walk(&r);
			n->walked = r.pairs;
		}
		const uint64_t now = hash_of(&n->walked);
		if (round > 0 && now == before) {  /* and so would be the clock */
			stays = true;
			break;
		}
		before = now;
		copy_pairs(&n->fitted, &n->walked);
		complete(&n->fitted, extra);
		fit_pairs(&n->fitted, seen->act->begin, &next);
		stays = next.pieces == 0 || same_clock(&h->clock, &next);
		if (next.pieces > 0)
			swap_clocks(&h->clock, &next);
		clock_map_release(&next);
	}
	if (!stays)
		n->walked.len = 0;  /* they are those of an earlier clock */
	h->used = 0;
	for (size_t i = 0; i < n->fitted.len; i++)
		h->used += !n->fitted.pair[i].rejected;
}

void hypothesis_open(struct clock_map *clock, const struct seen *seen, const struct pair_list *extra)
{
	struct hypothesis unused;
	struct round r = { .seen = seen, .clock = clock, .out = &unused };
	struct clock_map same;
	if (clock->pieces == 0)
		return;
	walk(&r);
	complete(&r.pairs, extra);
	fit_pairs(&r.pairs, seen->act->begin, &same);
	fit_open(&r.pairs, clock);
	pairs_release(&r.pairs);
	clock_map_release(&same);
}
