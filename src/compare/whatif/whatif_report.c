/* Intervals of the what-if results. An interval covers: tasks that waited start their next work earlier (closed loop) or
 * at its recorded time (open loop); timers and handlers during a request depend on work or on time; the
 * replay's error without changes; and another recording's sampling error. */
#include "compare/whatif/whatif_report.h"

#include <math.h>

#include "base/base.h"
#include "compare/whatif/apply_changes.h"
#include "compare/diff/bootstrap.h"

#define THREAD_WAIT_MIN 0.01    /* minimum share in the window: shorter waits of host threads are not reported */
#define RUN_VARIATION 0.001     /* CPU share by which two runs on one system may differ */
#define PINNING_EFFECT_MIN 0.1
#define TESTED_WAIT_MIN 0.01           /* minimum window share: shorter waits do not test relative weights */
#define UNTESTED_WAIT_MIN 0.05
#define PAIRS_REPORTED 3
#define MISMATCH_WAIT_MIN 0.05     /* CPU share: smaller waits are not checked */
#define LENGTH_MISMATCH_MAX 1.3      /* half octaves; wrong weights (factor 2) have about 1.6, correct ones 0.4 */
#define LENGTH_MISMATCH_WAIT_MIN 0.02     /* CPU share */
#define SKEW_MAX 0.3
#define LATE_MAX 0.1        /* request share */
#define VAGUE_RATIO 4              /* high / low: a wider interval with the recorded value is no answer */
#define VAGUE_WIDTH_MIN 0.05      /* CPU share: narrower intervals are always an answer */

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define OUTSIDE_PROBABILITY 0.05          /* probability that another run lies outside the interval */

/* Factor on the standard error that covers another run, which is a sample itself. The error may come from the longest
 * blocks, so their degrees of freedom apply. */
static double rerun_factor(double variation)
{
	return student_quantile(variation, BLOCKS_MIN - 1) * sqrt(2);
}

/* Appends a row; its interval is [low, high], widened by two errors:
 * - Systematic error (bias): the best models' error, of both kinds, for this value, scaled to the changed value;
 *   plus, of the changes' effect, the fraction that the replay misses of all waits and throttled time. Its sign
 *   repeats, so if it outweighs chance, the truth lies outside on one side only, which gets the whole probability.
 * - Sampling error: without a bias each side gets half the probability. */
static struct whatif_row *add_row(struct whatif *out, unsigned kind, const char *target, unsigned quantity,
                                  double recorded, const double reproduced[2], double low, double high, double value,
                                  double min, double sample)
{
	const double model_error = fmax(fabs(reproduced[0] - recorded), fabs(reproduced[1] - recorded));
	const double off = recorded > 0 ? model_error / recorded * value : 0;
	const double bias = hypot(off, out->quota_error * (value - recorded));
	const double half_width = min + fmax(rerun_factor(OUTSIDE_PROBABILITY / 2) * sample,
	                                     bias + rerun_factor(OUTSIDE_PROBABILITY) * sample);
	struct whatif_row *row = ARRAY_PUSH(out->row, out->rows, out->cap);
	*row = (struct whatif_row){ .target = mem_dup(target), .kind = (uint8_t)kind,
		.quantity = (uint8_t)quantity, .recorded = recorded, .reproduced = reproduced[0], .value = value,
		.low = fmax(0, low - half_width), .high = high + half_width };
	return row;
}

/* Shifts the widened part of an interval upwards. A tail's error is proportional to its length, and estimates from
 * short samples are too small: the truth may be further above the observed value than below. */
static void widen_row(struct whatif_row *row, double low, double high, double tail)
{
	const double half_width = row->high - high, part = tail > 0 ? fmin(SKEW_MAX, half_width / (2 * tail)) : 0;
	row->low = fmax(0, low - (1 - part) * half_width);
	row->high = high + (1 + part) * half_width;
}

static void list_add(char **list, const char *name)
{
	char *more = mem_printf("%s%s%s", *list, **list ? ", " : "", name);
	free(*list);
	*list = more;
}

