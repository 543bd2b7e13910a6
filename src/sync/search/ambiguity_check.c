#include "sync/search/ambiguity_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define SAMPLE 2048             /* events; first, a rival is tested on a quarter of them */
#define BINS (1 << 16)          /* offsets that are looked at together */
#define SHIFTS_MAX (1 << 27)    /* bins in all */
#define BIN_LEAST_NS 2000
#define LEFT_MAX 65536          /* ranges of offsets that are tested with all events */
#define ROUND 32                /* events between two looks at what is left */
#define KILLERS 64
#define TESTS_MAX 50000000      /* events looked up in all, then patience ends; one of a new test counts for twelve */

struct sampled { int64_t at, room; unsigned cpu; };  /* host ns under the clock, and how far that may be off */

struct elimination {
	const struct seen *seen;
	const struct hypothesis *h;
	struct sampled *all;        /* every event; made when the first range asks for it */
	struct sampled *event;      /* the sample, in an order in which any part is a fair one */
	size_t events, meet;        /* meet: of them, those that the clock itself puts where the mode is known */
	int64_t bin;
	int16_t *change;            /* misses: differences from one bin to the next */
	struct span *left;          /* shifts that are left */
	size_t lefts;
	bool overflow;
	struct sparse { struct activity act; uint64_t may_miss; } few, more;  /* for rivals to be tested on */
	struct sampled killer[KILLERS];  /* what spoke against the last range */
	size_t killers;
	uint64_t tests;
};

/* The spans in which the thread may be in guest mode, in order: its windows and its blind spans. */
struct maybe { const struct vthread *th; size_t window, blind; };

static bool next_maybe(struct maybe *m, struct span *out)
{
	const struct vthread *th = m->th;
	bool window = m->window < th->windows, blind = m->blind < th->blinds;
	if (!window && !blind)
		return false;
	if (window && (!blind || th->window[m->window].from <= th->blind[m->blind].from))
		*out = th->window[m->window++];
	else
		*out = th->blind[m->blind++];
	return true;
}

static struct maybe maybe_from(const struct vthread *th, int64_t t)
{
	return (struct maybe){ th, span_find(th->window, th->windows, t), span_find(th->blind, th->blinds, t) };
}

/* Strikes the bins from shift `first` on under which the event lies within from..to for sure, out of guest mode. */
static void strike(struct elimination *e, const struct sampled *ev, int64_t first, int64_t from, int64_t to)
{
	int64_t low = from + ev->room - ev->at - first, high = to - ev->room - ev->at - first;  /* shifts, from `first` */
	int64_t a = low <= 0 ? 0 : (low + e->bin - 1) / e->bin, b = high < 0 ? -1 : (high + 1) / e->bin - 1;
	if (b >= BINS)
		b = BINS - 1;
	if (a > b)
		return;
	e->change[a]++;
	e->change[b + 1]--;
}

static void strike_all(struct elimination *e, const struct sampled *ev, int64_t first)
{
	const struct host_view *host = e->seen->host;
	int64_t from = ev->at + first - ev->room, to = ev->at + first + BINS * e->bin + ev->room;
	const struct vthread *th = vm_thread_at(host, e->seen->vm, ev->cpu, from + (to - from) / 2);
	if (from < host->begin)
		from = host->begin;
	if (to > host->end)
		to = host->end;
	if (!th || from > to)
		return;
	struct maybe m = maybe_from(th, from);
	struct span s;
	for (int64_t out = from; out <= to; out = s.to >= out ? s.to + 1 : out) {
		bool more = next_maybe(&m, &s);
		int64_t end = more && s.from <= to ? s.from - 1 : to;
		if (end >= out)
			strike(e, ev, first, out, end);
		if (!more || s.from > to)
			break;
	}
}

/* Adds up the misses so far; is any bin left? */
static bool any_left(struct elimination *e, int16_t *misses)
{
	int now = 0, least = INT16_MAX;
	for (int i = 0; i < BINS; i++) {
		now += e->change[i];
		misses[i] = (int16_t)(misses[i] + now);
		least = misses[i] < least ? misses[i] : least;
	}
	memset(e->change, 0, (BINS + 1) * sizeof *e->change);
	return least <= (int)e->more.may_miss;
}

/* How far from the middle of the range a clock may be that the elimination has left there. */
static int64_t rival_room(const struct hypothesis *h, const struct activity *act, struct span range)
{
	int64_t band = clock_map_band(&h->clock, act->begin + (act->end - act->begin) / 2);
	return (range.to - range.from) / 2 + (band < 0 ? 0 : band) + 10000;
}

static void leave(struct elimination *e, int64_t from, int64_t to)
{
	if (e->lefts > 0 && e->left[e->lefts - 1].to + e->bin >= from) {
		e->left[e->lefts - 1].to = to;
		return;
	}
	if (e->lefts == LEFT_MAX) {
		e->overflow = true;
		return;
	}
	e->left[e->lefts++] = (struct span){ from, to };
}

