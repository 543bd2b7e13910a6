#include "base/base.h"
#include "sync/search/clock_candidate.h"

#include <math.h>

#include "base/hash.h"

#define ROUNDS 32

struct round {
	const struct evidence *evidence;
	const struct clock_map *clock;
	double *nats;      /* evidence by the clock's segment */
	int64_t from, to;  /* host time of the activity's ends, ns */
	struct pair_list pairs;
	size_t thinned;  /* pairs at the start of the list that are thinned */
	struct clock_candidate *out;
};

/* Returns the index of the window that contains an event with possible host times [low, high]; -1: several windows; -2:
 * none. *violates: the event is outside guest mode; a window that is close enough is returned all the same. */
static int64_t find_window(struct window_cursor *cursor, int64_t low, int64_t high, bool *violates)
{
	const struct vthread *th = cursor->th;
	*violates = false;
	const size_t n = window_cursor_count(cursor, high);
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

static void emit_pairs(struct round *r, struct open_window *w, unsigned cpu)
{
	if (w->index < 0)
		return;
	struct pair_list *l = &r->pairs;
	const struct ns_interval *s = &w->th->window[w->index];
	size_t before = l->len;
	int32_t thread = (int32_t)(w->th - r->evidence->host->thread);
	/* A window cut off by an end of the host's trace has no entry or exit there. */
	if (s->from > r->evidence->host->begin)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = (struct pair){ w->first, s->from, HULL_LOWER, (int32_t)cpu, thread, 0 };
	if (s->to < r->evidence->host->end)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = (struct pair){ w->last, s->to, HULL_UPPER, (int32_t)cpu, thread, 0 };
	r->out->pairs += l->len - before;
	w->index = -1;
	if (l->len - r->thinned >= 8 * THIN_PAIRS) {
		pairs_thin(l, r->thinned, THIN_PAIRS / 2);
		r->thinned = l->len;
	}
}

static void walk_cpu_events(struct round *r, const struct activity_cpu *c, unsigned cpu)
{
	struct open_window w = { NULL, -1, 0, 0 };
	struct window_cursor cursor = { r->evidence->host, r->evidence->vm, cpu, NULL, 0 };
	struct clock_hint edge = { 0 };
	size_t segment = 0, gap = SIZE_MAX;  /* gap: last gap between windows with a counted event */
	double weight = 0;
	const bool is_steady = clock_map_has_steady_bounds(r->clock) && window_cursor_is_constant(&cursor);
	int64_t same_until = INT64_MIN;  /* guest time up to which events belong to w */
	for (size_t i = 0; i < c->len; i++) {
		int64_t t = c->ts[i], low, high;
		if (t <= same_until) {
			w.last = t;
			continue;
		}
		while (segment + 1 < r->clock->segments && r->clock->segment[segment + 1].from <= t)
			segment++;
		if (clock_map_is_ambiguous(r->clock, t) || !clock_map_bounds_hint(r->clock, t, &edge, &low, &high) ||
		    low < r->evidence->host->begin || high > r->evidence->host->end)
			continue;
		const struct vthread *th = window_cursor_seek(&cursor, low);
		if (!th || vthread_is_unknown(th, low, high))
			continue;
		if (th != w.th) {
			emit_pairs(r, &w, cpu);
			weight = -log(fmax(fmin(vthread_duty(r->evidence->host, th, r->from, r->to), 0.9999), 1e-4));
		}
		w.th = th;
		bool violates;
		int64_t index = find_window(&cursor, low, high, &violates);
		r->out->ambiguous += index == -1;
		if (index == -2 && cursor.started != gap) {
			gap = cursor.started;
			r->out->nats_max += weight;
		}
		if (index < 0)
			continue;
		if (index != w.index) {
			emit_pairs(r, &w, cpu);
			w.first = t;
			r->out->nats_max += weight;
			r->nats[segment] += violates ? -weight : weight;
		}
		w.index = index;
		w.last = t;
		if (is_steady && !violates)
			same_until = window_cursor_inside_until(&cursor, &th->window[index], t, high);
		if (r->clock->known_from != r->clock->known_to && same_until > r->clock->known_to)
			same_until = r->clock->known_to;
	}
	emit_pairs(r, &w, cpu);
}

/* Computes the pairs of all events under the current clock, unsorted. */
static void walk_events(struct round *r)
{
	const struct activity *activity = r->evidence->activity;
	r->out->pairs = r->out->ambiguous = 0;
	r->out->nats = r->out->nats_max = 0;
	r->nats = mem_new(r->clock->segments, sizeof *r->nats);
	r->from = clock_map_at(r->clock, activity->begin);
	r->to = clock_map_at(r->clock, activity->end);
	for (unsigned c = 0; c < activity->cpus; c++)
		walk_cpu_events(r, &activity->cpu[c], c);
	for (size_t i = 0; i < r->clock->segments; i++)
		r->out->nats = i == 0 ? r->nats[i] : fmin(r->nats[i], r->out->nats);
	free(r->nats);
}

/* Returns a hash of the pairs, to detect that a round changed nothing. */
static uint64_t hash_of(const struct pair_list *l)
{
	uint64_t h = 0;
	for (size_t i = 0; i < l->len; i++)
		h = hash_number(hash_number(h, (uint64_t)l->pair[i].x), (uint64_t)l->pair[i].y);
	return h;
}

/* Adds the extra pairs to the list, sorts and thins it. */
static void add_extra_pairs(struct pair_list *l, const struct pair_list *extra)
{
	for (size_t i = 0; extra && i < extra->len; i++)
		*ARRAY_PUSH(l->pair, l->len, l->cap) = extra->pair[i];
	pairs_sort(l->pair, l->len);
	if (l->len > THIN_PAIRS)
		pairs_thin(l, 0, l->len / (THIN_PAIRS / 8));
}

static bool same_edge(const struct clock_bound *a, const struct clock_bound *b)
{
	return a->points == b->points && memcmp(&a->left, &b->left, sizeof a->left) == 0 &&
		memcmp(&a->right, &b->right, sizeof a->right) == 0 &&
		(a->points == 0 || memcmp(a->point, b->point, a->points * sizeof *a->point) == 0);
}

/* Returns true if both clocks are equal, so that they lead to the same pairs. */
static bool same_clock(const struct clock_map *a, const struct clock_map *b)
{
	bool same = a->segments == b->segments;
	for (size_t i = 0; i < a->segments && same; i++) {
		const struct clock_segment *p = &a->segment[i], *q = &b->segment[i];
		same = p->from == q->from && p->ambiguous_from == q->ambiguous_from && p->ambiguous_to == q->ambiguous_to &&
			memcmp(&p->line, &q->line, sizeof p->line) == 0 && same_edge(&p->low, &q->low) &&
			same_edge(&p->high, &q->high);
	}
	return same;
}

/* Copies pairs, reusing the memory of *to. */
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
	const struct clock_map old = *a;
	*a = *b;
	*b = old;
}

