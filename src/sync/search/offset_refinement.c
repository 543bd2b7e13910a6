/* Fine search of the offset: for a given drift, an event is in guest mode for an interval of offsets per window near it;
 * a sweep over the ends of all these intervals finds the offset with most events in guest mode. */
#include "base/base.h"
#include "sync/search/cross_correlation.h"

struct boundary { int64_t at; int change; };

struct offset_sweep {
	const struct evidence *evidence;
	struct boundary *boundary;
	size_t boundaries, cap;
	unsigned events;
	int64_t widen_ns;  /* ns by which windows are widened, because the drift is tried in steps */
};

static int compare_boundaries(const void *pa, const void *pb)
{
	const struct boundary *a = pa, *b = pb;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return b->change - a->change;  /* starts before ends: an interval that ends here touches an interval that starts here */
}

/* Returns the window widened on both sides, but at most to the middle of the gap to the adjacent window. */
static struct ns_interval widened_window(const struct vthread *th, size_t i, int64_t widen_ns)
{
	struct ns_interval w = th->window[i];
	int64_t left = i > 0 ? (w.from - th->window[i - 1].to - 1) / 2 : widen_ns;
	int64_t right = i + 1 < th->windows ? (th->window[i + 1].from - w.to - 1) / 2 : widen_ns;
	w.from -= left < widen_ns ? left : widen_ns;
	w.to += right < widen_ns ? right : widen_ns;
	return w;
}

static void add_event(struct offset_sweep *s, unsigned cpu, int64_t at, int64_t reach)
{
	if (at - reach < s->evidence->host->begin || at + reach > s->evidence->host->end)
		return;
	const struct vthread *th = vm_thread_at(s->evidence->host, s->evidence->vm, cpu, at);
	if (th && vthread_is_unknown(th, at - reach, at + reach))
		return;
	s->events++;
	size_t hint = 0;
	if (!th)
		return;
	(void)vthread_mode(th, at + reach, &hint);
	for (; hint > 0 && th->window[hint - 1].to >= at - reach; hint--) {
		struct ns_interval w = widened_window(th, hint - 1, s->widen_ns);
		const int64_t from = w.from - at < -reach ? -reach : w.from - at, to = w.to - at > reach ? reach : w.to - at;
		*ARRAY_PUSH(s->boundary, s->boundaries, s->cap) = (struct boundary){ from, 1 };
		*ARRAY_PUSH(s->boundary, s->boundaries, s->cap) = (struct boundary){ to, -1 };
	}
}

static void sweep_once(struct offset_sweep *s, struct ns_interval interval, int64_t reach, unsigned sample,
                       struct offset_estimate *g)
{
	size_t all = activity_count(s->evidence->activity, interval);
	s->boundaries = 0;
	s->events = 0;
	if (!work_spend(s->evidence->activity->budget, all))
		return;
	/* The sample consists of every stride-th run of 4 events, so that it includes both ends of a burst. */
	size_t stride = all / sample + 1;
	for (unsigned c = 0; c < s->evidence->activity->cpus; c++) {
		const struct activity_cpu *cpu = &s->evidence->activity->cpu[c];
		for (size_t i = activity_find(cpu, interval.from); i < cpu->len && cpu->ts[i] <= interval.to; i++)
			if ((i / 4) % stride == 0)
				add_event(s, c, g->at_host + (int64_t)((double)(cpu->ts[i] - g->at_guest) * (1 + g->ppm / 1e6)), reach);
	}
	(void)work_spend(s->evidence->activity->budget, s->boundaries);
	ARRAY_SORT(s->boundary, s->boundaries, compare_boundaries);
	int now = 0, best = 0;
	int64_t from = 0, to = 0;
	for (size_t i = 0; i + 1 < s->boundaries; i++) {
		now += s->boundary[i].change;
		int64_t until = s->boundary[i + 1].at;
		if (now > best || (now == best && until - s->boundary[i].at > to - from)) {
			best = now;
			from = s->boundary[i].at;
			to = until;
		}
	}
	g->events = s->events;
	g->covered = (unsigned)best;
	g->tolerance = to - from;
	g->at_host += from + (to - from) / 2;
}

static bool is_better(const struct offset_estimate *a, const struct offset_estimate *b)
{
	double sa = a->events == 0 ? 0 : (double)a->covered / a->events;
	double sb = b->events == 0 ? 0 : (double)b->covered / b->events;
	return sa > sb || (sa == sb && a->tolerance > b->tolerance);
}

void refine_offset(const struct evidence *evidence, struct ns_interval interval, int64_t reach, unsigned sample,
                   struct offset_estimate *g)
{
	struct offset_sweep s = { .evidence = evidence };
	double half = (double)(interval.to - interval.from) / 2 + 1;
	struct offset_estimate best = *g;
	/* Half a drift step moves the ends of the interval by `fine` ns; the range of drifts corresponds to the error of the
	 * previous search. */
	double fine = (double)reach / 32;
	s.widen_ns = (int64_t)fine;
	double step = 2e6 * fine / half, range = 1e6 * (double)reach / half / 2;
	best.covered = 0;
	best.events = 0;
	best.tolerance = -1;
	for (double d = 0; d <= range; d += step) {
		for (int sign = -1; sign <= (d > 0 ? 1 : -1); sign += 2) {
			struct offset_estimate t = *g;
			t.ppm += sign * d;
			sweep_once(&s, interval, reach, sample, &t);
			if (is_better(&t, &best))
				best = t;
		}
	}
	free(s.boundary);
	*g = best;
}
