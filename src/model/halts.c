#include "model/halts.h"

#include <stdlib.h>

#include "base/mem.h"

#define SAMPLES 1024  /* of one way: enough for its quantiles */
/* Quantiles of the samples, in hundredths: what is usual, and what is the least, less a few that were lucky. */
enum { USUAL = 20, USUAL_TIMER = 40, LEAST = 5 };
/* How much later than usual the guest's next doing may come so that its idle thread may have done it: an interrupt that
 * wakes nobody takes a third of the time that a thread takes at least. */
enum { LATE = 3 };
enum { HEAD = 80 };  /* hundredths of the usual time until the guest does something: the rest is that thread's */
#define USER_SPACE (INT64_C(1) << 47)  /* of a guest, on all processors that run Linux with 4 levels of pages */

/* What is known of one thread while looking ahead. */
struct learner {
	int64_t since;          /* as in struct quiet */
	int16_t vector;
	bool quiet, first, timed;
};

static int way_of(bool first, int16_t vector, bool timed)
{
	return first || vector >= 0 ? WAY_VECTOR + vector : timed ? WAY_TIMER : -1;
}

static uint64_t key(int64_t tid, int way)
{
	return (uint64_t)tid * WAYS + (uint64_t)way;
}

static struct way *get_way(struct halts *h, int64_t tid, int way)
{
	bool is_new;
	uint64_t *slot = map_put(&h->index, key(tid, way), &is_new);
	if (is_new) {
		*slot = h->ways;
		*ARRAY_PUSH(h->way, h->ways, h->way_cap) = (struct way){ .ns = NULL };
	}
	return &h->way[*slot];
}

static const struct way *find_way(const struct halts *h, int64_t tid, int way)
{
	const uint64_t *slot = h ? map_find(&h->index, key(tid, way)) : NULL;
	return slot && h->way[*slot].n ? &h->way[*slot] : NULL;
}

static int64_t quantile(const struct way *w, size_t hundredths)
{
	return w ? w->ns[w->n * hundredths / 100] : 0;
}

static void sample(struct way *w, int64_t ns)
{
	if (w->n < SAMPLES && ns >= 0 && ns <= INT32_MAX)
		*ARRAY_PUSH(w->ns, w->n, w->cap) = (int32_t)ns;
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

static struct learner *learner_of(struct halts *h, const struct event *ev)
{
	int64_t tid = ev->tid >= 0 ? ev->tid : ev->cpu < h->cpus ? h->current[ev->cpu] : -1;
	bool is_new;
	if (tid <= 0)
		return NULL;
	uint64_t *slot = map_put(&h->learner, (uint64_t)tid, &is_new);
	if (is_new) {
		struct learner *l = mem_new(1, sizeof *l);
		*l = (struct learner){ .since = INT64_MIN, .vector = -1 };
		*slot = (uint64_t)(uintptr_t)l;
	}
	return (struct learner *)(uintptr_t)*slot;
}

static void learn_exit(struct halts *h, struct learner *l, int64_t tid, const struct event *ev)
{
	enum exit_class class = exit_class(ev);
	bool inside = l->since != INT64_MIN;
	int64_t ns = inside ? ev->ts - l->since : 0;
	int way = l->quiet ? way_of(l->first, l->vector, l->timed) : -1;
	if (inside && way >= 0) {
		struct way *w = get_way(h, tid, way);
		w->first += l->first;
		w->timer += l->first && class == EXIT_TIMER;
		if (class != EXIT_INTERRUPT)
			sample(w, ns);
	}
	if (inside && class == EXIT_HALT)
		sample(get_way(h, tid, WAY_HALT), ns);
	l->first = class == EXIT_HALT;
	l->quiet = l->first || (l->quiet && class != EXIT_OTHER);
	l->timed = class == EXIT_TIMER;
	l->vector = -1;
	l->since = INT64_MIN;
}

static void lose(struct halts *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->learner, &at, &tid, &p); )
		*(struct learner *)(uintptr_t)p = (struct learner){ .since = INT64_MIN, .vector = -1 };
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
			l->since = ev->ts;
		break;
	case EV_INJECT:
		if ((l = learner_of(h, ev)))
			l->vector = (int16_t)(ev->inject.vector & 0xff);
		break;
	case EV_KVM_EXIT:
		if ((l = learner_of(h, ev)))
			learn_exit(h, l, ev->tid >= 0 ? ev->tid : h->current[ev->cpu], ev);
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
	for (size_t i = 0; i < h->ways; i++)
		if (h->way[i].n)
			qsort(h->way[i].ns, h->way[i].n, sizeof *h->way[i].ns, by_ns);
	free_learners(h);
}

