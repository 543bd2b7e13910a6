#include "sync/search/ambiguity_check.h"

#include <math.h>

#include "base/base.h"
#include "base/hash.h"
#include "sync/search/offset_bins.h"

#define SAMPLE 2048             /* sampled event count; an alternative is first tested on a quarter of them */
#define BINS (1 << 16)          /* offsets evaluated together, in bins */
#define BINS_TOTAL_MAX (1 << 27)    /* limit over all offsets; determines the bin width */
#define BIN_MIN_NS 2000
#define REMAINING_MAX 65536          /* most ranges of offsets that are tested with all events */
#define ROUND 32                /* events between two evaluations of the bins */
#define RECENT_MAX 64
#define TESTS_MAX 50000000      /* limit of event look-ups, which bounds the run time; each event of a refit counts as 12 */

struct sampled_event { int64_t at, tolerance; unsigned cpu; };  /* host time under the clock and its possible error, ns */

struct elimination {
	const struct evidence *evidence;
	const struct clock_candidate *h;
	struct sampled_event *all;        /* all events; NULL: not needed yet */
	struct sampled_event *event;      /* sampled events in random order, so that each prefix is representative */
	size_t events, informative;       /* sampled event count, and of those for which the mode under the clock is
	                                   * known */
	struct offset_bins bins;        /* the clock's BINS shifts */
	struct ns_interval *remaining;  /* ranges of shifts that are not excluded, ns */
	size_t n_remaining;
	bool overflow;
	struct subsample { struct activity activity; uint64_t allowed_violations; } few, more;  /* for testing alternatives */
	struct sampled_event recent[RECENT_MAX];  /* events that contradicted the previous range */
	size_t recents;
	uint64_t tests;
};

/* Iterator over the intervals in which a thread may be in guest mode: its windows and unknown intervals, by start. */
struct possible_intervals { const struct vthread *th; size_t window, unknown; };

static bool next_possible(struct possible_intervals *m, struct ns_interval *out)
{
	const struct vthread *th = m->th;
	bool window = m->window < th->windows, unknown = m->unknown < th->unknowns;
	if (!window && !unknown)
		return false;
	if (window && (!unknown || th->window[m->window].from <= th->unknown[m->unknown].from))
		*out = th->window[m->window++];
	else
		*out = th->unknown[m->unknown++];
	return true;
}

static struct possible_intervals possible_from(const struct vthread *th, int64_t t)
{
	return (struct possible_intervals){ th, interval_find(th->window, th->windows, t),
		interval_find(th->unknown, th->unknowns, t) };
}

/* Counts a violation for each bin, starting at shift `first`, for which the event is certainly outside guest mode. */
static void exclude_by_event(struct elimination *e, const struct sampled_event *ev, int64_t first)
{
	const struct host_timeline *host = e->evidence->host;
	int64_t from = ev->at + first - ev->tolerance, to = ev->at + first + BINS * e->bins.width + ev->tolerance;
	const struct vthread *th = vm_thread_at(host, e->evidence->vm, ev->cpu, from + (to - from) / 2);
	if (from < host->begin)
		from = host->begin;
	if (to > host->end)
		to = host->end;
	if (!th || from > to)
		return;
	struct possible_intervals m = possible_from(th, from);
	struct ns_interval s;
	for (int64_t out = from; out <= to; out = s.to >= out ? s.to + 1 : out) {
		bool more = next_possible(&m, &s);
		int64_t end = more && s.from <= to ? s.from - 1 : to;
		if (end >= out)
			offset_bins_exclude(&e->bins, out + ev->tolerance - ev->at - first, end - ev->tolerance - ev->at - first);
		if (!more || s.from > to)
			break;
	}
}

/* Returns the possible error, ns, of a clock with a shift in the range's middle. */
static int64_t alternative_tolerance(const struct clock_candidate *h, const struct activity *activity,
                                     struct ns_interval range)
{
	int64_t band = clock_map_error_width(&h->clock, activity->begin + (activity->end - activity->begin) / 2);
	return (range.to - range.from) / 2 + (band < 0 ? 0 : band) + 10000;
}

