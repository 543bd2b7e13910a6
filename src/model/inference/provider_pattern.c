#include "model/inference/provider_pattern.h"

#include <math.h>

#include "model/inference/steal_clock.h"

#define STEP_MIN 1000000           /* the clock's smallest step, ns */
#define SILENCE_MIN 1000000        /* shorter silences contain no step, ns */
#define TICK_MAX 10000000          /* longest tick period, ns: a busy vCPU that executes is silent for less */
#define STEPS_MAX 4096             /* more steps are not pauses, but a broken clock */
#define GAP_LONG 1000000           /* shorter gaps take no part in a pattern, ns */
#define QUOTA_GAPS 8
#define QUOTA_OUTLIERS 2           /* gaps in a window that may end off the grid: the vCPU then waited for others */
#define GRID_TOLERANCE 0.02        /* relative to the period */
#define QUOTA_PERIOD_MAX 1000000000  /* ns, the kernel's limit */
#define QUOTA_PERIOD_STEP 50000000 /* ns; usual periods are its multiples */
#define SLICES_PERIOD_MAX 48000000 /* longest period if two tasks have about equal weights: slices of 20 ms or less, ns */
#define SLICE_MAX 11000000         /* the lighter task's longest slice otherwise: one tick at 100 Hz, and 10 %, ns */
#define SLICE_XEN 30000000         /* slice in Xen's scheduler credit, ns */
#define SLICE_TOLERANCE (SLICE_XEN / 20)
#define NEIGHBOUR_GAPS 10
#define TICK_OFFSET 0.01           /* relative to the tick */
#define NEAR_NS 250000000          /* longest distance between one neighbour's gaps, ns */

/* ---- clock steps */

static void add_step(struct clock_watch *w, int64_t ns)
{
	if (w->steps >= STEPS_MAX)
		return;
	const struct clock_step step = { w->timer[WATCH_SIDE - 1].t, w->timer[WATCH_SIDE].t, ns };
	*ARRAY_PUSH(w->step, w->steps, w->steps_cap) = step;
	for (size_t i = 0; ns > 0 && i < w->silences; i++) {
		const struct stopped_cpu *s = &w->silence[i];
		const int64_t from = s->begin > step.after ? s->begin : step.after;
		const int64_t to = s->end < step.before ? s->end : step.before;
		if (to - from >= ns / 10 * 9)
			*ARRAY_PUSH(w->stopped, w->stoppeds, w->stopped_cap) = (struct stopped_cpu){ s->begin, s->end, ns, s->cpu };
	}
}

/* Returns the least delayed timer in [from, to): how far the TSC is ahead of the clock, ns. */
static int64_t level(const struct clock_watch *w, size_t from, size_t to)
{
	int64_t least = w->timer[from].ahead;
	for (size_t i = from + 1; i < to; i++)
		least = w->timer[i].ahead < least ? w->timer[i].ahead : least;
	return least;
}

static void check_step(struct clock_watch *w)
{
	const size_t side = WATCH_SIDE;
	const int64_t before = w->timer[side - 1].ahead, at = w->timer[side].ahead;
	const int64_t low = level(w, 0, side), high = level(w, side, 2 * side);
	if (at - before >= STEP_MIN && high - low >= STEP_MIN)
		add_step(w, high - low);
	else if (at <= low - STEP_MIN && high <= low - STEP_MIN && before >= low)
		add_step(w, high - low);
}

void clock_watch_timer(struct clock_watch *w, int64_t t, int64_t now)
{
	if (w->timers == 2 * WATCH_SIDE)
		memmove(w->timer, w->timer + 1, sizeof w->timer - sizeof *w->timer);
	else
		w->timers++;
	w->timer[w->timers - 1].t = t;
	const int64_t limit = INT64_MAX / 4;  /* so that differences do not overflow */
	w->timer[w->timers - 1].ahead = (t > limit ? limit : t) - (now > limit ? limit : now);
	if (w->timers == 2 * WATCH_SIDE)
		check_step(w);
}

void clock_watch_silence(struct clock_watch *w, uint32_t cpu, int64_t begin, int64_t end)
{
	if (end - begin < SILENCE_MIN)
		return;
	if (w->silences >= 1024) {
		size_t n = 0;
		for (size_t i = 0; i < w->silences; i++)
			if (w->silence[i].end >= w->timer[0].t)
				w->silence[n++] = w->silence[i];
		w->silences = n;
	}
	*ARRAY_PUSH(w->silence, w->silences, w->silences_cap) = (struct stopped_cpu){ begin, end, 0, cpu };
}

void clock_watch_release(struct clock_watch *w)
{
	free(w->silence);
	free(w->step);
	free(w->stopped);
}

/* ---- pauses and migrations */

/* Adds the pauses. The silence is an upper bound of a pause, the step a lower bound, because the hypervisor stops the
 * clock after the vCPUs and starts it before them: the length is the mean of both. Stolen time at the end of the same
 * silence does not belong to the pause; it may have been before the pause, or during it. */
