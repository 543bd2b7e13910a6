#include "base/base.h"
#include "model/inference/idle_paths.h"

#define SAMPLES 1024      /* samples per path and end, enough for quantiles */
#define PATHS_MAX 65536   /* per trace; limited, because the guest determines the addresses */
#define SITES_MAX 4096   /* maximum halt address count */

/* The samples' quantiles, in hundredths. They are low, because the same code takes longer only if it is held up. */
enum { QUICK_HALT = 20, QUICK_WRITE = 10, TYPICAL_WRITE = 40, TYPICAL_THREAD = 40, MIN_HALT = 1 };
/* Factors for these quantiles, in tenths. A halt takes a little less time than a switch to a thread; a thread's action
 * comes later than the switch to it. */
enum { HEAD_OF_HALT = 15, HEAD_OF_WRITE = 12, HEAD_OF_THREAD = 6, HEAD_OF_TIMER = 4 };
enum { RARE_MAX = 2, FREQUENT_MIN = 60 };  /* share of a path's samples, in hundredths */

/* Most frequent way in which a path ends. */
enum path_kind {
	PATH_TO_WRITE,  /* write before any thread can run: a timer interrupt, or a long sleep's end */
	PATH_TO_THREAD, /* halt no sooner than a thread can have run: the interrupt always wakes a thread */
	PATH_TO_HALT,   /* halt soon, unless a thread runs */
};

/* Longest durations without a thread, in tenths of the typical duration, by end; -1: no limit. Measured on recordings
 * with traces of the guests. */
static const int16_t limit_tenths[][2][END_INTERRUPT + 1] = {
	/*                  after an interrupt                        after a write */
	[PATH_TO_WRITE] = { { 80, -1, [END_INTERRUPT] = -1 }, { 25, -1, [END_INTERRUPT] = 30 } },
	[PATH_TO_THREAD] = { { 0, 35, [END_INTERRUPT] = 15 }, { 25, 35, [END_INTERRUPT] = 30 } },
	[PATH_TO_HALT] = { { 80, 30, [END_INTERRUPT] = 40 }, { 25, 40, [END_INTERRUPT] = 30 } },
};

/* ---- samples */

static void add_sample(struct idle_stats *h, int64_t tid, int64_t path, enum interval_end end, int64_t ns, int64_t rest)
{
	uint64_t *slot = map_find(&h->index, idle_path_key(tid, path));
	if (ns < 0 || ns > INT32_MAX || (!slot && h->paths == PATHS_MAX))
		return;
	if (!slot) {
		slot = map_put(&h->index, idle_path_key(tid, path), NULL);
		*slot = h->paths;
		*ARRAY_PUSH(h->path, h->paths, h->path_cap) = (struct idle_path){ .n = { 0 } };
	}
	struct idle_path *w = &h->path[*slot];
	if (w->n[end] >= SAMPLES)
		return;
	if (end == END_WRITE) {
		size_t n = w->n[end];
		*ARRAY_PUSH(w->rest, n, w->rest_cap) = (int32_t)min64(rest, INT32_MAX);
	}
	*ARRAY_PUSH(w->ns[end], w->n[end], w->cap[end]) = (int32_t)ns;
}

/* ---- prescan */

static void record_switch(struct idle_stats *h, const struct event *ev)
{
	if (ev->cpu >= h->cpus) {
		h->cpu = mem_resize(h->cpu, (size_t)ev->cpu + 1, sizeof *h->cpu);
		while (h->cpus <= ev->cpu)
			h->cpu[h->cpus++] = (struct idle_stats_cpu){ -1, NULL };
	}
	h->cpu[ev->cpu].current = ev->sw.next_tid > 0 && ev->sw.next_tid <= INT32_MAX ? (int32_t)ev->sw.next_tid : -1;
}

/* State of one vCPU thread during the prescan. */
struct prescan_vcpu {
	struct idle_episode at;
	int32_t tid;
	int64_t path, ns;  /* pending sample that ended with a write, classified by the next exit: path (-1: none) and time
	                    * in guest mode, ns */
	int64_t rest;      /* time in guest mode since that write, ns */
	int64_t halted_at; /* address of the current halt; EVENT_ABSENT: not halted */
	struct irq_followups *followups;
};

static const struct prescan_vcpu new_prescan_vcpu = { .at = EPISODE_INIT, .path = -1, .halted_at = EVENT_ABSENT };

