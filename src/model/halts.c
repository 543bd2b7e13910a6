#include "model/halts.h"

#include <stdlib.h>

#include "base/mem.h"

#define SAMPLES 1024      /* of one way and end: enough for its quantiles */
#define WAYS_MOST 65536   /* of a trace; a guest chooses from where it writes */
#define USER_SPACE (INT64_C(1) << 47)  /* of a guest, on all processors that run Linux with 4 levels of pages */
#define NO_LIMIT (INT64_MAX / 4)

/* Ways are numbered: by the vector that came in first, or later, by the site of a write and whether it was the first. */
enum { SITE_BITS = 21, WAY_LATER = 512, WAY_HALT = 1024, WAY_WRITE = 1 << SITE_BITS, WAY_WRITES = 2 << SITE_BITS };
enum { HALT_BYTES = 4 };  /* an interrupt at a halt finds the guest at the instruction itself or the next one */

/* Quantiles of the samples, in hundredths: short ones, since the same code takes longer only where it is held up. */
enum { QUICK_HALT = 20, QUICK_WRITE = 10, USUAL_WRITE = 40, USUAL_THREAD = 40, LEAST = 3 };
/* Tenths of them: a halt takes a little less than a switch to a thread; of the time until a thread does something, that
 * thread's part is the smaller one; and what comes between a switch to the idle thread and its halt. */
enum { HEAD_OF_HALT = 15, HEAD_OF_WRITE = 12, HEAD_OF_THREAD = 6, TAIL = 12, SWITCH_LEAST = 16, SWITCH_MOST = 30 };
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

/* ---- where it is */

#define NOWHERE { .vector = -1, .halt_ip = EVENT_ABSENT, .since = INT64_MIN }
static const struct halt_stretch nowhere = NOWHERE;

static void stretch_enter(struct halt_stretch *s, int64_t t)
{
	if (s->first || s->vector >= 0)
		s->writes = 0;
	s->since = t;
}

/* The way that an entry has begun; -1: it goes on where it was. */
static int64_t stretch_way(const struct halt_stretch *s)
{
	if (s->first)
		return s->vector + 1;
	if (s->vector >= 0)
		return WAY_LATER + s->vector;
	return s->wrote ? (s->writes > 1 ? WAY_WRITES : WAY_WRITE) + (int64_t)s->site : -1;
}

static enum part_end stretch_end(const struct halt_stretch *s, const struct event *ev)
{
	int64_t ip = ev->kvm.ip;
	switch (exit_class(ev)) {
	case EXIT_HALT:
		return END_HALT;
	case EXIT_TIMER:
		return END_WRITE;
	case EXIT_INTERRUPT:
		if (ip >= 0 && ip < USER_SPACE)
			return END_THREAD;
		return ip != EVENT_ABSENT && s->halt_ip != EVENT_ABSENT && (uint64_t)ip - (uint64_t)s->halt_ip <= HALT_BYTES
		     ? END_AT_HALT : END_INTERRUPT;
	case EXIT_OTHER:
		break;
	}
	return END_THREAD;
}

static void stretch_exit(struct halt_stretch *s, enum part_end end, bool quiet, const struct event *ev)
{
	s->quiet = quiet || end == END_HALT || end == END_AT_HALT;
	s->first = end == END_HALT;
	s->wrote = end == END_WRITE;
	if (s->first)
		s->halt_ip = ev->kvm.ip;
	if (s->wrote) {
		s->writes = s->writes ? 2 : 1;
		s->site = (uint32_t)((uint64_t)ev->kvm.ip & (WAY_WRITE - 1));
	}
	s->vector = -1;
	s->since = INT64_MIN;
}

/* Its last write was an interrupt to a sibling, which mostly a thread sends. */
static bool stretch_sends(struct halt_stretch *s)
{
	if (!s->wrote || s->since != INT64_MIN)
		return false;
	s->quiet = s->wrote = false;
	return true;
}

/* ---- ways */

static uint64_t key(int64_t tid, int64_t way)
{
	return (uint64_t)tid << 32 | (uint64_t)way;
}

static void sample(struct halts *h, int64_t tid, int64_t way, enum part_end end, int64_t ns)
{
	uint64_t *slot = map_find(&h->index, key(tid, way));
	if (ns < 0 || ns > INT32_MAX || (!slot && h->ways == WAYS_MOST))
		return;
	if (!slot) {
		slot = map_put(&h->index, key(tid, way), NULL);
		*slot = h->ways;
		*ARRAY_PUSH(h->way, h->ways, h->way_cap) = (struct way){ .n = { 0 } };
	}
	struct way *w = &h->way[*slot];
	if (w->n[end] < SAMPLES)
		*ARRAY_PUSH(w->ns[end], w->n[end], w->cap[end]) = (int32_t)ns;
}

static const struct way *find_way(const struct halts *h, int64_t tid, int64_t way)
{
	const uint64_t *slot = h && way >= 0 ? map_find(&h->index, key(tid, way)) : NULL;
	return slot ? &h->way[*slot] : NULL;
}

/* ---- looking ahead */

