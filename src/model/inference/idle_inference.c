#include "model/inference/idle_paths.h"

#include <stdlib.h>

#include "base/mem.h"

#define SAMPLES 1024      /* of one way and end: enough for its quantiles */
#define WAYS_MOST 65536   /* of a trace; a guest chooses from where it writes */
#define SITES_MOST 4096   /* where guests halt */

/* Quantiles of the samples, in hundredths: short ones, since the same code takes longer only where it is held up. */
enum { QUICK_HALT = 20, QUICK_WRITE = 10, USUAL_WRITE = 40, USUAL_THREAD = 40, LEAST = 1 };
/* Tenths of them: a halt takes a little less than a switch to a thread; of the time until a thread does something, that
 * thread's part is the smaller one. */
enum { HEAD_OF_HALT = 15, HEAD_OF_WRITE = 12, HEAD_OF_THREAD = 6, HEAD_OF_TIMER = 4 };
enum { SELDOM = 2, MOSTLY = 60 };  /* hundredths of the samples of a way */

/* What a way leads to in most cases. */
enum way_kind {
	WAY_TO_WRITE,   /* before any thread can run: what a timer's interrupt does, and the way out of a long sleep */
	WAY_TO_THREAD,  /* it halts no sooner than a thread can have run: this interrupt always wakes one */
	WAY_TO_HALT,    /* it halts soon, unless a thread runs */
};

/* Tenths of what is usual, up to which no thread has run, by the end: measured on recordings with the guests' traces. */
static const int16_t limit_tenths[][2][END_INTERRUPT + 1] = {
	/*                  after an interrupt                        after a write */
	[WAY_TO_WRITE] = { { 80, -1, [END_INTERRUPT] = -1 }, { 25, -1, [END_INTERRUPT] = 30 } },
	[WAY_TO_THREAD] = { { 0, 35, [END_INTERRUPT] = 15 }, { 25, 35, [END_INTERRUPT] = 30 } },
	[WAY_TO_HALT] = { { 80, 30, [END_INTERRUPT] = 40 }, { 25, 40, [END_INTERRUPT] = 30 } },
};

/* ---- samples */

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void sample(struct halts *h, int64_t tid, int64_t way, enum part_end end, int64_t ns, int64_t rest)
{
	uint64_t *slot = map_find(&h->index, way_key(tid, way));
	if (ns < 0 || ns > INT32_MAX || (!slot && h->ways == WAYS_MOST))
		return;
	if (!slot) {
		slot = map_put(&h->index, way_key(tid, way), NULL);
		*slot = h->ways;
		*ARRAY_PUSH(h->way, h->ways, h->way_cap) = (struct way){ .n = { 0 } };
	}
	struct way *w = &h->way[*slot];
	if (w->n[end] >= SAMPLES)
		return;
	if (end == END_WRITE) {
		size_t n = w->n[end];
		*ARRAY_PUSH(w->rest, n, w->rest_cap) = (int32_t)least_of(rest, INT32_MAX);
	}
	*ARRAY_PUSH(w->ns[end], w->n[end], w->cap[end]) = (int32_t)ns;
}

/* ---- looking ahead */

static void on_switch(struct halts *h, const struct event *ev)
{
	if (ev->cpu >= h->cpus) {
		h->cpu = mem_resize(h->cpu, (size_t)ev->cpu + 1, sizeof *h->cpu);
		while (h->cpus <= ev->cpu)
			h->cpu[h->cpus++] = (struct halt_cpu){ -1, NULL };
	}
	h->cpu[ev->cpu].current = ev->sw.next_tid > 0 && ev->sw.next_tid <= INT32_MAX ? (int32_t)ev->sw.next_tid : -1;
}

/* One thread while looking ahead. */
struct learner {
	struct halt_stretch at;
	int32_t tid;
	int64_t way, ns;        /* ended by a write, of which what follows tells what it was; way -1: none */
	int64_t rest;           /* ns in guest mode since */
	int64_t halted_at;      /* address of the halt that it is in, EVENT_ABSENT none */
	struct prospects *prospects;
};