void halts_release(struct halts *h)
{
	free_learners(h);
	for (size_t i = 0; i < h->ways; i++)
		free(h->way[i].ns);
	free(h->way);
	map_release(&h->index);
	*h = (struct halts)HALTS_INIT;
}

/* ---- replaying */

void quiet_init(struct quiet *q, int32_t tid)
{
	*q = (struct quiet){ .vector = -1, .tid = tid, .since = INT64_MIN };
}

void quiet_lose(struct quiet *q)
{
	bool known = q->known;
	quiet_init(q, q->tid);
	q->known = known;
}

void quiet_inject(struct quiet *q, int64_t vector)
{
	q->vector = (int16_t)(vector & 0xff);
}

static int64_t after_timer(const struct halts *h, int32_t tid)
{
	const struct way *w = find_way(h, tid, WAY_TIMER);
	return w ? quantile(w, USUAL_TIMER) : quantile(find_way(h, tid, WAY_HALT), LEAST);
}

void quiet_enter(struct quiet *q, const struct halts *h, int64_t t)
{
	q->since = t;
	q->halted = false;
	if (!q->quiet || (!q->first && q->vector < 0))
		return;
	const struct way *w = find_way(h, q->tid, WAY_VECTOR + q->vector);
	q->limit = w ? quantile(w, USUAL) : after_timer(h, q->tid);
	q->head = q->limit * HEAD / 100;
	q->timer = w && w->timer >= w->first * 0.7;
	q->spent = 0;
}

/* The stretch is quiet so far, and this part of it, ns long, ends with an exit. */
static struct quiet_split end_quiet(struct quiet *q, const struct halts *h, int64_t ns, enum exit_class class,
                                    bool user_space)
{
	int64_t all = q->spent + ns, least = quantile(find_way(h, q->tid, WAY_HALT), LEAST);
	struct quiet_split split = { q->head > q->spent ? q->head - q->spent : 0, 0 };
	if (split.head > ns)
		split.head = ns;
	if (class == EXIT_HALT) {
		if (2 * all <= LATE * (q->limit + least))
			split.head = ns;
		else
			split.tail = ns - split.head < least ? ns - split.head : least;
	} else if (class == EXIT_TIMER && (q->timer || all <= LATE * q->limit)) {
		split.head = ns;
		q->limit = q->head = after_timer(h, q->tid);
		q->spent = 0;
		q->timer = false;
	} else if (class == EXIT_INTERRUPT && !user_space && all <= LATE * q->limit) {
		split.head = ns;
		q->spent = all;
	} else {
		q->quiet = false;
	}
	return split;
}

struct quiet_split quiet_exit(struct quiet *q, const struct halts *h, int64_t t, const struct event *ev)
{
	enum exit_class class = exit_class(ev);
	struct quiet_split split = { 0, 0 };
	int64_t ns = q->since == INT64_MIN ? 0 : t - q->since;
	if (q->quiet) {
		split = end_quiet(q, h, ns, class, ev->kvm.ip >= 0 && ev->kvm.ip < USER_SPACE);
	} else if (class == EXIT_HALT) {
		int64_t least = quantile(find_way(h, q->tid, WAY_HALT), LEAST);
		split.tail = ns < least ? ns : least;
	}
	q->known = q->known || exit_isa(ev) != ISA_UNKNOWN;
	q->halted = q->first = class == EXIT_HALT;
	q->quiet = q->quiet || q->halted;
	q->vector = -1;
	q->since = INT64_MIN;
	return split;
}