static void add_remaining(struct elimination *e, int64_t from, int64_t to)
{
	if (e->n_remaining > 0 && e->remaining[e->n_remaining - 1].to + e->bins.width >= from) {
		e->remaining[e->n_remaining - 1].to = to;
		return;
	}
	if (e->n_remaining == REMAINING_MAX) {
		e->overflow = true;
		return;
	}
	e->remaining[e->n_remaining++] = (struct ns_interval){ from, to };
}

/* Returns true if containment at this shift could reach EVIDENCE_MIN_NATS with the events within the host's trace. Each
 * window with events counts -ln(the thread's duty cycle). */
static bool can_prove_clock(const struct elimination *e, int64_t shift)
{
	const struct host_timeline *host = e->evidence->host;
	const struct activity *activity = e->evidence->activity;
	int64_t begin = clock_map_at(&e->h->clock, activity->begin) + shift,
		end = clock_map_at(&e->h->clock, activity->end) + shift;
	double nats = 0;
	for (unsigned c = 0; c < activity->cpus; c++) {
		const struct activity_cpu *cpu = &activity->cpu[c];
		const struct vthread *th = vm_thread_at(host, e->evidence->vm, c, begin + (end - begin) / 2);
		if (!th)
			continue;
		double weight = -log(fmax(vthread_duty(host, th, begin, end), 1e-4));
		int64_t before = begin < host->begin ? host->begin - begin : 0, after = end > host->end ? end - host->end : 0;
		size_t hint = 0, last = SIZE_MAX;
		for (size_t i = activity_find(cpu, activity->begin + before); i < cpu->len && cpu->ts[i] <= activity->end - after;
		     i++) {
			(void)vthread_mode(th, clock_map_at(&e->h->clock, cpu->ts[i]) + shift, &hint);
			nats += hint != last ? weight : 0;
			last = hint;
			if (nats >= EVIDENCE_MIN_NATS)
				return true;
		}
	}
	return false;
}

/* Counts the sampled events for which the mode at this shift is known. */
static size_t count_informative(const struct elimination *e, int64_t shift)
{
	const struct host_timeline *host = e->evidence->host;
	size_t n = 0;
	for (size_t i = 0; i < e->events; i++) {
		int64_t at = e->event[i].at + shift;
		if (at < host->begin || at > host->end)
			continue;
		const struct vthread *th = vm_thread_at(host, e->evidence->vm, e->event[i].cpu, at);
		n += !th || !vthread_is_unknown(th, at, at);
	}
	return n;
}

/* Evaluates BINS shifts, starting at `first`, and adds those with few violations to the remaining ranges. */
static void eliminate_bins(struct elimination *e, int64_t first)
{
	const int64_t width = e->bins.width, middle = first + BINS / 2 * width;
	const int allowed = (int)e->more.allowed_violations;
	if (count_informative(e, middle) < e->informative / 4 + 1 || !can_prove_clock(e, middle))
		return;
	offset_bins_reset(&e->bins);
	for (size_t i = 0; i < e->events && work_spend(e->evidence->activity->budget, BINS / ROUND); i++) {
		exclude_by_event(e, &e->event[i], first);
		if ((i % ROUND == ROUND - 1 || i + 1 == e->events) && offset_bins_add_up(&e->bins, 0, BINS) > allowed)
			return;
	}
	for (int i = 0; i < BINS; i++)
		if (e->bins.violations[i] <= allowed)
			add_remaining(e, first + i * width, first + (i + 1) * width - 1);
}

