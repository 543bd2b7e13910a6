#include "sync/search/step_placement.h"

#include "base/base.h"
#include "sync/fit/piecewise_fit.h"

/* An event near a step. earlier: +1: only the earlier segment allows guest mode; -1: only the later one; 0: both or
 * neither. */
struct vote { int64_t t; int earlier; };

struct votes { struct vote *vote; size_t len, cap; };

ORDER_BY(by_time, struct vote, RISING(t))

/* Returns true if the event can be in guest mode for some clock within the segment's bounds, or if this is unknown. */
static bool may_be_in_guest_mode(const struct clock_segment *segment, int64_t t, struct window_cursor *cursor)
{
	int64_t low, high;
	if (!clock_segment_bounds(segment, t, &low, &high))
		low = high = clock_line_at(&segment->line, t);
	if (low < cursor->host->begin || high > cursor->host->end)
		return true;
	const struct vthread *th = window_cursor_seek(cursor, low);
	if (!th || vthread_is_unknown(th, low, high))
		return th != NULL;
	return window_cursor_overlaps(cursor, low, high);
}

static void collect_votes(const struct evidence *evidence, const struct clock_segment *segment, int64_t from, int64_t to,
                          struct votes *out)
{
	for (unsigned c = 0; c < evidence->activity->cpus; c++) {
		const struct activity_cpu *cpu = &evidence->activity->cpu[c];
		const struct window_cursor start = { evidence->host, evidence->vm, c, NULL, 0 };
		struct window_cursor before = start, after = start;
		for (size_t i = activity_find(cpu, from); i < cpu->len && cpu->ts[i] <= to; i++) {
			int earlier = may_be_in_guest_mode(&segment[0], cpu->ts[i], &before);
			int later = may_be_in_guest_mode(&segment[1], cpu->ts[i], &after);
			*ARRAY_PUSH(out->vote, out->len, out->cap) = (struct vote){ cpu->ts[i], earlier - later };
		}
	}
	ARRAY_SORT(out->vote, out->len, by_time);
}

/* Returns how many of the first events must be attributed to the earlier segment so that most events are in guest mode. */
static size_t best_split(const struct votes *v)
{
	int64_t sum = 0, most = 0;
	size_t at = 0;
	for (size_t i = 0; i < v->len; i++) {
		sum += v->vote[i].earlier;
		if (sum > most) {
			most = sum;
			at = i + 1;
		}
	}
	return at;
}

/* Limits the ambiguous interval to the nearest events that require the step to be after or before them; without such
 * events the limits set by the pairs stay. */
static void limit_by_events(const struct votes *v, struct clock_segment *segment)
{
	size_t before = best_split(v), after = before;
	while (before > 0 && v->vote[before - 1].earlier <= 0)
		before--;
	while (after < v->len && v->vote[after].earlier >= 0)
		after++;
	if (before > 0)
		segment->ambiguous_from = v->vote[before - 1].t + 1;
	if (after < v->len)
		segment->ambiguous_to = v->vote[after].t;
}

/* Handles a clock that is set forward by `skips` ns: it skips as much guest time, so the step is in a gap between events
 * of at least that length. Sets the ambiguous interval from the first such gap to the last. */
static void place_forward_step(const struct votes *v, int64_t skips, struct clock_segment *segment)
{
	int64_t last = segment->ambiguous_from - 1, from = segment->ambiguous_to, to = last, longest = 0;
	for (size_t i = 0; last < segment->ambiguous_to; i++) {
		const int64_t t = i < v->len && v->vote[i].t < segment->ambiguous_to ? v->vote[i].t : segment->ambiguous_to;
		if (t < segment->ambiguous_from)
			continue;
		if (t - last >= skips) {
			from = from < last + 1 ? from : last + 1;
			to = t;
			segment->from = t - last > longest ? t : segment->from;
			longest = t - last > longest ? t - last : longest;
		}
		last = t;
	}
	if (longest > 0) {
		segment->ambiguous_from = from;
		segment->ambiguous_to = to;
	}
}

/* Returns true if a vCPU was in guest mode at some time in [from, to], host ns. */
static bool ran_between(const struct evidence *evidence, int64_t from, int64_t to)
{
	for (size_t i = 0; i < evidence->vm->vcpus; i++) {
		const struct vthread *th = &evidence->host->thread[evidence->vm->vcpu[i].thread];
		const size_t k = interval_find(th->window, th->windows, from);
		if (k < th->windows && th->window[k].from <= to)
			return true;
	}
	return false;
}

/* Returns true if events of several CPUs exist: a single CPU's events are in order even if the clock was set back. */
static bool has_several_cpus(const struct activity *activity)
{
	unsigned n = 0;
	for (unsigned c = 0; c < activity->cpus; c++)
		n += activity->cpu[c].len > 0;
	return n > 1;
}

/* Handles a clock that was set back by up to `by` ns: that much guest time occurs twice, and events of one CPU after the
 * step may have times before those of another CPU before the step. (If the guest had not run, its clock would just have
 * been stopped.) Where a trace buffer proves that times occur twice, the reader dropped these events (trace_info.twice). */