static struct prescan_vcpu *find_vcpu(const struct idle_stats *h, int64_t tid)
{
	const uint64_t *slot = tid > 0 ? map_find(&h->vcpu_by_tid, (uint64_t)tid) : NULL;
	return slot ? (struct prescan_vcpu *)(uintptr_t)*slot : NULL;
}

static int64_t event_tid(const struct idle_stats *h, const struct event *ev)
{
	return ev->tid >= 0 ? ev->tid : ev->cpu < h->cpus ? h->cpu[ev->cpu].current : -1;
}

static struct prescan_vcpu *make_vcpu(struct idle_stats *h, int64_t tid)
{
	if (tid <= 0 || tid > INT32_MAX)
		return NULL;
	struct prescan_vcpu *l = mem_new(1, sizeof *l);
	*l = new_prescan_vcpu;
	l->tid = (int32_t)tid;
	l->followups = irq_followups_create(&h->followups, tid);
	*map_put(&h->vcpu_by_tid, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)l;
	return l;
}

static __attribute__((noinline)) struct prescan_vcpu *find_or_make_vcpu(struct idle_stats *h, const struct event *ev)
{
	const int64_t tid = event_tid(h, ev);
	struct prescan_vcpu *l = find_vcpu(h, tid);
	l = l ? l : make_vcpu(h, tid);
	if (ev->cpu < h->cpus)
		h->cpu[ev->cpu].last = l;
	return l;
}

/* Returns the event's vCPU: usually the one used last on its CPU (fast path). */
static inline struct prescan_vcpu *vcpu_of_event(struct idle_stats *h, const struct event *ev)
{
	struct prescan_vcpu *last = ev->cpu < h->cpus ? h->cpu[ev->cpu].last : NULL;
	return last && last->tid == event_tid(h, ev) ? last : find_or_make_vcpu(h, ev);
}

static void learn_write(struct idle_stats *h, struct prescan_vcpu *l, enum interval_end end)
{
	if (l->path >= 0)
		add_sample(h, l->tid, l->path, end, l->ns, l->rest);
	l->path = -1;
	l->rest = 0;
}

/* Completes the pending sample at the next exit, after ns in guest mode. The time to a halt counts only if no interrupt
 * was injected before it. */
static void learn_rest(struct idle_stats *h, struct prescan_vcpu *l, enum interval_end end, int64_t ns)
{
	if (l->path < 0)
		return;
	const bool continues = l->at.vector < 0 && l->at.since != INT64_MIN;
	if (ns > 0 && l->rest <= INT32_MAX)
		l->rest += min64(ns, INT32_MAX);
	if (continues && end == END_INTERRUPT)
		return;
	if (!continues || end != END_HALT)
		l->rest = 0;
	learn_write(h, l, END_WRITE);
}

static void count_halt_end(struct idle_stats *h, uint64_t site, bool interrupt)
{
	if (h->site.len >= SITES_MAX && !map_find(&h->site, site))
		return;
	*map_put(&h->site, site, NULL) += interrupt ? UINT64_C(1) << 32 : 1;
}

/* Counts the end of the current halt by cause. */
static void learn_end(struct idle_stats *h, struct prescan_vcpu *l)
{
	if (l->halted_at == EVENT_ABSENT)
		return;
	count_halt_end(h, idle_path_site(l->tid, l->halted_at), l->at.vector >= 0);
	count_halt_end(h, idle_path_site(l->tid, SITE_ALL), l->at.vector >= 0);
	l->halted_at = EVENT_ABSENT;
}

static void learn_entry(struct idle_stats *h, struct prescan_vcpu *l, const struct event *ev)
{
	learn_end(h, l);
	episode_entry(&l->at, ev->ts);
}

static void learn_ipi(struct idle_stats *h, struct prescan_vcpu *l)
{
	if (!episode_ipi(&l->at))
		return;
	learn_write(h, l, END_THREAD);
	irq_followups_ipi(l->followups);
}