/* Returns true if the event is certainly outside guest mode for each shift in the range. */
static bool is_outside_guest_mode(struct elimination *e, const struct sampled_event *ev, struct ns_interval range)
{
	const struct host_timeline *host = e->evidence->host;
	int64_t from = ev->at + range.from - ev->tolerance, to = ev->at + range.to + ev->tolerance;
	e->tests++;
	if (from < host->begin || to > host->end)
		return false;
	const struct vthread *th = vm_thread_at(host, e->evidence->vm, ev->cpu, from);
	struct ns_interval s;
	if (!th)
		return true;
	struct possible_intervals m = possible_from(th, from);
	while (next_possible(&m, &s) && s.from <= to)
		if (s.to >= from)
			return false;
	return true;
}

static struct sampled_event *sample_events(const struct elimination *e, const struct activity *activity)
{
	struct sampled_event *event = mem_new(activity->len, sizeof *event), *ev = event;
	for (unsigned c = 0; c < activity->cpus; c++) {
		for (size_t i = 0; i < activity->cpu[c].len; i++, ev++) {
			int64_t t = activity->cpu[c].ts[i], low, high;
			*ev = (struct sampled_event){ clock_map_at(&e->h->clock, t), 0, c };
			if (clock_map_bounds(&e->h->clock, t, &low, &high))
				ev->tolerance = (high - low) / 2 + 1;
		}
	}
	return event;
}

/* Counts the events that contradict the range; limit + 1: more than limit. Events that contradicted the
 * previous range are tried first. */
static uint64_t count_violations(struct elimination *e, struct ns_interval range, uint64_t limit)
{
	uint64_t missed = 0;
	for (size_t i = 0; i < e->recents; i++)
		missed += is_outside_guest_mode(e, &e->recent[i], range);
	if (missed > limit)
		return limit + 1;
	missed = 0;
	e->recents = 0;
	if (!e->all)
		e->all = sample_events(e, e->evidence->activity);
	const struct activity *activity = e->evidence->activity;
	for (size_t i = 0; i < activity->len && missed <= limit && work_spend(activity->budget, 0); i++) {
		if (!is_outside_guest_mode(e, &e->all[i], range))
			continue;
		missed++;
		if (e->recents < RECENT_MAX)
			e->recent[e->recents++] = e->all[i];
	}
	return missed;
}

/* Makes a subsample of about n events, and sets the number of violations that an alternative may have: VIOLATIONS_FACTOR
 * times the violations of the clock itself, and some. */
static void make_subsample(struct elimination *e, size_t n, struct subsample *out)
{
	const struct activity *activity = e->evidence->activity;
	const size_t stride = activity->len / n + 1;
	size_t skip = 0;
	struct clock_candidate own;
	out->activity = *activity;
	out->activity.len = 0;
	out->activity.cpu = mem_new(activity->cpus, sizeof *activity->cpu);
	for (unsigned c = 0; c < activity->cpus; c++) {
		struct activity_cpu *to = &out->activity.cpu[c];
		for (size_t i = 0; i < activity->cpu[c].len; i++)
			if (skip++ % stride == 0)
				*ARRAY_PUSH(to->ts, to->len, to->cap) = activity->cpu[c].ts[i];
		out->activity.len += to->len;
	}
	clock_candidate_copy(&own, e->h);
	clock_candidate_test(&own, &(struct evidence){ e->evidence->host, e->evidence->vm, &out->activity });
	out->allowed_violations = VIOLATIONS_FACTOR * own.outside + (stride > 1 ? 4 : VIOLATIONS_EXTRA);
	clock_candidate_release(&own);
}

static void subsample_release(struct subsample *s)
{
	for (unsigned c = 0; c < s->activity.cpus; c++)
		free(s->activity.cpu[c].ts);
	free(s->activity.cpu);
}

static void make_samples(struct elimination *e)
{
	make_subsample(e, SAMPLE / 4, &e->few);
	make_subsample(e, SAMPLE, &e->more);
	e->event = sample_events(e, &e->more.activity);
	e->events = e->more.activity.len;
	for (size_t i = 0; i + 1 < e->events; i++) {
		size_t k = i + (size_t)(hash_number(0, i + 1) >> 33) % (e->events - i);
		struct sampled_event swap = e->event[i];
		e->event[i] = e->event[k];
		e->event[k] = swap;
	}
}

