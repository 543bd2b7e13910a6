/* Quick check before a search: rejects an interval that no clock, of any offset and drift, can place in guest mode.
 *
 * Near the middle of the interval the drift has little effect, so an event that is outside guest mode for an offset is
 * outside for every clock with that offset. O(windows + bins + events x gaps). */
#include "base/base.h"
#include "sync/search/cross_correlation.h"

#include "sync/search/offset_bins.h"

#define REACH_NS 100000000LL    /* tested part of the interval on one side of its middle, ns; more if it has too few
                                 * events */
#define REACH_MAX_NS (8 * REACH_NS)
#define BIN_MIN_NS 20000
#define BINS_MAX (1 << 20)
#define EVENTS_MIN 64         /* minimum event count; with fewer the check rejects nothing */
#define EVENTS_MAX 256
#define ROUNDS 8                /* evaluation count, each after another 1/8 of the events */

struct precheck_event { unsigned cpu; int64_t since; };  /* since: time after the interval's middle, ns */

/* Intervals longer than a bin in which a guest CPU is certainly outside guest mode, host ns. */
struct certain_gaps { struct ns_interval *gap; size_t len, cap; };

struct precheck {
	const struct evidence *evidence;
	struct offset_bins bins;
	struct certain_gaps *gaps;       /* by guest CPU */
	uint8_t *possible;               /* by bin of the host's trace: 1: the CPU may be in guest mode */
	struct precheck_event event[EVENTS_MAX];
	size_t events;
};

static void mark_possible(struct precheck *o, const struct ns_interval *span, size_t n)
{
	const struct host_timeline *host = o->evidence->host;
	for (size_t i = 0; i < n; i++) {
		const int64_t from = span[i].from > host->begin ? span[i].from : host->begin;
		const int64_t to = span[i].to < host->end ? span[i].to : host->end;
		for (int64_t b = (from - host->begin) / o->bins.width; from <= to && b <= (to - host->begin) / o->bins.width; b++)
			o->possible[b] = 1;
	}
}

static void find_gaps(struct precheck *o, unsigned cpu)
{
	const struct host_timeline *host = o->evidence->host;
	const struct vm_candidate *vm = o->evidence->vm;
	struct certain_gaps *g = &o->gaps[cpu];
	memset(o->possible, 0, o->bins.len);
	for (size_t i = 0; i < vm->vcpus; i++) {
		if (vm->vcpu[i].number != cpu)
			continue;
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		mark_possible(o, th->window, th->windows);
		mark_possible(o, th->unknown, th->unknowns);
	}
	for (size_t b = 0, from = 0; b <= o->bins.len; b++) {
		if (b < o->bins.len && !o->possible[b])
			continue;
		if (b > from + 1)
			*ARRAY_PUSH(g->gap, g->len, g->cap) = (struct ns_interval){ host->begin + (int64_t)from * o->bins.width,
				host->begin + (int64_t)b * o->bins.width - 1 };
		from = b + 1;
	}
}

/* Samples events of the interval at even distances. */
static void sample_events(struct precheck *o, struct ns_interval at, int64_t middle)
{
	const struct activity *activity = o->evidence->activity;
	const size_t stride = activity_count(activity, at) / EVENTS_MAX + 1;
	size_t k = 0;
	o->events = 0;
	for (unsigned c = 0; c < activity->cpus; c++) {
		const struct activity_cpu *cpu = &activity->cpu[c];
		for (size_t i = activity_find(cpu, at.from); i < cpu->len && cpu->ts[i] <= at.to; i++)
			if (k++ % stride == 0 && o->events < EVENTS_MAX)
				o->event[o->events++] = (struct precheck_event){ c, cpu->ts[i] - middle };
	}
}

/* Counts a violation for the offsets at which the event is outside guest mode. An offset is the host time of the middle
 * of the interval. */
static void exclude_offsets(struct precheck *o, const struct precheck_event *e)
{
	const int64_t tolerance = llabs(e->since) * DRIFT_LIMIT_PPM / 1000000 + 1, begin = o->evidence->host->begin + e->since;
	const struct certain_gaps *g = &o->gaps[e->cpu];
	if (!work_spend(o->evidence->activity->budget, g->len))
		return;
	for (size_t i = 0; i < g->len; i++)
		offset_bins_exclude(&o->bins, g->gap[i].from + tolerance - begin, g->gap[i].to - tolerance - begin);
}

/* Returns true if for each offset in the range of bins too many events are outside guest mode. */
static bool rejects_all(struct precheck *o, size_t from, size_t to)
{
	offset_bins_reset(&o->bins);
	for (size_t r = 0; r < ROUNDS && o->events >= EVENTS_MIN; r++) {
		for (size_t i = r; i < o->events; i += ROUNDS)
			exclude_offsets(o, &o->event[i]);
		if (offset_bins_add_up(&o->bins, from, to) > (int)(o->events / PRECHECK_ONE_IN))
			return true;
	}
	return false;
}

/* Returns a distance from the middle, ns, within which there are enough events on both sides, or the greatest allowed
 * distance. 0: all events of the interval have the same time. */
static int64_t choose_reach(const struct activity *activity, int64_t middle, int64_t half)
{
	int64_t by = half < REACH_NS ? half : REACH_NS;
	while (by > 0 && by <= half / 2 && 2 * by <= REACH_MAX_NS &&
	       (activity_count(activity, (struct ns_interval){ middle - by, middle }) < EVENTS_MIN ||
	        activity_count(activity, (struct ns_interval){ middle, middle + by }) < EVENTS_MIN))
		by *= 2;
	return by;
}

bool offset_precheck_rejects(const struct evidence *evidence, struct ns_interval interval)
{
	struct precheck o = { .evidence = evidence };
	int64_t width = BIN_MIN_NS;
	const int64_t half = (interval.to - interval.from) / 2, middle = interval.from + half,
		reach = choose_reach(evidence->activity, middle, half);
	const int64_t span = evidence->host->end - evidence->host->begin;
	if (span < 3 * reach || reach <= 0)
		return false;
	while (span / width >= BINS_MAX)
		width *= 2;
	offset_bins_init(&o.bins, (size_t)(span / width) + 1, width);
	o.gaps = mem_new(evidence->activity->cpus, sizeof *o.gaps);
	o.possible = mem_new(o.bins.len, sizeof *o.possible);
	for (unsigned c = 0; c < evidence->activity->cpus; c++)
		find_gaps(&o, c);
	/* Events after the end of the host's trace prove nothing: for offsets near its end, events before the middle are
	 * used. */
	const size_t last = o.bins.len - (size_t)(reach / width) - 1;
	sample_events(&o, (struct ns_interval){ middle, middle + reach }, middle);
	bool rejected = rejects_all(&o, 0, last);
	if (rejected) {
		sample_events(&o, (struct ns_interval){ middle - reach, middle }, middle);
		rejected = rejects_all(&o, last, o.bins.len);
	}
	for (unsigned c = 0; c < evidence->activity->cpus; c++)
		free(o.gaps[c].gap);
	free(o.gaps);
	free(o.possible);
	offset_bins_release(&o.bins);
	return rejected;
}