/* Would containment under the shift prove anything: as many nats as it takes, of the events in the host's trace?  One
 * event proves what a thread's share in guest mode leaves to chance; several in one window prove no more. */
static bool could_prove(const struct elimination *e, int64_t shift)
{
	const struct host_view *host = e->seen->host;
	const struct activity *act = e->seen->act;
	int64_t begin = clock_map_at(&e->h->clock, act->begin) + shift, end = clock_map_at(&e->h->clock, act->end) + shift;
	double evidence = 0;
	for (unsigned c = 0; c < act->cpus; c++) {
		const struct activity_cpu *cpu = &act->cpu[c];
		const struct vthread *th = vm_thread_at(host, e->seen->vm, c, begin + (end - begin) / 2);
		if (!th)
			continue;
		double weight = -log(fmax(vthread_duty(host, th, begin, end), 1e-4));
		int64_t before = begin < host->begin ? host->begin - begin : 0, after = end > host->end ? end - host->end : 0;
		size_t near = 0, last = SIZE_MAX;
		for (size_t i = activity_find(cpu, act->begin + before); i < cpu->len && cpu->ts[i] <= act->end - after; i++) {
			(void)vthread_mode(th, clock_map_at(&e->h->clock, cpu->ts[i]) + shift, &near);
			evidence += near != last ? weight : 0;
			last = near;
			if (evidence >= EVIDENCE_MIN)
				return true;
		}
	}
	return false;
}

/* Events of the sample that would lie where the host's trace tells the mode. */
static size_t meet(const struct elimination *e, int64_t shift)
{
	const struct host_view *host = e->seen->host;
	size_t n = 0;
	for (size_t i = 0; i < e->events; i++) {
		int64_t at = e->event[i].at + shift;
		if (at < host->begin || at > host->end)
			continue;
		const struct vthread *th = vm_thread_at(host, e->seen->vm, e->event[i].cpu, at);
		n += !th || !vthread_blind(th, at, at);
	}
	return n;
}

/* BINS shifts from `first` on. */
static void eliminate(struct elimination *e, int64_t first, int16_t *misses)
{
	if (meet(e, first + BINS / 2 * e->bin) < e->meet / 4 + 1 || !could_prove(e, first + BINS / 2 * e->bin))
		return;
	memset(misses, 0, BINS * sizeof *misses);
	for (size_t i = 0; i < e->events; i++) {
		strike_all(e, &e->event[i], first);
		if ((i % ROUND == ROUND - 1 || i + 1 == e->events) && !any_left(e, misses))
			return;
	}
	for (int i = 0; i < BINS; i++)
		if (misses[i] <= (int)e->more.may_miss)
			leave(e, first + i * e->bin, first + (i + 1) * e->bin - 1);
}

/* Does the event lie out of guest mode for sure, under any shift of the range? */
static bool is_out(struct elimination *e, const struct sampled *ev, struct span range)
{
	const struct host_view *host = e->seen->host;
	int64_t from = ev->at + range.from - ev->room, to = ev->at + range.to + ev->room;
	e->tests++;
	if (from < host->begin || to > host->end)
		return false;
	const struct vthread *th = vm_thread_at(host, e->seen->vm, ev->cpu, from);
	struct span s;
	if (!th)
		return true;
	struct maybe m = maybe_from(th, from);
	while (next_maybe(&m, &s) && s.from <= to)
		if (s.to >= from)
			return false;
	return true;
}

static struct sampled *sampled(const struct elimination *e, const struct activity *act)
{
	struct sampled *event = mem_new(act->len, sizeof *event), *ev = event;
	for (unsigned c = 0; c < act->cpus; c++) {
		for (size_t i = 0; i < act->cpu[c].len; i++, ev++) {
			int64_t t = act->cpu[c].ts[i], low, high;
			*ev = (struct sampled){ clock_map_at(&e->h->clock, t), 0, c };
			if (clock_map_bounds(&e->h->clock, t, &low, &high))
				ev->room = (high - low) / 2 + 1;
		}
	}
	return event;
}

/* How many events speak against the range, or limit + 1 when more do.  What spoke against the last range is asked
 * first. */
static uint64_t misses_of(struct elimination *e, struct span range, uint64_t limit)
{
	uint64_t missed = 0;
	for (size_t i = 0; i < e->killers; i++)
		missed += is_out(e, &e->killer[i], range);
	if (missed > limit)
		return limit + 1;
	missed = 0;
	e->killers = 0;
	if (!e->all)
		e->all = sampled(e, e->seen->act);
	for (size_t i = 0; i < e->seen->act->len && missed <= limit; i++) {
		if (!is_out(e, &e->all[i], range))
			continue;
		missed++;
		if (e->killers < KILLERS)
			e->killer[e->killers++] = e->all[i];
	}
	return missed;
}

