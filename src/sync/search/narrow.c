#include "sync/search/hypothesis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ROUNDS 32
#define NEAR_NS 15000   /* an event outside of every window by less than this belongs to the next one */
#define PENDING_PAIRS 65536
#define THIN_PAIRS 8192 /* more pairs than that are thinned out, block by block, to those that can matter */

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
	(void)vthread_mode(th, high, near);
	size_t n = *near;  /* windows that begin at or before `high` */
	if (n > 0 && th->window[n - 1].to >= low)
		return n > 1 && th->window[n - 2].to >= low ? -1 : (int64_t)n - 1;
	*violates = true;
	int64_t before = n > 0 ? low - th->window[n - 1].to : INT64_MAX;
	int64_t after = n < th->windows ? th->window[n].from - high : INT64_MAX;
	if (before <= NEAR_NS && after / 3 > before)
		return (int64_t)n - 1;
	if (after <= NEAR_NS && before / 3 > after)
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
	if (l->len - r->thinned >= PENDING_PAIRS) {
		pairs_thin(l, r->thinned, PENDING_PAIRS / 16);
		r->thinned = l->len;
	}
}

static void walk_cpu(struct round *r, const struct activity_cpu *c, unsigned cpu)
{
	struct open_window w = { NULL, -1, 0, 0 };
	size_t near = 0, piece = 0;
	double weight = 0;
	for (size_t i = 0; i < c->len; i++) {
		int64_t t = c->ts[i], low, high;
		while (piece + 1 < r->clock->pieces && r->clock->piece[piece + 1].from <= t)
			piece++;
		if (clock_map_unsure(r->clock, t) || !clock_map_bounds(r->clock, t, &low, &high) ||
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
		if (index < 0)
			continue;
		if (index != w.index) {
			emit(r, &w, cpu);
			w.first = t;
			r->evidence[piece] += violates ? -weight : weight;
		}
		w.index = index;
		w.last = t;
	}
	emit(r, &w, cpu);
}

static int by_x(const void *pa, const void *pb)
{
	const struct pair *a = pa, *b = pb;
	return a->x < b->x ? -1 : a->x > b->x;
}

static bool same_line(const struct clock_line *a, const struct clock_line *b)
{
	return a->drift == b->drift && clock_line_at(a, b->ref_guest) == b->ref_host;
}

static bool same_edge(const struct clock_edge *a, const struct clock_edge *b)
{
	return a->points == b->points && (a->points == 0 || memcmp(a->point, b->point, a->points * sizeof *a->point) == 0);
}

static bool same_clock(const struct clock_map *a, const struct clock_map *b)
{
	if (a->pieces != b->pieces)
		return false;
	for (size_t i = 0; i < a->pieces; i++)
		if (a->piece[i].from != b->piece[i].from || !same_line(&a->piece[i].lowest, &b->piece[i].lowest) ||
		    !same_line(&a->piece[i].highest, &b->piece[i].highest) || !same_line(&a->piece[i].line, &b->piece[i].line) ||
		    !same_edge(&a->piece[i].low, &b->piece[i].low) || !same_edge(&a->piece[i].high, &b->piece[i].high))
			return false;
	return true;
}

/* All events under the clock so far: pairs, in any order. */
static void walk(struct round *r)
{
	const struct activity *act = r->seen->act;
	r->out->pairs = r->out->used = r->out->ambiguous = 0;
	r->out->evidence = 0;
	r->evidence = mem_new(r->clock->pieces, sizeof *r->evidence);
	r->from = clock_map_at(r->clock, act->begin);
	r->to = clock_map_at(r->clock, act->end);
	for (unsigned c = 0; c < act->cpus; c++)
		walk_cpu(r, &act->cpu[c], c);
	for (size_t i = 0; i < r->clock->pieces; i++)
		r->out->evidence = i == 0 ? r->evidence[i] : fmin(r->evidence[i], r->out->evidence);
	free(r->evidence);
}

/* The pairs that the events make under its clock so far, and others, fitted: *next is the clock that they give. */
static struct pair_list judge(struct hypothesis *h, const struct seen *seen, const struct pair_list *extra,
                              struct clock_map *next)
{
	struct round r = { .seen = seen, .clock = &h->clock, .out = h };
	walk(&r);
	for (size_t i = 0; extra && i < extra->len; i++)
		*ARRAY_PUSH(r.pairs.pair, r.pairs.len, r.pairs.cap) = extra->pair[i];
	if (r.pairs.len > 1)
		qsort(r.pairs.pair, r.pairs.len, sizeof *r.pairs.pair, by_x);
	if (r.pairs.len > THIN_PAIRS)
		pairs_thin(&r.pairs, 0, r.pairs.len / (THIN_PAIRS / 8));
	fit_pairs(&r.pairs, seen->act->begin, next);
	return r.pairs;
}

void hypothesis_narrow(struct hypothesis *h, const struct seen *seen, const struct pair_list *extra)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct clock_map next;
		struct pair_list pairs = judge(h, seen, extra, &next);
		for (size_t i = 0; i < pairs.len; i++)
			h->used += !pairs.pair[i].rejected;
		bool same = same_clock(&h->clock, &next);
		pairs_release(&pairs);
		if (next.pieces == 0) {
			clock_map_release(&next);
			break;
		}
		clock_map_release(&h->clock);
		h->clock = next;
		if (same)
			break;
	}
}

void hypothesis_open(struct clock_map *clock, const struct seen *seen, const struct pair_list *extra)
{
	struct hypothesis h = { .clock = *clock };
	struct clock_map same;
	if (clock->pieces == 0)
		return;
	struct pair_list pairs = judge(&h, seen, extra, &same);
	fit_open(&pairs, clock);
	pairs_release(&pairs);
	clock_map_release(&same);
}