static void add_pauses(struct steal_clock *s, const struct clock_watch *w)
{
	const size_t stolen = s->gaps;
	for (size_t i = 0; i < w->stoppeds; i++) {
		const struct stopped_cpu *p = &w->stopped[i];
		int64_t end = p->end;
		for (size_t k = 0; k < stolen; k++)
			if (s->gap[k].cpu == p->cpu && s->gap[k].end == p->end)
				end = s->gap[k].begin;
		const int64_t longest = end - p->begin;
		const int64_t length = longest > p->ns ? p->ns + (longest - p->ns) / 2 : longest;
		const bool again = s->gaps > stolen && s->gap[s->gaps - 1].cpu == p->cpu && s->gap[s->gaps - 1].end == end;
		if (!again && length > 0 && p->cpu < s->cpus && s->has_reads[p->cpu])
			*ARRAY_PUSH(s->gap, s->gaps, s->gaps_cap) = (struct steal_gap){ .begin = end - length, .end = end,
				.bound = longest - length + (p->end - end), .cpu = p->cpu, .kind = OUT_PROVIDER_PAUSE };
	}
	for (size_t i = 0; i < w->steps; i++)
		for (size_t k = 0; w->step[i].ns < 0 && k < stolen; k++)
			if (s->gap[k].begin < w->step[i].before && s->gap[k].end > w->step[i].after)
				s->gap[k].kind = OUT_PROVIDER_MIGRATION;
}

/* ---- quota and neighbour */

/* Returns the median of n > 0 values; sorts them. */
static int64_t median(int64_t *value, size_t n)
{
	qsort(value, n, sizeof *value, order_int64);
	return value[n / 2];
}

/* Medians in a window of gaps. */
struct rhythm { int64_t period, taken; };

/* Returns true if a window's gaps end on a grid with a constant period, all but QUOTA_OUTLIERS. *on_grid: bit i is
 * set if gap i ends on the grid, or lasts beyond that time. */
static bool is_on_grid(struct steal_gap *const *gap, struct rhythm *r, unsigned *on_grid)
{
	int64_t distance[QUOTA_GAPS], length[QUOTA_GAPS];
	for (size_t i = 0; i < QUOTA_GAPS; i++) {
		length[i] = gap[i]->end - gap[i]->begin;
		if (i)
			distance[i - 1] = gap[i]->end - gap[i - 1]->end;
	}
	r->period = median(distance, QUOTA_GAPS - 1);
	r->taken = median(length, QUOTA_GAPS);
	if (r->period <= 0 || r->period > QUOTA_PERIOD_MAX)
		return false;
	const double period = (double)r->period;
	for (size_t anchor = 0; anchor < QUOTA_GAPS; anchor++) {
		size_t n = 0;
		*on_grid = 0;
		for (size_t i = 0; i < QUOTA_GAPS; i++) {
			const double expected = (double)gap[anchor]->end + ((double)i - (double)anchor) * period;
			const bool hits = fabs((double)gap[i]->end - expected) <= GRID_TOLERANCE * period;
			n += hits;
			*on_grid |= (unsigned)(hits || ((double)gap[i]->begin < expected && (double)gap[i]->end > expected)) << i;
		}
		if (n >= QUOTA_GAPS - QUOTA_OUTLIERS)
			return true;
	}
	return false;
}

static bool is_multiple(double ns, double of, double tolerance)
{
	const double n = round(ns / of);
	return n >= 1 && fabs(ns - n * of) <= tolerance;
}

/* Returns true if a quota made the window, and schedulers do not give such slices to tasks that share a CPU. */
static bool is_quota(const struct rhythm *r)
{
	const int64_t ran = r->period - r->taken;
	const bool is_xen = is_multiple((double)ran, SLICE_XEN, SLICE_TOLERANCE) &&
	                    is_multiple((double)r->taken, SLICE_XEN, SLICE_TOLERANCE);
	return is_multiple((double)r->period, QUOTA_PERIOD_STEP, 0.01 * (double)r->period) && !is_xen &&
	       r->period > SLICES_PERIOD_MAX && ran > SLICE_MAX && r->taken > SLICE_MAX;
}

/* Marks the gaps in all windows with QUOTA_GAPS successive gaps that a vCPU has on a grid. A gap that ends late contains
 * the time when its quota is refilled: the vCPU then also waited for others. */
static void find_quota(struct steal_gap **gap, size_t n)
{
	struct rhythm r;
	unsigned on_grid;
	for (size_t i = 0; i + QUOTA_GAPS <= n; i++) {
		if (!is_on_grid(&gap[i], &r, &on_grid) || !is_quota(&r))
			continue;
		for (size_t k = 0; k < QUOTA_GAPS; k++)
			if (on_grid >> k & 1)
				gap[i + k]->kind = OUT_PROVIDER_QUOTA;
	}
}

/* Returns the probability that n trials with probability p have `hits` or more successes. */
static double binomial_tail(size_t n, size_t hits, double p)
{
	double sum = 0;
	for (size_t k = hits; k <= n; k++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
		           (double)k * log(p) + (double)(n - k) * log(1 - p));
	return sum;
}

static bool has_tick_length(const struct steal_gap *gap, double tick)
{
	return is_multiple((double)(gap->end - gap->begin), tick, tick / 10);
}