static const struct learner new_learner = { .at = STRETCH_NOWHERE, .way = -1, .halted_at = EVENT_ABSENT };

static struct learner *find_learner(const struct halts *h, int64_t tid)
{
	const uint64_t *slot = tid > 0 ? map_find(&h->learner, (uint64_t)tid) : NULL;
	return slot ? (struct learner *)(uintptr_t)*slot : NULL;
}

static int64_t tid_of(const struct halts *h, const struct event *ev)
{
	return ev->tid >= 0 ? ev->tid : ev->cpu < h->cpus ? h->cpu[ev->cpu].current : -1;
}

static struct learner *make_learner(struct halts *h, int64_t tid)
{
	if (tid <= 0 || tid > INT32_MAX)
		return NULL;
	struct learner *l = mem_new(1, sizeof *l);
	*l = new_learner;
	l->tid = (int32_t)tid;
	l->prospects = prospects_make(&h->prospects, tid);
	*map_put(&h->learner, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)l;
	return l;
}

static __attribute__((noinline)) struct learner *meet_learner(struct halts *h, const struct event *ev)
{
	const int64_t tid = tid_of(h, ev);
	struct learner *l = find_learner(h, tid);
	l = l ? l : make_learner(h, tid);
	if (ev->cpu < h->cpus)
		h->cpu[ev->cpu].last = l;
	return l;
}

/* Mostly that which its CPU had last. */
static inline struct learner *learner_of(struct halts *h, const struct event *ev)
{
	struct learner *last = ev->cpu < h->cpus ? h->cpu[ev->cpu].last : NULL;
	return last && last->tid == tid_of(h, ev) ? last : meet_learner(h, ev);
}

static void learn_write(struct halts *h, struct learner *l, enum part_end end)
{
	if (l->way >= 0)
		sample(h, l->tid, l->way, end, l->ns, l->rest);
	l->way = -1;
	l->rest = 0;
}

/* It left guest mode again, after ns: if it halts and no interrupt came in before, that tells how long it took. */
static void learn_rest(struct halts *h, struct learner *l, enum part_end end, int64_t ns)
{
	if (l->way < 0)
		return;
	const bool goes_on = l->at.vector < 0 && l->at.since != INT64_MIN;
	if (ns > 0 && l->rest <= INT32_MAX)
		l->rest += least_of(ns, INT32_MAX);
	if (goes_on && end == END_INTERRUPT)
		return;
	if (!goes_on || end != END_HALT)
		l->rest = 0;
	learn_write(h, l, END_WRITE);
}

static void learn_end_at(struct halts *h, uint64_t site, bool interrupt)
{
	if (h->site.len >= SITES_MOST && !map_find(&h->site, site))
		return;
	*map_put(&h->site, site, NULL) += interrupt ? UINT64_C(1) << 32 : 1;
}

/* What has ended the halt that it is in. */
static void learn_end(struct halts *h, struct learner *l)
{
	if (l->halted_at == EVENT_ABSENT)
		return;
	learn_end_at(h, way_site(l->tid, l->halted_at), l->at.vector >= 0);
	learn_end_at(h, way_site(l->tid, SITE_ALL), l->at.vector >= 0);
	l->halted_at = EVENT_ABSENT;
}

static void learn_entry(struct halts *h, struct learner *l, const struct event *ev)
{
	learn_end(h, l);
	stretch_enter(&l->at, ev->ts);
}

static void learn_sent(struct halts *h, struct learner *l)
{
	if (!stretch_sends(&l->at))
		return;
	learn_write(h, l, END_THREAD);
	prospects_sent(l->prospects);
}