void narrowing_release(struct narrowing *n)
{
	pairs_release(&n->walked);
	pairs_release(&n->fitted);
}

void clock_candidate_narrow(struct clock_candidate *h, const struct evidence *evidence, const struct pair_list *extra,
                            struct narrowing *n)
{
	uint64_t before = 0;
	bool stays = false;
	const struct activity *activity = evidence->activity;
	for (int round = 0; round < ROUNDS && !stays && work_spend(activity->budget, activity->len); round++) {
		struct clock_map next;
		if (round > 0 || n->walked.len == 0) {
			struct round r = { .evidence = evidence, .clock = &h->clock, .out = h,
				.pairs = { .pair = n->walked.pair, .cap = n->walked.cap } };
			walk_events(&r);
			n->walked = r.pairs;
		}
		const uint64_t now = hash_of(&n->walked);
		if (round > 0 && now == before) {  /* the fit of the same pairs would not change either */
			stays = true;
			break;
		}
		before = now;
		copy_pairs(&n->fitted, &n->walked);
		add_extra_pairs(&n->fitted, extra);
		fit_pairs(&n->fitted, evidence->activity->begin, &next);
		stays = next.segments == 0 || same_clock(&h->clock, &next);
		if (next.segments > 0)
			swap_clocks(&h->clock, &next);
		clock_map_release(&next);
	}
	if (!stays)
		n->walked.len = 0;  /* the pairs belong to an earlier clock */
	h->inliers = 0;
	for (size_t i = 0; i < n->fitted.len; i++)
		h->inliers += !n->fitted.pair[i].rejected;
}

void clock_candidate_widen_bounds(struct clock_map *clock, const struct evidence *evidence, const struct pair_list *extra)
{
	struct clock_candidate unused;
	struct round r = { .evidence = evidence, .clock = clock, .out = &unused };
	struct clock_map same;
	if (clock->segments == 0)
		return;
	walk_events(&r);
	add_extra_pairs(&r.pairs, extra);
	fit_pairs(&r.pairs, evidence->activity->begin, &same);
	fit_widen_bounds(&r.pairs, clock);
	pairs_release(&r.pairs);
	clock_map_release(&same);
}
