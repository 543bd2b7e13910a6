#include "sync/search/silence.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define BINS 1024
#define SILENCE_NATS 20.0  /* how unlikely a silence must be if windows were left without events at random */
#define PLACE_NATS 7.0     /* of these, what it costs that it may be in any bin: ln(BINS) */

/* A span of the host's time. */
struct bin {
	uint64_t windows;     /* that begin in it */
	int64_t first, last;  /* guest ns of its events; first > last: it has none */
};

struct bins {
	struct bin bin[BINS];
	int64_t from, length; /* host ns; of a bin */
	uint64_t used;        /* windows with events */
};

static size_t bin_of(const struct bins *b, int64_t t)
{
	const int64_t at = t < b->from ? 0 : (t - b->from) / b->length;
	return at < BINS ? (size_t)at : BINS - 1;
}

static void count_windows(const struct seen *seen, struct bins *b)
{
	for (size_t i = 0; i < seen->vm->vcpus; i++) {
		const struct vthread *th = &seen->host->thread[seen->vm->vcpu[i].thread];
		for (size_t k = span_find(th->window, th->windows, b->from); k < th->windows; k++)
			if (th->window[k].from < b->from + b->length * BINS)
				b->bin[bin_of(b, th->window[k].from)].windows++;
	}
}

static void count_events(const struct seen *seen, const struct clock_map *clock, unsigned cpu, struct bins *b)
{
	const struct activity_cpu *c = &seen->act->cpu[cpu];
	const struct vthread *last = NULL;
	size_t near = 0, window = 0;
	for (size_t i = 0; i < c->len; i++) {
		const int64_t at = clock_map_at(clock, c->ts[i]);
		const struct vthread *th = vm_thread_at(seen->host, seen->vm, cpu, at);
		struct bin *bin = &b->bin[bin_of(b, at)];
		if (at < b->from || at >= b->from + b->length * BINS)
			continue;
		bin->first = c->ts[i] < bin->first ? c->ts[i] : bin->first;
		bin->last = c->ts[i] > bin->last ? c->ts[i] : bin->last;
		if (!th)
			continue;
		near = vthread_windows(th, at, th == last ? near : 0);
		b->used += near > 0 && (th != last || near != window);
		window = near;
		last = th;
	}
}

/* What both traces cover. */
static struct bins *fill(const struct seen *seen, const struct clock_map *clock)
{
	const struct host_view *host = seen->host;
	const int64_t begin = clock_map_at(clock, seen->act->begin), end = clock_map_at(clock, seen->act->end);
	struct bins *b = mem_new(1, sizeof *b);
	b->from = begin > host->begin ? begin : host->begin;
	b->length = ((end < host->end ? end : host->end) - b->from) / BINS;
	for (size_t i = 0; i < BINS; i++)
		b->bin[i] = (struct bin){ 0, INT64_MAX, INT64_MIN };
	if (b->length <= 0)
		return b;
	count_windows(seen, b);
	for (unsigned c = 0; c < seen->act->cpus; c++)
		count_events(seen, clock, c, b);
	return b;
}

static bool is_silent(const struct bin *b)
{
	return b->first > b->last;
}

/* Nats that speak against a silence, for each of its windows. */
static double weight_of(const struct bins *b)
{
	uint64_t windows = 0;
	for (size_t i = 0; i < BINS; i++)
		windows += is_silent(&b->bin[i]) ? 0 : b->bin[i].windows;
	return windows == 0 ? 0 : -log1p(-fmin((double)b->used / (double)windows, 0.99));
}

/* The silence in the bins [from, to) is too long for chance.  What lies at an end of the trace is one place, not any. */
static bool is_unlikely(size_t from, size_t to, double nats)
{
	return nats >= SILENCE_NATS - (from == 0 || to == BINS ? PLACE_NATS : 0);
}

/* Silences that begin and end with the trace have nothing on that side but what lies beside the host's trace. */
static bool parts_of(const struct bins *b, const struct activity *act, struct segment part[2])
{
	const double weight = weight_of(b);
	int64_t heard = INT64_MIN;  /* guest ns */
	bool found = false;
	part[0] = part[1] = (struct segment){ act->begin, act->begin - 1 };
	for (size_t i = 0; i < BINS; i++) {
		uint64_t windows = 0;
		size_t to = i;
		for (; to < BINS && is_silent(&b->bin[to]); to++)
			windows += b->bin[to].windows;
		if (is_unlikely(i, to, (double)windows * weight)) {
			const int64_t next = to < BINS ? b->bin[to].first : INT64_MAX;
			if (!found)
				part[0].to = heard > INT64_MIN ? heard : next == INT64_MAX ? act->end : next - 1;
			part[1] = (struct segment){ next < INT64_MAX ? next : heard > INT64_MIN ? heard + 1 : act->begin, act->end };
			found = true;
		}
		if (to < BINS)
			heard = b->bin[to].last;
		i = to;
	}
	return found;
}

bool silence_find(const struct seen *seen, const struct clock_map *clock, struct segment part[2])
{
	if (seen->host->sliced > 0 || seen->act->sliced > 0 || seen->act->lossy)
		return false;
	struct bins *b = fill(seen, clock);
	const bool found = b->length > 0 && parts_of(b, seen->act, part);
	free(b);
	return found;
}