static void learn_exit(struct halts *h, struct learner *l, const struct event *ev)
{
	struct halt_stretch *s = &l->at;
	const unsigned is = exit_is(ev);
	const enum part_end end = stretch_end(s, h, l->tid, ev, is);
	spots_feed(&h->spots, l->tid, ev, is);
	learn_rest(h, l, end, s->since != INT64_MIN ? ev->ts - s->since : 0);
	if (s->since != INT64_MIN) {
		const int64_t way = s->quiet ? stretch_way(s) : -1, ns = ev->ts - s->since;
		if (s->vector >= 0)
			prospects_end(l->prospects, PROSPECT_NONE, s->vector);
		prospects_ran(l->prospects, ns);
		if (way >= 0 && end == END_WRITE) {
			l->way = way;
			l->ns = ns;
		} else if (way >= 0 && end <= END_THREAD) {
			sample(h, l->tid, way, end, ns, 0);
		}
		if (end == END_HALT)
			sample(h, l->tid, WAY_HALT, end, ns, 0);
	}
	if (end != END_INTERRUPT)
		prospects_end(l->prospects, (uint8_t)end, -1);
	if (end == END_INTERRUPT || end == END_WRITE)
		prospects_left(l->prospects, ev->ts);
	stretch_exit(s, end, s->quiet && end != END_THREAD, ev, is);
	l->halted_at = (is & EXIT_CLASS) == EXIT_HALT ? ev->kvm.ip : EVENT_ABSENT;
}

static void lose(struct halts *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->learner, &at, &tid, &p); ) {
		struct learner *l = (struct learner *)(uintptr_t)p;
		struct prospects *prospects = l->prospects;
		prospects_end(prospects, PROSPECT_NONE, -1);
		*l = new_learner;
		l->tid = (int32_t)tid;
		l->prospects = prospects;
	}
}

/* A vCPU's thread is woken. */
static void learn_waking(struct halts *h, struct learner *l, const struct event *ev, bool in_handler)
{
	const int64_t waker = tid_of(h, ev);
	const struct learner *sibling = find_learner(h, waker);
	if (!h->injects)
		stretch_woken(&l->at, in_handler || waker < 0, sibling ? &sibling->at : NULL);
}

void halts_feed(struct halts *h, const struct event *ev, bool in_handler)
{
	struct learner *l;
	switch (ev->kind) {
	case EV_SWITCH:
		on_switch(h, ev);
		break;
	case EV_LOST:
		lose(h);
		break;
	case EV_KVM_ENTRY:
		if ((l = learner_of(h, ev)))
			learn_entry(h, l, ev);
		break;
	case EV_INJECT:
		h->injects = true;
		if ((l = learner_of(h, ev)))
			l->at.vector = (int16_t)(ev->inject.vector & 0xff);
		break;
	case EV_KVM_EXIT:
		if ((l = learner_of(h, ev)))
			learn_exit(h, l, ev);
		break;
	case EV_WAKING:
		if (!(l = find_learner(h, ev->wake.tid)))
			break;
		learn_waking(h, l, ev, in_handler);
		/* fall through */
	case EV_IPI:
		if ((l = find_learner(h, tid_of(h, ev)))) {
			l->prospects->sends |= ev->kind == EV_IPI;
			learn_sent(h, l);
		}
		break;
	default:
		break;
	}
}