/* Flags the row if its interval contains the recorded value, and values several times larger or smaller. */
static void flag_vague(struct replays *r, struct whatif_row *row)
{
	const bool waited = row->quantity == DIFF_LOST;
	if (row->low > row->recorded || row->high < row->recorded || row->high <= VAGUE_RATIO * row->low ||
	    (waited && row->high - row->low <= VAGUE_WIDTH_MIN))
		return;
	char low[40], high[40];
	diff_value_text(low, sizeof low, row->quantity, row->low, false);
	diff_value_text(high, sizeof high, row->quantity, row->high, false);
	const char *label = waited ? "waited" : diff_quantity_name[row->quantity];
	char *name = mem_printf("%s %s (%s to %s)", row->target, label, low, high);
	r->vague = r->vague ? r->vague : mem_dup("");
	list_add(&r->vague, name);
	free(name);
	row->vague = true;
}

ORDER_BY(compare_waiting, struct waiting, RISING(kind) RISING_TEXT(target))

/* Returns true if the results with pinned and with movable tasks differ too much to report one interval. */
static bool depends_on_pinning(const double low[2], const double high[2], double min)
{
	const double distance = fmax(low[0], low[1]) - fmin(high[0], high[1]);
	return distance > fmax(min, PINNING_EFFECT_MIN * fmin(high[0], high[1]));
}

static double sample_error(const struct replays *r, const struct waiting *x)
{
	double den[DIFF_SLICES];
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		den[i] = ((double)(r->w->to - r->w->from) + 1) / DIFF_SLICES;
	return fmax(estimate_ratio(x->slice_waits[0], den).error, estimate_ratio(x->slice_waits[1], den).error);
}

/* Returns true if the replay without changes waits for a very different time. */
static bool waits_differ(const struct waiting *x)
{
	const double replayed = x->replayed.value[UNCHANGED][0], max = fmax(x->recorded, replayed);
	return !x->removed && max > MISMATCH_WAIT_MIN && fabs(replayed - x->recorded) > WHATIF_ERROR_MAX * max;
}

static void note_mismatch(const char *names, struct whatif *out, struct notes *notes)
{
	if (!*names)
		return;
	out->weights_uncertain = true;
	note_add(notes, REPLAY_WAIT_DIFFERS, NULL, names);
}

void whatif_report_waits(struct replays *r, struct whatif *out, struct notes *notes)
{
	char *mismatched = mem_dup("");
	size_t n = 0;
	struct waiting *a = r->waiting;
	ARRAY_SORT(a, r->w->tasks, compare_waiting);
	for (size_t i = 0; i < r->w->tasks; i++) {
		if (n == 0 || compare_waiting(&a[n - 1], &a[i])) {
			a[n++] = a[i];
			a[n - 1].threads = 1;
			continue;
		}
		a[n - 1].threads++;
		a[n - 1].recorded += a[i].recorded;
		a[n - 1].throttled += a[i].throttled;
		a[n - 1].throttled_changed += a[i].throttled_changed;
		a[n - 1].removed &= a[i].removed;
		for (unsigned k = 0; k < RUNS * VARIANTS; k++)
			a[n - 1].replayed.value[k / RUNS][k % RUNS] += a[i].replayed.value[k / RUNS][k % RUNS];
		for (int k = 0; k < 2 * DIFF_SLICES; k++)
			a[n - 1].slice_waits[k / DIFF_SLICES][k % DIFF_SLICES] += a[i].slice_waits[k / DIFF_SLICES][k % DIFF_SLICES];
	}
	for (size_t i = 0; i < n; i++) {
		double low[2] = { INFINITY, INFINITY }, high[2] = { 0 };
		for (unsigned k = 0; k < 2 * r->runs; k++) {
			const double x = a[i].replayed.value[CHANGED + k % 2][k / 2];
			low[k % 2] = fmin(low[k % 2], x);
			high[k % 2] = fmax(high[k % 2], x);
		}
		if (waits_differ(&a[i]))
			list_add(&mismatched, a[i].target);
		if (a[i].removed)
			continue;
		const double x[2] = { fmin(low[0], low[1]), fmax(high[0], high[1]) };
		if (a[i].kind != DIFF_OF_MACHINE && fmax(a[i].recorded, x[1]) < THREAD_WAIT_MIN)
			continue;
		if (depends_on_pinning(low, high, RUN_VARIATION)) {
			r->omitted++;
			continue;
		}
		struct whatif_row *row = add_row(out, a[i].kind, a[i].target, DIFF_LOST, a[i].recorded,
		                                 a[i].replayed.value[UNCHANGED], x[0], x[1], (x[0] + x[1]) / 2, RUN_VARIATION,
		                                 sample_error(r, &a[i]));
		row->throttled = a[i].throttled;
		row->throttled_changed = a[i].throttled_changed;
		row->high = fmin(row->high, a[i].threads);
		flag_vague(r, row);
	}
	note_mismatch(mismatched, out, notes);
	free(mismatched);
}