/* About n events, and how many of them a rival may miss: as many as the clock itself, thrice, and some. */
static void take_sparse(struct elimination *e, size_t n, struct sparse *out)
{
	const struct activity *act = e->seen->act;
	const size_t stride = act->len / n + 1;
	size_t skip = 0;
	struct hypothesis own;
	out->act = *act;
	out->act.len = 0;
	out->act.cpu = mem_new(act->cpus, sizeof *act->cpu);
	for (unsigned c = 0; c < act->cpus; c++) {
		struct activity_cpu *to = &out->act.cpu[c];
		for (size_t i = 0; i < act->cpu[c].len; i++)
			if (skip++ % stride == 0)
				*ARRAY_PUSH(to->ts, to->len, to->cap) = act->cpu[c].ts[i];
		out->act.len += to->len;
	}
	hypothesis_copy(&own, e->h);
	hypothesis_test(&own, &(struct seen){ e->seen->host, e->seen->vm, &out->act });
	out->may_miss = 3 * own.outside + (stride > 1 ? 4 : 10);
	hypothesis_release(&own);
}

static void sparse_release(struct sparse *s)
{
	for (unsigned c = 0; c < s->act.cpus; c++)
		free(s->act.cpu[c].ts);
	free(s->act.cpu);
}

static void take_sample(struct elimination *e)
{
	take_sparse(e, SAMPLE / 4, &e->few);
	take_sparse(e, SAMPLE, &e->more);
	e->event = sampled(e, &e->more.act);
	e->events = e->more.act.len;
	for (size_t i = 0; i + 1 < e->events; i++) {
		size_t k = i + (size_t)(hash_number(0, i + 1) >> 33) % (e->events - i);
		struct sampled swap = e->event[i];
		e->event[i] = e->event[k];
		e->event[k] = swap;
	}
}

/* How many of the events lie outside, once the clock has found its best place there. */
static uint64_t test_sparse(struct elimination *e, const struct sparse *s, struct span range)
{
	struct hypothesis h;
	hypothesis_near(&h, e->h, &s->act, range.from + (range.to - range.from) / 2, rival_room(e->h, e->seen->act, range));
	hypothesis_test(&h, &(struct seen){ e->seen->host, e->seen->vm, &s->act });
	hypothesis_release(&h);
	e->tests += 12 * s->act.len;
	return h.outside;
}

static bool better(const struct rival *a, const struct rival *b)
{
	return a->misses != b->misses ? a->misses < b->misses : a->meets > b->meets;
}

/* Tests a range that was left with all events, then anew on the sample, and keeps it if it is among the best.
 * False: enough. */
static bool try_range(struct elimination *e, struct span left, struct rivals *out)
{
	struct rival r = { .shift = left.from + (left.to - left.from) / 2 };
	bool full = out->n == RIVALS_MAX;
	if (left.from > left.to || misses_of(e, left, hypothesis_may_miss(e->h)) > hypothesis_may_miss(e->h))
		return true;
	if (e->tests > TESTS_MAX || (full && out->rival[RIVALS_MAX - 1].misses == 0)) {
		out->all = false;
		return false;
	}
	if (test_sparse(e, &e->few, left) > e->few.may_miss)
		return true;
	r.misses = test_sparse(e, &e->more, left);
	r.meets = meet(e, r.shift);
	r.room = rival_room(e->h, e->seen->act, left);
	if (r.misses > e->more.may_miss)
		return true;
	out->all = out->all && !full;
	size_t at = full ? RIVALS_MAX - 1 : out->n;
	if (full && !better(&r, &out->rival[at]))
		return true;
	for (; at > 0 && better(&r, &out->rival[at - 1]); at--)
		out->rival[at] = out->rival[at - 1];
	out->rival[at] = r;
	out->n += !full;
	return true;
}

void rivals_find(const struct seen *seen, const struct hypothesis *h, struct rivals *out)
{
	struct elimination e = { .seen = seen, .h = h };
	out->n = 0;
	take_sample(&e);
	e.meet = meet(&e, 0);
	int64_t from = seen->host->begin - clock_map_at(&h->clock, seen->act->end);
	int64_t to = seen->host->end - clock_map_at(&h->clock, seen->act->begin);
	e.bin = (to - from) / SHIFTS_MAX > BIN_LEAST_NS ? (to - from) / SHIFTS_MAX : BIN_LEAST_NS;
	e.change = mem_new(BINS + 1, sizeof *e.change);
	e.left = mem_new(LEFT_MAX, sizeof *e.left);
	int16_t *misses = mem_new(BINS, sizeof *misses);
	for (int64_t first = from; first <= to && !e.overflow; first += BINS * e.bin)
		eliminate(&e, first, misses);
	out->all = !e.overflow;
	bool more = true;
	for (size_t i = 0; i < e.lefts && more; i++) {
		/* Near the clock itself is another's business. */
		struct span left = e.left[i], below = left, above = left;
		if (below.to > -DOUBTED_NS)
			below.to = -DOUBTED_NS;
		if (above.from < DOUBTED_NS)
			above.from = DOUBTED_NS;
		more = try_range(&e, below, out) && try_range(&e, above, out);
	}
	free(misses);
	free(e.change);
	free(e.left);
	free(e.event);
	free(e.all);
	sparse_release(&e.few);
	sparse_release(&e.more);
}