static int by_ns(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t quantile(const struct way *w, enum part_end end, size_t hundredths)
{
	return w->ns[end][w->n[end] * hundredths / 100];
}

/* The time that a quantile of one end stands for; NO_LIMIT where the way hardly ever ends so. */
static int64_t told_by(const struct way *w, enum part_end end, size_t hundredths, int tenths)
{
	size_t all = w->n[END_HALT] + w->n[END_WRITE] + w->n[END_THREAD];
	return w->n[end] * 100 > all * SELDOM ? quantile(w, end, hundredths) * tenths / 10 : NO_LIMIT;
}

/* ---- what they tell */

/* Writes after which it took as long to halt as from a switch away from a thread: a thread set its timer. */
static void tell_writes(struct way *w, int64_t least)
{
	const size_t n = w->n[END_WRITE];
	size_t threads = 0, idle = 0;
	w->n[END_WRITE] = 0;
	for (size_t i = 0; i < n; i++) {
		const int32_t ns = w->ns[END_WRITE][i];
		if (way_is_switch(w->rest[i], least)) {
			*ARRAY_PUSH(w->ns[END_THREAD], w->n[END_THREAD], w->cap[END_THREAD]) = ns;
			threads++;
		} else {
			w->ns[END_WRITE][w->n[END_WRITE]++] = ns;
			idle += w->rest[i] > 0;
		}
	}
	w->usual.timers = threads > idle;
}

static void finish_way(struct way *w, bool after_write, bool later)
{
	for (int end = 0; end < WAY_ENDS; end++)
		if (w->n[end])
			qsort(w->ns[end], w->n[end], sizeof *w->ns[end], by_ns);
	struct usual *u = &w->usual;
	const int64_t by_halt = told_by(w, END_HALT, QUICK_HALT, HEAD_OF_HALT);
	const int64_t by_thread = told_by(w, END_THREAD, USUAL_THREAD, u->timers ? HEAD_OF_TIMER : HEAD_OF_THREAD);
	const size_t all = w->n[END_HALT] + w->n[END_WRITE] + w->n[END_THREAD];
	const enum way_kind kind = w->n[END_WRITE] * 100 > all * MOSTLY ? WAY_TO_WRITE
	                         : by_thread < by_halt ? WAY_TO_THREAD : WAY_TO_HALT;
	/* After a second write the interrupt is over, and what writes again would sooner have left for a thread. */
	const int64_t by_write = later && by_halt != NO_LIMIT ? NO_LIMIT : told_by(w, END_WRITE, USUAL_WRITE, HEAD_OF_WRITE);
	u->head = least_of(least_of(by_halt, by_thread), by_write);
	const int64_t halt = by_halt == NO_LIMIT ? u->head : quantile(w, END_HALT, QUICK_HALT);
	const int64_t write = kind == WAY_TO_HALT ? halt : w->n[END_WRITE] ? quantile(w, END_WRITE, QUICK_WRITE) : u->head;
	const int64_t unit[] = { [END_HALT] = halt, [END_WRITE] = write, [END_INTERRUPT] = u->head };
	for (int end = 0; end <= END_INTERRUPT; end++) {
		int tenths = limit_tenths[kind][after_write][end];
		u->limit[end] = tenths < 0 ? NO_LIMIT : end == END_THREAD ? -1 : unit[end] * tenths / 10;
	}
}

/* Of all halts: the least time between a switch to the idle thread and them. */
static void finish_halts(struct way *w)
{
	qsort(w->ns[END_HALT], w->n[END_HALT], sizeof *w->ns[END_HALT], by_ns);
	w->usual.head = quantile(w, END_HALT, LEAST);
}

static void free_samples(struct way *w)
{
	for (int end = 0; end < WAY_ENDS; end++) {
		free(w->ns[end]);
		w->ns[end] = NULL;
	}
	free(w->rest);
	w->rest = NULL;
}

static void free_learners(struct halts *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->learner, &at, &tid, &p); )
		free((struct learner *)(uintptr_t)p);
	map_release(&h->learner);
	free(h->cpu);
	h->cpu = NULL;
	h->cpus = 0;
}

void halts_finish(struct halts *h)
{
	uint64_t k, i;
	for (size_t at = 0; map_each(&h->index, &at, &k, &i); )
		if ((uint32_t)k == WAY_HALT)
			finish_halts(&h->way[i]);
	for (size_t at = 0; map_each(&h->index, &at, &k, &i); ) {
		const uint32_t way = (uint32_t)k;
		if (way >= WAY_WRITE)
			tell_writes(&h->way[i], way_least(h, (int32_t)(k >> 32)));
		if (way != WAY_HALT)
			finish_way(&h->way[i], way >= WAY_WRITE, way >= WAY_WRITES);
		free_samples(&h->way[i]);
	}
	spots_finish(&h->spots);
	free_learners(h);
}

void halts_release(struct halts *h)
{
	free_learners(h);
	prospects_release(&h->prospects);
	map_release(&h->site);
	spots_release(&h->spots);
	for (size_t i = 0; i < h->ways; i++)
		free_samples(&h->way[i]);
	free(h->way);
	map_release(&h->index);
	*h = (struct halts)HALTS_INIT;
}