ORDER_BY(compare_latencies, struct latency, RISING(ns))

/* Collects one request kind's latencies, sorted. replayed: latencies by request, NULL: the recorded ones.
 * in_time: interruptions are proportional to time instead of work. Returns their number. */
static size_t collect_latencies(const struct replays *r, const char *kind, const double *replayed, bool in_time,
                           struct latency *out)
{
	size_t n = 0;
	const double width = ((double)(r->w->to - r->w->from) + 1) / DIFF_SLICES;
	for (size_t i = 0; i < r->requests->len; i++) {
		const struct replayed_request *s = &r->requests->item[i];
		double ns = replayed ? replayed[i] : (double)s->latency;
		if (strcmp(s->kind, kind) || isnan(ns))
			continue;
		const double between = (double)s->background;
		if (in_time && 2 * between < (double)s->latency)
			ns = fmax(0, ns - between) / (1 - between / (double)s->latency);
		const unsigned slice = (unsigned)((double)(s->start - r->w->from) / width);
		out[n++] = (struct latency){ ns, slice < DIFF_SLICES ? slice : DIFF_SLICES - 1 };
	}
	ARRAY_SORT(out, n, compare_latencies);
	return n;
}

/* requests: minimum number. more, fewer: maximum changes in the overlapping requests' share; beyond them the quantile
 * is omitted. */
static const struct { uint8_t quantity; double p; size_t requests; double more, fewer; } quantile[] = {
	{ DIFF_P50, 0.5, 20, 0.2, 0.5 }, { DIFF_P90, 0.9, 50, 0.05, 0.2 }, { DIFF_P99, 0.99, 100, 0.015, 0.02 },
};

/* Returns true if the guest gets less CPU time than it needs: it falls behind without limit, and its latency depends on
 * the observation's length. */
static bool is_overloaded(const struct replays *r, const char *kind, struct notes *notes)
{
	size_t all = 0, late = 0;
	for (size_t i = 0; i < r->requests->len; i++) {
		const bool same_kind = strcmp(r->requests->item[i].kind, kind) == 0 && !r->requests->item[i].start_task->removed;
		all += same_kind;
		late += same_kind && (r->ends[i] == INT64_MIN || r->ends[i] > r->w->to);
	}
	if ((double)late <= LATE_MAX * (double)all)
		return false;
	note_add(notes, REQUESTS_OVERLOADED, NULL, kind, late, all);
	return true;
}

struct answered { int64_t start, end, changed; };

ORDER_BY(by_start, struct answered, RISING(start) RISING(end))

/* Change in the share of requests that arrive while an earlier one is unanswered, if all requests arrive at their
 * recorded times. Random overlaps occur both ways and cancel out. */