static void place_setback(const struct evidence *evidence, const struct votes *v, int64_t by, struct clock_segment *segment)
{
	const struct trace_info *info = evidence->activity->info;
	int64_t from = segment->ambiguous_from, to = segment->ambiguous_to;
	for (size_t i = 0; i < v->len; i++) {
		const int64_t t = v->vote[i].t;
		from = v->vote[i].earlier > 0 && t > from ? t : from;
		to = v->vote[i].earlier < 0 && t < to ? t : to;
	}
	for (size_t i = 0; info && i < info->twices; i++) {
		if (info->twice[i].end < segment->ambiguous_from - by || info->twice[i].begin > segment->ambiguous_to + by)
			continue;
		if (info->twice[i].end >= segment->ambiguous_from && info->twice[i].end <= segment->ambiguous_to)
			segment->from = info->twice[i].end;  /* the dropped events begin in the earlier segment */
		from = info->twice[i].end > from ? info->twice[i].end : from;
		to = info->twice[i].begin < to ? info->twice[i].begin : to;
	}
	if (!has_several_cpus(evidence->activity))
		return;
	segment->repeats = true;
	segment->ambiguous_from = from - by < segment->ambiguous_from ? from - by : segment->ambiguous_from;
	segment->ambiguous_to = to + by > segment->ambiguous_to ? to + by : segment->ambiguous_to;
}

/* Returns true if no event is in the ambiguous interval of the step. */
static bool has_no_event(const struct votes *v, const struct clock_segment *segment)
{
	for (size_t i = 0; i < v->len; i++)
		if (v->vote[i].t >= segment->ambiguous_from && v->vote[i].t < segment->ambiguous_to)
			return false;
	return true;
}

/* Returns by how much the clock is set forward (> 0) or back (< 0) at the segment's start, ns, at least; 0: less
 * than the error bounds. *most: greatest possible step, ns. */
static int64_t step_size(const struct clock_segment *segment, int64_t *most)
{
	int64_t low[2], high[2];
	*most = 0;
	if (!clock_segment_bounds(segment - 1, segment->from, &low[0], &high[0]) ||
	    !clock_segment_bounds(segment, segment->from, &low[1], &high[1]))
		return 0;
	*most = high[1] - low[0];
	return low[0] > high[1] ? low[0] - high[1] : high[0] < low[1] ? high[0] - low[1] : 0;
}

/* Returns true if it is impossible that the clock just stopped: a trace buffer shows that times occurred twice, or the
 * guest ran during the host time that would have passed while its clock stopped. */
static bool excludes_standstill(const struct evidence *evidence, const struct clock_segment *segment, int64_t most)
{
	const struct trace_info *info = evidence->activity->info;
	int64_t low, high, unused;
	for (size_t i = 0; info && i < info->twices; i++)
		if (info->twice[i].end >= segment->ambiguous_from - most && info->twice[i].begin <= segment->ambiguous_to + most)
			return true;
	return clock_segment_bounds(segment - 1, segment->ambiguous_to, &unused, &low) &&
	       clock_segment_bounds(segment, segment->ambiguous_from, &high, &unused) &&
	       (low >= high || ran_between(evidence, low + 1, high - 1));
}

/* Returns true if an event that requires the later segment has an earlier time than an event that requires the earlier
 * segment. */
static bool is_mixed(const struct votes *v)
{
	bool later = false;
	for (size_t i = 0; i < v->len; i++) {
		if (later && v->vote[i].earlier > 0)
			return true;
		later = later || v->vote[i].earlier < 0;
	}
	return false;
}

/* Handles a backward step of the clock by up to `most` ns, unless the clock may just have stopped. */
static void check_setback(const struct evidence *evidence, int64_t most, struct votes *votes, struct clock_segment *segment)
{
	struct votes wide = { NULL, 0, 0 };
	collect_votes(evidence, segment - 1, segment->ambiguous_from - most, segment->ambiguous_to + most, &wide);
	if (is_mixed(&wide) || excludes_standstill(evidence, segment, most)) {
		place_setback(evidence, &wide, most, segment);
		free(votes->vote);
		*votes = wide;
	} else {
		free(wide.vote);
	}
}

/* Returns true if rate and time of the segment are so uncertain that a step may look like a change of the rate. */
static bool may_hide_step(const struct clock_segment *p, int64_t t)
{
	int64_t low, high;
	return clock_line_ppm(&p->highest) - clock_line_ppm(&p->lowest) > DRIFT_CHANGE_MIN_PPM &&
	       clock_segment_bounds(p, t, &low, &high)
	       && high - low > STEP_MIN_NS;
}

/* Returns true if segment i may begin with a step. Bounds that overlap at the boundary indicate a mere change of the
 * rate, unless one of the segments is ambiguous. */
static bool may_be_step(const struct clock_map *clock, size_t i)
{
	return clock->segment[i - 1].quality != SYNC_ACCURATE || clock->segment[i].quality != SYNC_ACCURATE ||
		fit_is_step(clock, i);
}

bool steps_place(const struct evidence *evidence, const struct pair_list *pairs, struct clock_map *clock)
{
	bool any = false;
	for (size_t i = 1; i < clock->segments; i++) {
		struct clock_segment *segment = &clock->segment[i];
		struct votes votes = { NULL, 0, 0 };
		int64_t most;
		const bool is_step = may_be_step(clock, i);
		if (!is_step && !may_hide_step(segment - 1, segment->from - 1) && !may_hide_step(segment, segment->from))
			continue;
		any = any || is_step;
		fit_limit_step(pairs, clock, i, evidence->activity->begin, evidence->activity->end);
		collect_votes(evidence, segment - 1, segment->ambiguous_from - 1, segment->ambiguous_to, &votes);
		limit_by_events(&votes, segment);
		if (is_step || segment->from < segment->ambiguous_from || segment->from > segment->ambiguous_to)
			segment->from = segment->ambiguous_from;
		const int64_t step = step_size(segment, &most);
		if (step > 0)
			place_forward_step(&votes, step, segment);
		else if (step < 0)
			check_setback(evidence, most, &votes, segment);
		segment->placed = evidence->activity->slice_bits == 0 && has_no_event(&votes, segment);
		segment->repeats = segment->repeats && !segment->placed;
		free(votes.vote);
	}
	return any;
}