static void on_switch(struct halts *h, const struct event *ev)
{
	if (ev->cpu >= h->cpus) {
		h->current = mem_resize(h->current, (size_t)ev->cpu + 1, sizeof *h->current);
		while (h->cpus <= ev->cpu)
			h->current[h->cpus++] = -1;
	}
	h->current[ev->cpu] = ev->sw.next_tid > 0 && ev->sw.next_tid <= INT32_MAX ? (int32_t)ev->sw.next_tid : -1;
}

/* One thread while looking ahead. */
struct learner {
	struct halt_stretch at;
	int32_t tid;
	int64_t way, ns;        /* ended by a write, of which the next event tells what it was; way -1: none */
	struct prospects *prospects;
};

static const struct learner new_learner = { .at = NOWHERE, .way = -1 };

static struct learner *find_learner(const struct halts *h, int64_t tid)
{
	const uint64_t *slot = tid > 0 ? map_find(&h->learner, (uint64_t)tid) : NULL;
	return slot ? (struct learner *)(uintptr_t)*slot : NULL;
}

static int64_t tid_of(const struct halts *h, const struct event *ev)
{
	return ev->tid >= 0 ? ev->tid : ev->cpu < h->cpus ? h->current[ev->cpu] : -1;
}

static struct learner *learner_of(struct halts *h, const struct event *ev)
{
	int64_t tid = tid_of(h, ev);
	struct learner *l = find_learner(h, tid);
	if (l || tid <= 0 || tid > INT32_MAX)
		return l;
	l = mem_new(1, sizeof *l);
	*l = new_learner;
	l->tid = (int32_t)tid;
	l->prospects = prospects_make(&h->prospects, tid);
	*map_put(&h->learner, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)l;
	return l;
}

static void learn_write(struct halts *h, struct learner *l, enum part_end end)
{
	if (l->way >= 0)
		sample(h, l->tid, l->way, end, l->ns);
	l->way = -1;
}

static void learn_entry(struct halts *h, struct learner *l, const struct event *ev)
{
	learn_write(h, l, END_WRITE);
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
	const enum part_end end = stretch_end(s, ev);
	if (s->since != INT64_MIN) {
		const int64_t way = s->quiet ? stretch_way(s) : -1, ns = ev->ts - s->since;
		if (s->vector >= 0)
			prospects_end(l->prospects, PROSPECT_NONE);
		prospects_ran(l->prospects, ns);
		if (way >= 0 && end == END_WRITE) {
			l->way = way;
			l->ns = ns;
		} else if (way >= 0 && end <= END_THREAD) {
			sample(h, l->tid, way, end, ns);
		}
		if (end == END_HALT)
			sample(h, l->tid, WAY_HALT, end, ns);
	}
	if (end != END_INTERRUPT)
		prospects_end(l->prospects, (uint8_t)end);
	if (end == END_INTERRUPT || end == END_WRITE)
		prospects_left(l->prospects, ev->ts);
	stretch_exit(s, end, s->quiet && end != END_THREAD, ev);
}

static void lose(struct halts *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->learner, &at, &tid, &p); ) {
		struct learner *l = (struct learner *)(uintptr_t)p;
		struct prospects *prospects = l->prospects;
		prospects_end(prospects, PROSPECT_NONE);
		*l = new_learner;
		l->tid = (int32_t)tid;
		l->prospects = prospects;
	}
}

void halts_feed(struct halts *h, const struct event *ev)
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
		if ((l = learner_of(h, ev)))
			l->at.vector = (int16_t)(ev->inject.vector & 0xff);
		break;
	case EV_KVM_EXIT:
		if ((l = learner_of(h, ev)))
			learn_exit(h, l, ev);
		break;
	case EV_WAKING:
		if (!find_learner(h, ev->wake.tid))
			break;
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

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void finish_way(struct way *w, bool after_write, bool later)
{
	for (int end = 0; end < WAY_ENDS; end++)
		if (w->n[end])
			qsort(w->ns[end], w->n[end], sizeof *w->ns[end], by_ns);
	struct usual *u = &w->usual;
	const int64_t by_halt = told_by(w, END_HALT, QUICK_HALT, HEAD_OF_HALT);
	const int64_t by_thread = told_by(w, END_THREAD, USUAL_THREAD, HEAD_OF_THREAD);
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
}

static void free_learners(struct halts *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->learner, &at, &tid, &p); )
		free((struct learner *)(uintptr_t)p);
	map_release(&h->learner);
	free(h->current);
	h->current = NULL;
	h->cpus = 0;
}

void halts_finish(struct halts *h)
{
	uint64_t k, i;
	for (size_t at = 0; map_each(&h->index, &at, &k, &i); ) {
		const uint32_t way = (uint32_t)k;
		if (way == WAY_HALT)
			finish_halts(&h->way[i]);
		else
			finish_way(&h->way[i], way >= WAY_WRITE, way >= WAY_WRITES);
		free_samples(&h->way[i]);
	}
	free_learners(h);
}