static double contention_change(const struct replays *r, const char *kind)
{
	struct answered *f = mem_new(r->requests->len, sizeof *f), last = { .end = INT64_MIN, .changed = INT64_MIN };
	size_t n = 0;
	double more = 0;
	for (size_t i = 0; i < r->requests->len; i++) {
		const struct replayed_request *s = &r->requests->item[i];
		if (strcmp(s->kind, kind) == 0)
			f[n++] = (struct answered){ s->start, s->start + s->latency, r->ends[i] == INT64_MIN ? INT64_MAX : r->ends[i] };
	}
	ARRAY_SORT(f, n, by_start);
	for (size_t i = 0; i < n; i++) {
		more += (last.changed > f[i].start) - (last.end > f[i].start);
		last.end = f[i].end > last.end ? f[i].end : last.end;
		last.changed = f[i].changed > last.changed ? f[i].changed : last.changed;
	}
	free(f);
	return n ? more / (double)n : 0;
}

/* Returns true if overlaps changed too much for this quantile. Guests keep their work's order: requests that newly
 * overlap would share their vCPU and delay the earlier ones; requests that overlapped only because of a quota would be
 * answered sooner. */
static bool is_regrouped(const struct replays *r, double more, size_t q)
{
	return more > quantile[q].more || (r->lifts_quota && -more > quantile[q].fewer);
}

static void note_regrouped(double more, const char *kind, const char *which, struct notes *notes)
{
	if (*which)
		note_add(notes, REQUESTS_REORDERED, NULL, kind, which, 100 * fabs(more), more > 0 ? "more" : "fewer");
}

static void report_kind(struct replays *r, const char *kind, struct whatif *out, struct notes *notes)
{
	struct latency *l = mem_new(r->requests->len, sizeof *l);
	const double more = contention_change(r, kind);
	char *regrouped = mem_dup("");
	for (size_t q = 0; q < COUNT(quantile); q++) {
		const double p = quantile[q].p;
		double low[2] = { INFINITY, INFINITY }, high[2] = { 0 }, closed[2] = { INFINITY, 0 }, sample = 0, length = 0;
		size_t n = collect_latencies(r, kind, NULL, false, l);
		if (n < quantile[q].requests)
			continue;
		const double recorded = quantile_value(l, n, p);
		double reproduced[2];
		for (unsigned k = 0; k < 2; k++) {
			n = collect_latencies(r, kind, r->latency[UNCHANGED][k], false, l);
			reproduced[k] = n ? quantile_value(l, n, p) : 0;
		}
		for (unsigned k = 0; k < 4 * r->runs; k++) {
			n = collect_latencies(r, kind, r->latency[CHANGED + k / 2 % 2][k / 4], k % 2, l);
			if (n < quantile[q].requests)
				continue;
			const double value = quantile_value(l, n, p);
			low[k / 2 % 2] = fmin(low[k / 2 % 2], value);
			high[k / 2 % 2] = fmax(high[k / 2 % 2], value);
			if (k / 4 % 2 != OPEN) {
				closed[0] = fmin(closed[0], value);
				closed[1] = fmax(closed[1], value);
			}
			if (k / 2 == 0 || k / 2 == 2) {
				const struct tail tail = p < 0.9 ? (struct tail){ 0, 0 } : quantile_tail(l, n, p);
				sample = fmax(sample, fmax(estimate_quantile(l, n, p).error, tail.error));
				length = fmax(length, tail.length);
			}
		}
		const double min = fmin(low[0], low[1]), max = fmax(high[0], high[1]);
		if (isfinite(min) && is_regrouped(r, more, q))
			list_add(&regrouped, diff_quantity_name[quantile[q].quantity]);
		else if (isfinite(low[0]) && isfinite(low[1]) && depends_on_pinning(low, high, 0))
			r->omitted++;
		else if (isfinite(min)) {
			/* In an open loop a throttled interval within a request keeps its length: that is only a bound. */
			const double middle = r->lifts_quota && isfinite(closed[0]) ? (closed[0] + closed[1]) / 2 : (min + max) / 2;
			struct whatif_row *row = add_row(out, DIFF_OF_REQUESTS, kind, quantile[q].quantity, recorded, reproduced, min,
			                                 max, middle, 0, sample);
			widen_row(row, min, max, length);
			flag_vague(r, row);
		}
	}
	note_regrouped(more, kind, regrouped, notes);
	free(regrouped);
	free(l);
}