/* Counts the events outside guest mode after the clock was refitted within the range. */
static uint64_t test_subsample(struct elimination *e, const struct subsample *s, struct ns_interval range)
{
	struct clock_candidate h;
	clock_candidate_init_around(&h, e->h, &s->activity, range.from + (range.to - range.from) / 2,
	                            alternative_tolerance(e->h, e->evidence->activity, range));
	clock_candidate_test(&h, &(struct evidence){ e->evidence->host, e->evidence->vm, &s->activity });
	clock_candidate_release(&h);
	e->tests += 12 * s->activity.len;
	return h.outside;
}

static bool is_better(const struct alternative *a, const struct alternative *b)
{
	return a->violations != b->violations ? a->violations < b->violations : a->informative > b->informative;
}

/* Tests a remaining range with all events, refits it on the subsamples and stores it if it is among the best
 * alternatives. Returns false if the search must stop. */
static bool try_range(struct elimination *e, struct ns_interval remaining, struct alternatives *out)
{
	struct alternative r = { .shift = remaining.from + (remaining.to - remaining.from) / 2 };
	bool full = out->n == ALTERNATIVES_MAX;
	const uint64_t allowed = clock_candidate_allowed_violations(e->h);
	if (remaining.from > remaining.to || count_violations(e, remaining, allowed) > allowed)
		return true;
	if (e->tests > TESTS_MAX || (full && out->alternative[ALTERNATIVES_MAX - 1].violations == 0)) {
		out->complete = false;
		return false;
	}
	if (test_subsample(e, &e->few, remaining) > e->few.allowed_violations)
		return true;
	r.violations = test_subsample(e, &e->more, remaining);
	r.informative = count_informative(e, r.shift);
	r.tolerance = alternative_tolerance(e->h, e->evidence->activity, remaining);
	if (r.violations > e->more.allowed_violations)
		return true;
	out->complete = out->complete && !full;
	size_t at = full ? ALTERNATIVES_MAX - 1 : out->n;
	if (full && !is_better(&r, &out->alternative[at]))
		return true;
	for (; at > 0 && is_better(&r, &out->alternative[at - 1]); at--)
		out->alternative[at] = out->alternative[at - 1];
	out->alternative[at] = r;
	out->n += !full;
	return true;
}

void alternatives_find(const struct evidence *evidence, const struct clock_candidate *h, struct alternatives *out)
{
	struct elimination e = { .evidence = evidence, .h = h };
	out->n = 0;
	make_samples(&e);
	e.informative = count_informative(&e, 0);
	int64_t from = evidence->host->begin - clock_map_at(&h->clock, evidence->activity->end);
	int64_t to = evidence->host->end - clock_map_at(&h->clock, evidence->activity->begin);
	const int64_t width = (to - from) / BINS_TOTAL_MAX > BIN_MIN_NS ? (to - from) / BINS_TOTAL_MAX : BIN_MIN_NS;
	offset_bins_init(&e.bins, BINS, width);
	e.remaining = mem_new(REMAINING_MAX, sizeof *e.remaining);
	for (int64_t first = from; first <= to && !e.overflow; first += BINS * width)
		eliminate_bins(&e, first);
	out->complete = !e.overflow;
	bool more = true;
	for (size_t i = 0; i < e.n_remaining && more; i++) {
		/* clock_candidate_check_ambiguity() covers shifts close to the clock itself */
		struct ns_interval remaining = e.remaining[i], below = remaining, above = remaining;
		if (below.to > -AMBIGUITY_NS)
			below.to = -AMBIGUITY_NS;
		if (above.from < AMBIGUITY_NS)
			above.from = AMBIGUITY_NS;
		more = try_range(&e, below, out) && try_range(&e, above, out);
	}
	offset_bins_release(&e.bins);
	free(e.remaining);
	free(e.event);
	free(e.all);
	subsample_release(&e.few);
	subsample_release(&e.more);
}