static void learn_exit(struct idle_stats *h, struct prescan_vcpu *l, const struct event *ev)
{
	struct idle_episode *s = &l->at;
	const unsigned flags = exit_flags(ev);
	const enum interval_end end = episode_interval_end(s, h, l->tid, ev, flags);
	poll_sites_feed(&h->poll_sites, l->tid, ev, flags);
	learn_rest(h, l, end, s->since != INT64_MIN ? ev->ts - s->since : 0);
	if (s->since != INT64_MIN) {
		const int64_t path = s->idle ? episode_path(s) : -1, ns = ev->ts - s->since;
		if (s->vector >= 0)
			irq_followups_end(l->followups, FOLLOWUP_NONE, s->vector);
		irq_followups_ran(l->followups, ns);
		if (path >= 0 && end == END_WRITE) {
			l->path = path;
			l->ns = ns;
		} else if (path >= 0 && end <= END_THREAD) {
			add_sample(h, l->tid, path, end, ns, 0);
		}
		if (end == END_HALT)
			add_sample(h, l->tid, PATH_HALT, end, ns, 0);
	}
	if (end != END_INTERRUPT)
		irq_followups_end(l->followups, (uint8_t)end, -1);
	if (end == END_INTERRUPT || end == END_WRITE)
		irq_followups_add(l->followups, ev->ts);
	episode_exit(s, end, s->idle && end != END_THREAD, ev, flags);
	l->halted_at = (flags & EXIT_CLASS) == EXIT_HALT ? ev->vcpu_exit.ip : EVENT_ABSENT;
}

static void forget_vcpus(struct idle_stats *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->vcpu_by_tid, &at, &tid, &p); ) {
		struct prescan_vcpu *l = (struct prescan_vcpu *)(uintptr_t)p;
		struct irq_followups *followups = l->followups;
		irq_followups_end(followups, FOLLOWUP_NONE, -1);
		*l = new_prescan_vcpu;
		l->tid = (int32_t)tid;
		l->followups = followups;
	}
}

/* Processes the waking of a vCPU's thread. */
static void learn_waking(struct idle_stats *h, struct prescan_vcpu *l, const struct event *ev, bool in_handler)
{
	const int64_t waker = event_tid(h, ev);
	const struct prescan_vcpu *sibling = find_vcpu(h, waker);
	if (!h->has_injections)
		episode_woken(&l->at, in_handler || waker < 0, sibling ? &sibling->at : NULL);
}

void idle_stats_feed(struct idle_stats *h, const struct event *ev, bool in_handler)
{
	struct prescan_vcpu *l;
	switch (ev->kind) {
	case EV_SWITCH:
		record_switch(h, ev);
		break;
	case EV_LOST:
		forget_vcpus(h);
		break;
	case EV_VCPU_ENTRY:
		if ((l = vcpu_of_event(h, ev)))
			learn_entry(h, l, ev);
		break;
	case EV_INJECT:
		h->has_injections = true;
		if ((l = vcpu_of_event(h, ev)))
			l->at.vector = (int16_t)(ev->inject.vector & 0xff);
		break;
	case EV_VCPU_EXIT:
		if ((l = vcpu_of_event(h, ev)))
			learn_exit(h, l, ev);
		break;
	case EV_WAKING:
		if (!(l = find_vcpu(h, ev->wake.tid)))
			break;
		learn_waking(h, l, ev, in_handler);
		/* fall through */
	case EV_IPI:
		if ((l = find_vcpu(h, event_tid(h, ev)))) {
			l->followups->sends |= ev->kind == EV_IPI;
			learn_ipi(h, l);
		}
		break;
	default:
		break;
	}
}