void whatif_report_requests(struct replays *r, struct whatif *out, struct notes *notes)
{
	for (size_t i = 0; i < r->requests->len; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(r->requests->item[k].kind, r->requests->item[i].kind) != 0;
		if (first && !is_overloaded(r, r->requests->item[i].kind, notes))
			report_kind(r, r->requests->item[i].kind, out, notes);
	}
}

/* ---- Notes about uncertain results */

/* Adds notes on omitted rows, and on threads of unknown pinning. */
void whatif_note_omitted(const struct replays *r, const struct whatif_change *change, size_t changes, struct notes *notes)
{
	char name[TARGET_TEXT], *names = mem_dup("");
	uint32_t last = UINT32_MAX;
	for (size_t i = 0; i < r->w->tasks && r->omitted; i++) {
		const struct replay_task *t = &r->w->task[i];
		if (!task_may_be_pinned(t) || apply_sets_cpus(t, change, changes) || t->name_group == last ||
		    (double)t->waited < THREAD_WAIT_MIN * (double)(r->w->to - r->w->from))
			continue;
		task_name(r->w, t, name);
		list_add(&names, name);
		last = t->name_group;
	}
	if (r->omitted)
		note_add(notes, REPLAY_PINNING_UNKNOWN, NULL, r->omitted, *names ? names : "some threads that rarely wait");
	free(names);
}

void whatif_note_vague(struct replays *r, struct notes *notes)
{
	if (r->vague)
		note_add(notes, REPLAY_TOO_UNCERTAIN, NULL, r->vague);
	free(r->vague);
	r->vague = NULL;
}

/* Notes that wait lengths differ from the recorded ones: the CPUs were shared by other rules or weights. */
void whatif_note_wait_lengths(const struct host_demand *d, double length_mismatch, struct whatif *out, struct notes *notes)
{
	double waited = 0;
	for (size_t i = 0; i < d->tasks; i++)
		waited += (double)d->task[i].waited;
	if (length_mismatch <= LENGTH_MISMATCH_MAX || out->error > WHATIF_ERROR_MAX ||
	    waited < LENGTH_MISMATCH_WAIT_MIN * (double)(d->to - d->from))
		return;
	out->weights_uncertain = true;
	note_add(notes, REPLAY_WEIGHTS_DIFFER, NULL);
}

/* Returns any task with that name number. */
static const struct replay_task *find_task(const struct host_demand *d, uint32_t name_group)
{
	size_t i = 0;
	while (d->task[i].name_group != name_group)
		i++;
	return &d->task[i];
}

/* Notes pairs of threads that compete only with the changes: their relative weights were not observed. No event shows
 * SCHED_IDLE, and few recordings contain group weights. */
void whatif_note_untested(const struct replays *r, struct whatif *out, struct notes *notes)
{
	const double window = (double)(r->w->to - r->w->from) + 1;
	struct wait_edge *c;
	char *names = mem_dup("");
	const size_t n = wait_graph_untested(&r->waits_for[0], &r->waits_for[1], (int64_t)(TESTED_WAIT_MIN * window),
	                                     (int64_t)(UNTESTED_WAIT_MIN * window), r->w->name_groups, &c);
	size_t untested = 0;
	for (size_t i = 0; i < n; i++) {
		const struct replay_task *a = find_task(r->w, c[i].a), *b = find_task(r->w, c[i].b);
		char pair_name[2][TARGET_TEXT];
		if (a->group >= 0 && b->group >= 0)
			continue;
		if (untested++ >= PAIRS_REPORTED)
			continue;
		task_name(r->w, a, pair_name[0]);
		task_name(r->w, b, pair_name[1]);
		char *pair = mem_printf("%s and %s", pair_name[0], pair_name[1]);
		list_add(&names, pair);
		free(pair);
	}
	out->weights_uncertain |= untested > 0;
	if (untested)
		note_add(notes, REPLAY_WEIGHTS_UNTESTED, NULL, names, untested > PAIRS_REPORTED ? " and others" : "");
	free(names);
	free(c);
}
