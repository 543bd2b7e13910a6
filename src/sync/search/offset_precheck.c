/* Before a search: is there a clock at all, of whatever offset and drift, under which a segment may be covered?
 *
 * Beside the segment's middle little depends on the drift, so what is out of guest mode there under an offset is so under
 * any clock of that offset.  O(windows + bins + events x gaps). */
#include "sync/search/cross_correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/fit/piecewise_fit.h"

#define BESIDE_NS 100000000LL   /* of the segment, on one side of its middle, and where that has too few events: */
#define BESIDE_MOST_NS (8 * BESIDE_NS)
#define BIN_LEAST_NS 20000
#define BINS_MAX (1 << 20)
#define EVENTS_LEAST 64         /* fewer say nothing */
#define EVENTS_MAX 256
#define ROUNDS 8                /* looks at what is left */
#define MAY_MISS 4              /* of so many events one: more than of a segment of which SHARE_LEAST is covered */

struct instant { unsigned cpu; int64_t since; };  /* ns since the middle */

/* When a guest CPU is surely out of guest mode: ns of the host, longer than a bin. */
struct absences { struct span *gap; size_t len, cap; };

struct offsets {
	const struct seen *seen;
	int64_t bin;
	size_t bins;
	struct absences *gaps;       /* of each guest CPU */
	uint8_t *maybe;          /* by bin of the host's trace: the CPU may be in guest mode */
	int16_t *change, *miss;  /* by bin of offsets: misses since the last look, as differences, and up to that */
	struct instant moment[EVENTS_MAX];
	size_t events;
};

static void mark(struct offsets *o, const struct span *span, size_t n)
{
	const struct host_view *host = o->seen->host;
	for (size_t i = 0; i < n; i++) {
		const int64_t from = span[i].from > host->begin ? span[i].from : host->begin;
		const int64_t to = span[i].to < host->end ? span[i].to : host->end;
		for (int64_t b = (from - host->begin) / o->bin; from <= to && b <= (to - host->begin) / o->bin; b++)
			o->maybe[b] = 1;
	}
}

static void find_gaps(struct offsets *o, unsigned cpu)
{
	const struct host_view *host = o->seen->host;
	const struct vm_view *vm = o->seen->vm;
	struct absences *g = &o->gaps[cpu];
	memset(o->maybe, 0, o->bins);
	for (size_t i = 0; i < vm->vcpus; i++) {
		if (vm->vcpu[i].number != cpu)
			continue;
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		mark(o, th->window, th->windows);
		mark(o, th->blind, th->blinds);
	}
	for (size_t b = 0, from = 0; b <= o->bins; b++) {
		if (b < o->bins && !o->maybe[b])
			continue;
		if (b > from + 1)
			*ARRAY_PUSH(g->gap, g->len, g->cap) = (struct span){ host->begin + (int64_t)from * o->bin,
				host->begin + (int64_t)b * o->bin - 1 };
		from = b + 1;
	}
}

/* Some of the segment's events from..to, evenly. */
static void take_events(struct offsets *o, struct segment at, int64_t middle)
{
	const struct activity *act = o->seen->act;
	const size_t stride = activity_count(act, at) / EVENTS_MAX + 1;
	size_t k = 0;
	o->events = 0;
	for (unsigned c = 0; c < act->cpus; c++) {
		const struct activity_cpu *cpu = &act->cpu[c];
		for (size_t i = activity_find(cpu, at.from); i < cpu->len && cpu->ts[i] <= at.to; i++)
			if (k++ % stride == 0 && o->events < EVENTS_MAX)
				o->moment[o->events++] = (struct instant){ c, cpu->ts[i] - middle };
	}
}