static int compare_ns(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t quantile(const struct idle_path *w, enum interval_end end, size_t hundredths)
{
	return w->ns[end][w->n[end] * hundredths / 100];
}

/* Returns the duration derived from a quantile of one end; NO_LIMIT: the path rarely ends in this way. */
static int64_t end_limit(const struct idle_path *w, enum interval_end end, size_t hundredths, int tenths)
{
	size_t all = w->n[END_HALT] + w->n[END_WRITE] + w->n[END_THREAD];
	return w->n[end] * 100 > all * RARE_MAX ? quantile(w, end, hundredths) * tenths / 10 : NO_LIMIT;
}

/* ---- results */

/* Reclassifies writes as actions of threads that set a timer, if the time to the halt was that of a switch away from a
 * thread. */
static void reclassify_writes(struct idle_path *w, int64_t min_halt)
{
	const size_t n = w->n[END_WRITE];
	size_t threads = 0, idle = 0;
	w->n[END_WRITE] = 0;
	for (size_t i = 0; i < n; i++) {
		const int32_t ns = w->ns[END_WRITE][i];
		if (idle_path_is_switch(w->rest[i], min_halt)) {
			*ARRAY_PUSH(w->ns[END_THREAD], w->n[END_THREAD], w->cap[END_THREAD]) = ns;
			threads++;
		} else {
			w->ns[END_WRITE][w->n[END_WRITE]++] = ns;
			idle += w->rest[i] > 0;
		}
	}
	w->typical.timers = threads > idle;
}

static void finish_path(struct idle_path *w, bool after_write, bool later)
{
	for (int end = 0; end < PATH_ENDS; end++)
		ARRAY_SORT(w->ns[end], w->n[end], compare_ns);
	struct typical_times *u = &w->typical;
	const int64_t by_halt = end_limit(w, END_HALT, QUICK_HALT, HEAD_OF_HALT);
	const int64_t by_thread = end_limit(w, END_THREAD, TYPICAL_THREAD, u->timers ? HEAD_OF_TIMER : HEAD_OF_THREAD);
	const size_t all = w->n[END_HALT] + w->n[END_WRITE] + w->n[END_THREAD];
	const enum path_kind kind = w->n[END_WRITE] * 100 > all * FREQUENT_MIN ? PATH_TO_WRITE
	                         : by_thread < by_halt ? PATH_TO_THREAD : PATH_TO_HALT;
	/* After a second write the interrupt handler has finished: a further write is rarely by a thread. */
	const int64_t by_write = later && by_halt != NO_LIMIT ? NO_LIMIT
	                         : end_limit(w, END_WRITE, TYPICAL_WRITE, HEAD_OF_WRITE);
	u->head = min64(min64(by_halt, by_thread), by_write);
	const int64_t halt = by_halt == NO_LIMIT ? u->head : quantile(w, END_HALT, QUICK_HALT);
	const int64_t write = kind == PATH_TO_HALT ? halt : w->n[END_WRITE] ? quantile(w, END_WRITE, QUICK_WRITE) : u->head;
	const int64_t unit[] = { [END_HALT] = halt, [END_WRITE] = write, [END_INTERRUPT] = u->head };
	for (int end = 0; end <= END_INTERRUPT; end++) {
		int tenths = limit_tenths[kind][after_write][end];
		u->limit[end] = tenths < 0 ? NO_LIMIT : end == END_THREAD ? -1 : unit[end] * tenths / 10;
	}
}

/* Computes, from all halts, the shortest time from a switch to the idle thread to the halt. */
static void finish_halts(struct idle_path *w)
{
	qsort(w->ns[END_HALT], w->n[END_HALT], sizeof *w->ns[END_HALT], compare_ns);
	w->typical.head = quantile(w, END_HALT, MIN_HALT);
}

static void free_samples(struct idle_path *w)
{
	for (int end = 0; end < PATH_ENDS; end++) {
		free(w->ns[end]);
		w->ns[end] = NULL;
	}
	free(w->rest);
	w->rest = NULL;
}

static void free_vcpus(struct idle_stats *h)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&h->vcpu_by_tid, &at, &tid, &p); )
		free((struct prescan_vcpu *)(uintptr_t)p);
	map_release(&h->vcpu_by_tid);
	free(h->cpu);
	h->cpu = NULL;
	h->cpus = 0;
}

void idle_stats_finish(struct idle_stats *h)
{
	uint64_t k, i;
	for (size_t at = 0; map_each(&h->index, &at, &k, &i); )
		if ((uint32_t)k == PATH_HALT)
			finish_halts(&h->path[i]);
	for (size_t at = 0; map_each(&h->index, &at, &k, &i); ) {
		const uint32_t path = (uint32_t)k;
		if (path >= PATH_WRITE)
			reclassify_writes(&h->path[i], idle_path_min_halt(h, (int32_t)(k >> 32)));
		if (path != PATH_HALT)
			finish_path(&h->path[i], path >= PATH_WRITE, path >= PATH_WRITES);
		free_samples(&h->path[i]);
	}
	poll_sites_finish(&h->poll_sites);
	free_vcpus(h);
}

void idle_stats_release(struct idle_stats *h)
{
	free_vcpus(h);
	irq_followups_release(&h->followups);
	map_release(&h->site);
	poll_sites_release(&h->poll_sites);
	for (size_t i = 0; i < h->paths; i++)
		free_samples(&h->path[i]);
	free(h->path);
	map_release(&h->index);
	*h = (struct idle_stats)IDLE_STATS_INIT;
}
