#include "sync/search/confidence_range.h"

#include <math.h>

#include "base/base.h"

#define SHIFTS 8
#define SHIFT_NS 7300000  /* distance between the shifted clocks, ns; no multiple of a common timer period */

/* Position of events relative to guest mode; events in one window, or in one gap between windows, are one observation. */
enum position { OUTSIDE, AT_EDGE, INSIDE, POSITIONS };

struct observation { int64_t first, last; enum position position; };

struct observations {
	struct observation *observation;
	size_t len, cap;
};

ORDER_BY(by_time, struct observation, RISING(first))

static enum position position_of(const struct vthread *th, size_t started, int64_t low, int64_t high)
{
	if (started == 0 || th->window[started - 1].to < low)
		return OUTSIDE;
	const struct ns_interval *w = &th->window[started - 1];
	return low - w->from <= DELAY_NS || w->to - high <= DELAY_NS ? AT_EDGE : INSIDE;
}

/* Appends the positions of a CPU's events under the clock shifted by `shift` ns. */
static void observe_cpu(const struct evidence *evidence, const struct clock_map *clock, int64_t shift, unsigned cpu,
                        struct observations *out)
{
	const struct activity_cpu *c = &evidence->activity->cpu[cpu];
	const struct vthread *last = NULL;
	struct window_cursor cursor = { evidence->host, evidence->vm, cpu, NULL, 0 };
	struct clock_hint edge = { 0 };
	size_t window = 0;
	bool was_outside = false;
	for (size_t i = 0; i < c->len; i++) {
		int64_t low, high;
		if (clock_map_is_ambiguous(clock, c->ts[i]) || !clock_map_bounds_hint(clock, c->ts[i], &edge, &low, &high)
		    || (low += shift) < evidence->host->begin || (high += shift) > evidence->host->end)
			continue;
		const struct vthread *th = window_cursor_seek(&cursor, low);
		if (!th || vthread_is_unknown(th, low, high))
			continue;
		const size_t started = window_cursor_count(&cursor, high);
		const enum position position = position_of(th, started, low, high);
		if (th != last || started != window || (position == OUTSIDE) != was_outside)
			*ARRAY_PUSH(out->observation, out->len, out->cap) = (struct observation){ c->ts[i], c->ts[i], position };
		struct observation *w = &out->observation[out->len - 1];
		w->last = c->ts[i];
		w->position = position == AT_EDGE ? AT_EDGE : w->position;
		last = th;
		window = started;
		was_outside = position == OUTSIDE;
	}
}

static void observe_all(const struct evidence *evidence, const struct clock_map *clock, int64_t shift,
                        struct observations *out)
{
	for (unsigned c = 0; c < evidence->activity->cpus; c++)
		observe_cpu(evidence, clock, shift, c, out);
}

/* Gets each position's frequency, 0..1, never 0. */
static void position_shares(const struct observations *w, double share[POSITIONS])
{
	for (int k = 0; k < POSITIONS; k++)
		share[k] = 1;
	for (size_t i = 0; i < w->len; i++)
		share[w->observation[i].position]++;
	for (int k = 0; k < POSITIONS; k++)
		share[k] /= (double)w->len + POSITIONS;
}

/* Gets each position's evidence, nats: log of (its frequency under the clock / its frequency under shifted clocks). */
static void weigh_positions(const struct evidence *evidence, const struct clock_map *clock, const struct observations *own,
                            double nats[POSITIONS])
{
	double own_share[POSITIONS], chance[POSITIONS];
	struct observations other = { NULL, 0, 0 };
	for (int i = 1; i <= SHIFTS; i++)
		observe_all(evidence, clock, (i % 2 ? i : -i) * SHIFT_NS, &other);
	position_shares(own, own_share);
	position_shares(&other, chance);
	for (int k = 0; k < POSITIONS; k++)
		nats[k] = log(own_share[k] / chance[k]);
	free(other.observation);
}

bool confidence_range_find(const struct evidence *evidence, const struct clock_map *clock, double min_nats,
                           struct ns_interval *out)
{
	struct observations w = { NULL, 0, 0 };
	double nats[POSITIONS], sum = 0;
	observe_all(evidence, clock, 0, &w);
	weigh_positions(evidence, clock, &w, nats);
	ARRAY_SORT(w.observation, w.len, by_time);
	*out = (struct ns_interval){ INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < w.len && out->from == INT64_MAX; i++)
		if ((sum += nats[w.observation[i].position]) >= min_nats)
			out->from = w.observation[i].last;
	sum = 0;
	for (size_t i = w.len; i-- > 0 && out->to == INT64_MIN;)
		if ((sum += nats[w.observation[i].position]) >= min_nats)
			out->to = w.observation[i].first;
	free(w.observation);
	return out->from < out->to;
}