/* Under these offsets (what the host's clock shows at the segment's middle) the event is out of guest mode. */
static void strike(struct offsets *o, const struct instant *e)
{
	const int64_t room = llabs(e->since) * DRIFT_LIMIT_PPM / 1000000 + 1, begin = o->seen->host->begin + e->since;
	const struct absences *g = &o->gaps[e->cpu];
	for (size_t i = 0; i < g->len; i++) {
		const int64_t from = g->gap[i].from + room - begin, to = g->gap[i].to + 1 - room - begin;
		const int64_t a = from <= 0 ? 0 : (from + o->bin - 1) / o->bin, b = to < 0 ? 0 : to / o->bin;
		if (a >= b || a >= (int64_t)o->bins)
			continue;
		o->change[a]++;
		o->change[b < (int64_t)o->bins ? b : (int64_t)o->bins]--;
	}
}

/* The least misses of any offset in the range of bins. */
static size_t least_misses(struct offsets *o, size_t from, size_t to)
{
	int now = 0, least = INT16_MAX;
	for (size_t i = 0; i < to; i++) {
		now += o->change[i];
		o->miss[i] = (int16_t)(o->miss[i] + now);
		least = i >= from && o->miss[i] < least ? o->miss[i] : least;
	}
	memset(o->change, 0, (o->bins + 1) * sizeof *o->change);
	return (size_t)least;
}

/* Does what happened beside the middle lie out of guest mode, whatever offset of that range of bins is right? */
static bool is_refuted(struct offsets *o, size_t from, size_t to)
{
	memset(o->miss, 0, o->bins * sizeof *o->miss);
	memset(o->change, 0, (o->bins + 1) * sizeof *o->change);
	for (size_t r = 0; r < ROUNDS && o->events >= EVENTS_LEAST; r++) {
		for (size_t i = r; i < o->events; i += ROUNDS)
			strike(o, &o->moment[i]);
		if (least_misses(o, from, to) > o->events / MAY_MISS)
			return true;
	}
	return false;
}

/* So far to both sides of the middle, for each of them to say something. */
static int64_t far_enough(const struct activity *act, int64_t middle, int64_t half)
{
	for (int64_t by = half < BESIDE_NS ? half : BESIDE_NS;; by *= 2)
		if (2 * by > half || 2 * by > BESIDE_MOST_NS ||
		    (activity_count(act, (struct segment){ middle - by, middle }) >= EVENTS_LEAST &&
		     activity_count(act, (struct segment){ middle, middle + by }) >= EVENTS_LEAST))
			return by;
}

bool guess_nowhere(const struct seen *seen, struct segment seg)
{
	struct offsets o = { .seen = seen, .bin = BIN_LEAST_NS };
	const int64_t half = (seg.to - seg.from) / 2, middle = seg.from + half, beside = far_enough(seen->act, middle, half);
	const int64_t span = seen->host->end - seen->host->begin;
	if (span < 3 * beside || beside <= 0)
		return false;
	while (span / o.bin >= BINS_MAX)
		o.bin *= 2;
	o.bins = (size_t)(span / o.bin) + 1;
	o.gaps = mem_new(seen->act->cpus, sizeof *o.gaps);
	o.maybe = mem_new(o.bins, sizeof *o.maybe);
	o.miss = mem_new(o.bins, sizeof *o.miss);
	o.change = mem_new(o.bins + 1, sizeof *o.change);
	for (unsigned c = 0; c < seen->act->cpus; c++)
		find_gaps(&o, c);
	/* What lies beyond the host's trace speaks against nothing: at its end the other side is asked. */
	const size_t last = o.bins - (size_t)(beside / o.bin) - 1;
	take_events(&o, (struct segment){ middle, middle + beside }, middle);
	bool nowhere = is_refuted(&o, 0, last);
	if (nowhere) {
		take_events(&o, (struct segment){ middle - beside, middle }, middle);
		nowhere = is_refuted(&o, last, o.bins);
	}
	for (unsigned c = 0; c < seen->act->cpus; c++)
		free(o.gaps[c].gap);
	free(o.gaps);
	free(o.maybe);
	free(o.miss);
	free(o.change);
	return nowhere;
}