void halts_release(struct halts *h)
{
	free_learners(h);
	prospects_release(&h->prospects);
	for (size_t i = 0; i < h->ways; i++)
		free_samples(&h->way[i]);
	free(h->way);
	map_release(&h->index);
	*h = (struct halts)HALTS_INIT;
}

/* ---- replaying */

void quiet_init(struct quiet *q, int32_t tid)
{
	*q = (struct quiet){ .tid = tid, .at = nowhere };
}

void quiet_lose(struct quiet *q)
{
	bool known = q->known;
	quiet_init(q, q->tid);
	q->known = known;
}

void quiet_inject(struct quiet *q, int64_t vector)
{
	q->at.vector = (int16_t)(vector & 0xff);
}

static int64_t least_halt(const struct quiet *q, const struct halts *h)
{
	const struct way *w = find_way(h, q->tid, WAY_HALT);
	return w ? w->usual.head : 0;
}

/* On a way that nobody has seen: as short as any. */
static struct usual unseen(int64_t least)
{
	return (struct usual){ least, { [END_HALT] = 2 * least, [END_WRITE] = 3 * least, -1, [END_INTERRUPT] = least } };
}

void quiet_enter(struct quiet *q, const struct halts *h, int64_t t)
{
	stretch_enter(&q->at, t);
	q->halted = false;
	int64_t way = q->at.quiet ? stretch_way(&q->at) : -1;
	if (way < 0)
		return;
	const struct way *w = find_way(h, q->tid, way);
	q->usual = w ? w->usual : unseen(least_halt(q, h));
	q->spent = 0;
}

/* As far as anybody knows what a thread's exit leads to. */
struct foresight {
	const struct prospect *next;  /* NULL unknown */
	bool sends;                   /* its guest's threads send interrupts, and that is recorded */
};

static struct foresight foresee(const struct quiet *q, const struct halts *h, int64_t t)
{
	struct prospects *p = h ? prospects_of(&h->prospects, q->tid) : NULL;
	return p ? (struct foresight){ prospects_at(p, t), p->sends } : (struct foresight){ NULL, false };
}

/* A thread sets its timer, and has yet to be switched away from: that takes longer than the way from the idle loop, which
 * stops the tick and halts, but is over long before anything else could have happened. */
static bool sets_timer(const struct quiet *q, const struct prospect *next, int64_t least)
{
	return next && !next->sent && next->end == END_HALT && q->usual.limit[END_WRITE] != NO_LIMIT &&
	       next->rest > least * SWITCH_LEAST / 10 && next->rest <= least * SWITCH_MOST / 10;
}

/* Interrupted: would it have stayed idle for so long, had it not been?  And what writes without sending anything is hardly
 * a thread where those send: the idle loop stops its tick, and interrupts set their timers. */
static bool stays_until(const struct quiet *q, int64_t ns, enum part_end end, const struct foresight *to)
{
	const struct prospect *next = to->next;
	if (!next)
		return false;
	if (end == END_WRITE)
		return to->sends && !next->sent;
	return next->end == END_AT_HALT ||
	       (next->end == END_WRITE && (to->sends || q->spent + ns + next->rest <= q->usual.limit[END_WRITE]));
}

static bool is_over(const struct quiet *q, int64_t ns, enum part_end end, const struct foresight *to, int64_t least)
{
	if (!q->at.quiet || (end == END_WRITE && sets_timer(q, to->next, least)))
		return true;
	return end != END_AT_HALT && q->spent + ns > q->usual.limit[end] && !stays_until(q, ns, end, to);
}

/* How long it is idle before the end of its time in guest mode, which it spends on the way to its halt. */
static int64_t tail_of(enum part_end end, const struct foresight *to, int64_t least)
{
	const struct prospect *next = end == END_INTERRUPT ? to->next : NULL;
	const int64_t tail = least * TAIL / 10;
	if (next && (next->end == END_HALT || next->end == END_AT_HALT))
		return next->rest < tail ? tail - next->rest : 0;
	return end == END_HALT || end == END_AT_HALT ? tail : 0;
}

struct quiet_split quiet_exit(struct quiet *q, const struct halts *h, int64_t t, const struct event *ev)
{
	const enum part_end end = stretch_end(&q->at, ev);
	const int64_t ns = q->at.since == INT64_MIN ? 0 : t - q->at.since;
	const int64_t least = least_halt(q, h);
	struct quiet_split split = { 0, 0 };
	const struct foresight to = foresee(q, h, ev->ts);
	const bool stays = !is_over(q, ns, end, &to, least);
	if (stays)
		split.head = ns;
	else if (q->at.quiet && q->usual.head > q->spent)
		split.head = least_of(ns, q->usual.head - q->spent);
	if (!stays)
		split.tail = least_of(ns - split.head, tail_of(end, &to, least));
	const bool idle = stays || split.tail > 0;
	if (!stays && idle)
		q->usual = unseen(least);
	q->spent = stays && end == END_INTERRUPT ? q->spent + ns : 0;
	q->known = q->known || exit_isa(ev) != ISA_UNKNOWN;
	q->halted = end == END_HALT;
	stretch_exit(&q->at, end, idle, ev);
	return split;
}