/* Returns a usual tick period, ns, if the lengths are multiples of it more often than by chance, and not all longer or
 * shorter by the same time, as a quota's gaps that begin at a tick are; 0: none. */
static double tick_of_lengths(struct steal_gap *const *gap, size_t n)
{
	static const double ticks[] = { 10e6, 4e6, 1e9 / 300 };
	int64_t *rest = mem_new(n + 1, sizeof *rest);
	double found = 0;
	for (size_t t = 0; t < sizeof ticks / sizeof *ticks && found <= 0; t++) {
		size_t hits = 0;
		for (size_t i = 0; i < n; i++) {
			const double ns = (double)(gap[i]->end - gap[i]->begin);
			if (has_tick_length(gap[i], ticks[t]))
				rest[hits++] = (int64_t)(ns - round(ns / ticks[t]) * ticks[t]);
		}
		if (binomial_tail(n, hits, 0.2) >= 0.001 / 3)
			continue;
		const double middle = (double)median(rest, hits), spread = (double)(rest[hits * 3 / 4] - rest[hits / 4]);
		if (fabs(middle) <= TICK_OFFSET * ticks[t] + 2 * spread)
			found = ticks[t];
	}
	free(rest);
	return found;
}

/* Returns true if a window's gaps may be a quota's with a short period, or with periods in which it is not
 * used up: all but QUOTA_OUTLIERS end at the same time modulo a common divisor of usual periods. A gap may have ended
 * earlier, by up to its bound. */
static bool may_be_quota(struct steal_gap *const *gap)
{
	static const double divisor[] = { 20e6, 25e6, 30e6 };
	for (size_t d = 0; d < sizeof divisor / sizeof *divisor; d++)
		for (size_t anchor = 0; anchor < NEIGHBOUR_GAPS; anchor++) {
			size_t n = 0;
			for (size_t i = 0; i < NEIGHBOUR_GAPS; i++) {
				const double at = (double)(gap[i]->end - gap[anchor]->end) / divisor[d];
				const double late = at - floor(at + GRID_TOLERANCE);
				n += late <= GRID_TOLERANCE + (double)gap[i]->bound / divisor[d];
			}
			if (n >= NEIGHBOUR_GAPS - QUOTA_OUTLIERS)
				return true;
		}
	return false;
}

/* Removes the gaps in windows that may be a quota's. Returns how many others there are. */
static size_t remove_periodic(struct steal_gap **gap, size_t n)
{
	bool *remove = mem_new(n + 1, sizeof *remove);
	size_t left = 0;
	for (size_t i = 0; i + NEIGHBOUR_GAPS <= n; i++)
		if (may_be_quota(&gap[i]))
			memset(remove + i, true, NEIGHBOUR_GAPS);
	for (size_t i = 0; i < n; i++)
		if (!remove[i])
			gap[left++] = gap[i];
	free(remove);
	return left;
}

/* Marks a run's gaps, but not those that are no tick multiple and longer than the usual slice and a tick. */
static void mark_neighbour(struct steal_gap **gap, size_t n, double tick)
{
	int64_t *length = mem_new(n + 1, sizeof *length);
	size_t hits = 0;
	for (size_t i = 0; i < n; i++)
		if (has_tick_length(gap[i], tick))
			length[hits++] = gap[i]->end - gap[i]->begin;
	const double longest = (double)median(length, hits) + tick;
	for (size_t i = 0; i < n; i++)
		if (has_tick_length(gap[i], tick) || (double)(gap[i]->end - gap[i]->begin) <= longest)
			gap[i]->kind = OUT_PROVIDER_NEIGHBOUR;
	free(length);
}

static void find_neighbour(struct steal_gap **gap, size_t n)
{
	for (size_t i = 0, to; i < n; i = to) {
		const bool is_open = gap[i]->kind == OUT_PROVIDER;
		to = i + 1;
		while (is_open && to < n && gap[to]->kind == OUT_PROVIDER && gap[to]->begin - gap[to - 1]->end < NEAR_NS)
			to++;
		const double tick = is_open && to - i >= NEIGHBOUR_GAPS ? tick_of_lengths(&gap[i], to - i) : 0;
		if (tick > 0)
			mark_neighbour(&gap[i], to - i, tick);
	}
}

void provider_pattern_find(struct steal_clock *s, struct clock_watch *w)
{
	struct steal_gap **gap = mem_new(s->gaps + 1, sizeof(struct steal_gap *));
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		size_t n = 0;
		for (size_t i = 0; i < s->gaps; i++)
			if (s->gap[i].cpu == cpu && s->gap[i].end - s->gap[i].begin >= TICK_MAX / 2)
				gap[n++] = &s->gap[i];
		find_quota(gap, n);
		n = 0;
		for (size_t i = 0; i < s->gaps; i++)
			if (s->gap[i].cpu == cpu && s->gap[i].end - s->gap[i].begin >= GAP_LONG)
				gap[n++] = &s->gap[i];
		find_neighbour(gap, remove_periodic(gap, n));
	}
	free(gap);
	add_pauses(s, w);
}
