/* The fine search: for a given drift each event allows an interval of offsets per window near it; a sweep over the
 * ends of those intervals finds the offset that most events allow. */
#include "sync/search/cross_correlation.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

struct tick { int64_t at; int change; };

struct guess_sweep {
	const struct seen *seen;
	struct tick *tick;
	size_t ticks, cap;
	unsigned events;
	int64_t soft;  /* ns by which windows are widened: what the steps of the drift leave open at the segment's ends */
};

static int by_at(const void *pa, const void *pb)
{
	const struct tick *a = pa, *b = pb;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return b->change - a->change;  /* an interval that ends here still touches one that starts here */
}

/* The window and `soft` ns on both sides of it, but not past the middle of the gap to its neighbour. */
static struct span softened(const struct vthread *th, size_t i, int64_t soft)
{
	struct span w = th->window[i];
	int64_t left = i > 0 ? (w.from - th->window[i - 1].to - 1) / 2 : soft;
	int64_t right = i + 1 < th->windows ? (th->window[i + 1].from - w.to - 1) / 2 : soft;
	w.from -= left < soft ? left : soft;
	w.to += right < soft ? right : soft;
	return w;
}

static void add_event(struct guess_sweep *s, unsigned cpu, int64_t at, int64_t reach)
{
	if (at - reach < s->seen->host->begin || at + reach > s->seen->host->end)
		return;
	const struct vthread *th = vm_thread_at(s->seen->host, s->seen->vm, cpu, at);
	if (th && vthread_blind(th, at - reach, at + reach))
		return;
	s->events++;
	size_t near = 0;
	if (!th)
		return;
	(void)vthread_mode(th, at + reach, &near);
	for (; near > 0 && th->window[near - 1].to >= at - reach; near--) {
		struct span w = softened(th, near - 1, s->soft);
		*ARRAY_PUSH(s->tick, s->ticks, s->cap) = (struct tick){ w.from - at < -reach ? -reach : w.from - at, 1 };
		*ARRAY_PUSH(s->tick, s->ticks, s->cap) = (struct tick){ w.to - at > reach ? reach : w.to - at, -1 };
	}
}

static void sweep_once(struct guess_sweep *s, struct segment seg, int64_t reach, unsigned sample, struct guess *g)
{
	size_t all = activity_count(s->seen->act, seg);
	s->ticks = 0;
	s->events = 0;
	/* A sample is made of every stride-th run of 4 events, so that both ends of a burst take part. */
	size_t stride = all / sample + 1;
	for (unsigned c = 0; c < s->seen->act->cpus; c++) {
		const struct activity_cpu *cpu = &s->seen->act->cpu[c];
		for (size_t i = activity_find(cpu, seg.from); i < cpu->len && cpu->ts[i] <= seg.to; i++)
			if ((i / 4) % stride == 0)
				add_event(s, c, g->at_host + (int64_t)((double)(cpu->ts[i] - g->at_guest) * (1 + g->ppm / 1e6)), reach);
	}
	if (s->ticks > 0)
		qsort(s->tick, s->ticks, sizeof *s->tick, by_at);
	int now = 0, best = 0;
	int64_t from = 0, to = 0;
	for (size_t i = 0; i + 1 < s->ticks; i++) {
		now += s->tick[i].change;
		int64_t until = s->tick[i + 1].at;
		if (now > best || (now == best && until - s->tick[i].at > to - from)) {
			best = now;
			from = s->tick[i].at;
			to = until;
		}
	}
	g->events = s->events;
	g->covered = (unsigned)best;
	g->slack = to - from;
	g->at_host += from + (to - from) / 2;
}

static bool better(const struct guess *a, const struct guess *b)
{
	double sa = a->events == 0 ? 0 : (double)a->covered / a->events;
	double sb = b->events == 0 ? 0 : (double)b->covered / b->events;
	return sa > sb || (sa == sb && a->slack > b->slack);
}

void guess_sweep(const struct seen *seen, struct segment seg, int64_t reach, unsigned sample, struct guess *g)
{
	struct guess_sweep s = { .seen = seen };
	double half = (double)(seg.to - seg.from) / 2 + 1;
	struct guess best = *g;
	/* Half a step moves the ends by `fine` ns; the range is what the search before this one left open. */
	double fine = (double)reach / 32;
	s.soft = (int64_t)fine;
	double step = 2e6 * fine / half, range = 1e6 * (double)reach / half / 2;
	best.covered = 0;
	best.events = 0;
	best.slack = -1;
	for (double d = 0; d <= range; d += step) {
		for (int sign = -1; sign <= (d > 0 ? 1 : -1); sign += 2) {
			struct guess t = *g;
			t.ppm += sign * d;
			sweep_once(&s, seg, reach, sample, &t);
			if (better(&t, &best))
				best = t;
		}
	}
	free(s.tick);
	*g = best;
}
