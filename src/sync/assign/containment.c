#include "sync/assign/containment.h"

#include "base/base.h"
#include "base/parallel.h"
#include "sync/evidence/window_cursor.h"

/* Events recorded by the traced CPU itself. */
#define REAL_KINDS (ALL_KINDS & ~(KIND(EV_LOST) | KIND(EV_COUNTERS)))  /* counters have the time of their sched_switch */

static int64_t distance_to_window(const struct vthread *th, int64_t t, size_t started)
{
	int64_t d = INT64_MAX;
	if (started > 0)
		d = t - th->window[started - 1].to;
	if (started < th->windows && th->window[started].from - t < d)
		d = th->window[started].from - t;
	return d;
}

struct measure {
	const struct host_timeline *host;
	const struct vm_candidate *vm;
	const struct trace *guest;
	const struct clock_map *clock;
	int64_t begin, slice;        /* guest ns: the trace's start, and a slice's length (sync_delay_slice_ns()) */
	const struct side_task *side_task;
	size_t parts;               /* time slices per CPU that are measured in parallel */
	struct part_measure {
		struct containment c;
		struct window_distances nearest;
		struct error *err;  /* malloc'ed; NULL: success */
	} *part;
};

static void containment_init(struct containment *c, struct window_distances *nearest)
{
	*c = (struct containment){ .nearest = nearest };
	memset(nearest, 0, sizeof *nearest);
	for (int side = 0; side < 2; side++)
		for (size_t slice = 0; slice < SYNC_DELAY_SLICES; slice++)
			nearest->ns[side][slice] = INT64_MAX;
}

static void update_nearest(struct containment *to, int64_t ns, int side, size_t slice)
{
	if (ns < to->nearest->ns[side][slice])
		to->nearest->ns[side][slice] = ns;
}

/* Times in a window after one that was measured, of the same slice: only the last one may be nearer to an edge. */
struct window_rest {
	bool possible;              /* the clock is steady, and one thread runs the CPU */
	int64_t until, last;        /* guest ns: end of those times; the last one, INT64_MIN: none */
	const struct ns_interval *window;
};

/* Returns the index of the slice of the guest's trace; SYNC_DELAY_SLICES: none. */
static size_t slice_of(const struct measure *m, int64_t guest)
{
	const int64_t slice = (guest - m->begin) / m->slice;
	return guest < m->begin || slice >= SYNC_DELAY_SLICES ? SYNC_DELAY_SLICES : (size_t)slice;
}

/* Records the distances from an event to its window's edges. A window cut off by an end of the host's trace has no
 * entry or exit there. */
static void measure_delays(const struct measure *m, const struct ns_interval *window, int64_t guest, int64_t host,
                           struct containment *out)
{
	const size_t slice = slice_of(m, guest);
	if (slice == SYNC_DELAY_SLICES)
		return;
	out->nearest->has_inside[slice] = true;
	if (window->to < m->host->end)
		update_nearest(out, window->to - host, SYNC_ABOVE, slice);
	if (window->from > m->host->begin)
		update_nearest(out, host - window->from, SYNC_BELOW, slice);
}

/* Returns true if the event is outside guest mode for every clock within the error bounds. */
static bool contradicts_clock(const struct measure *m, struct window_cursor cursor, int64_t guest, int64_t host)
{
	int64_t low, high;
	if (!clock_map_has_bounds(m->clock, guest))
		return false;
	if (!clock_map_bounds(m->clock, guest, &low, &high))
		low = high = host;
	return !vthread_is_unknown(cursor.th, low, high) && !window_cursor_overlaps(&cursor, low, high);
}

/* Measures the last time of those in a window, and begins with the ones after `guest` in the window of the cursor, if
 * any. */
static void measure_rest(const struct measure *m, struct window_rest *rest, struct containment *out)
{
	if (rest->last != INT64_MIN)
		measure_delays(m, rest->window, rest->last, clock_map_at(m->clock, rest->last), out);
	rest->until = rest->last = INT64_MIN;
}

static void measure_event(const struct measure *m, const struct event *ev, struct window_cursor *cursor,
                          struct window_rest *rest, struct containment *out)
{
	if (ev->ts <= rest->until) {
		out->inside++;
		rest->last = ev->ts;
		return;
	}
	measure_rest(m, rest, out);
	int64_t t = clock_map_at(m->clock, ev->ts);
	if (t < m->host->begin || t > m->host->end)
		return;
	const struct vthread *th = window_cursor_seek(cursor, t);
	if (!th) {
		out->outside++;  /* the VM has no such CPU */
		out->contradictions++;
		out->missing++;
		return;
	}
	enum guest_mode mode = window_cursor_mode(cursor, t);
	out->inside += mode == MODE_IN;
	out->outside += mode == MODE_OUT;
	if (mode == MODE_IN)
		measure_delays(m, rest->window = &th->window[cursor->started - 1], ev->ts, t, out);
	if (mode == MODE_IN && rest->possible) {
		const int64_t inside = window_cursor_inside_until(cursor, rest->window, ev->ts, t);
		const int64_t slice = m->begin + ((ev->ts - m->begin) / m->slice + 1) * m->slice - 1;
		rest->until = inside < slice ? inside : slice;
	}
	if (mode == MODE_OUT && contradicts_clock(m, *cursor, ev->ts, t)) {
		const size_t slice = slice_of(m, ev->ts);
		out->contradictions++;
		if (slice < SYNC_DELAY_SLICES)
			out->nearest->has_contradiction[slice] = true;
	}
	if (mode == MODE_OUT && distance_to_window(th, t, cursor->started) > out->worst)
		out->worst = distance_to_window(th, t, cursor->started);
}

static int measure_part(const struct measure *m, size_t i, struct containment *out, struct error *err)
{
	struct trace_cursor *c =
		trace_cursor_open_times(m->guest, REAL_KINDS, (int)(i / m->parts), i % m->parts, m->parts, err);
	struct window_cursor cursor = { m->host, m->vm, (unsigned)(i / m->parts), NULL, 0 };
	struct window_rest rest = { .possible = clock_map_is_steady(m->clock) && window_cursor_is_constant(&cursor),
		.until = INT64_MIN, .last = INT64_MIN };
	int status = c ? 0 : -1;
	uint64_t n_events = 0;
	const struct event *ev;
	while (c && (status = trace_cursor_borrow(c, &ev, err)) == 1) {
		measure_event(m, ev, &cursor, &rest, out);
		if ((status = check_cancelled(m->host->stop, ++n_events, err)) != 0)
			break;
	}
	measure_rest(m, &rest, out);
	trace_cursor_close(c);
	return status;
}

/* Runs part i - 1 of the measurement; task 0 is the side task, which cannot be divided. */
static int measure_task(void *arg, size_t i)
{
	const struct measure *m = arg;
	struct part_measure *part = &m->part[i];
	struct error err = ERROR_INIT;
	containment_init(&part->c, &part->nearest);
	int status = i > 0 ? measure_part(m, i - 1, &part->c, &err) :
		m->side_task ? m->side_task->run(m->side_task->arg, &err) : 0;
	if (status != 0) {
		part->err = mem_new(1, sizeof *part->err);
		*part->err = err;
	}
	return status;
}

int containment_measure(const struct host_timeline *host, const struct vm_candidate *vm, const struct trace *guest,
                        const struct clock_map *clock, unsigned workers, const struct side_task *side_task,
                        struct containment *out, struct error *err)
{
	const struct trace_info *info = trace_info(guest);
	const size_t wanted = workers > 1 && info->cpus ? 4 * (size_t)workers / info->cpus : 0;
	const size_t parts = wanted ? wanted : 1, tasks = 1 + parts * info->cpus;
	struct measure m = { host, vm, guest, clock, info->begin, sync_delay_slice_ns(info), side_task, parts,
		mem_new(tasks, sizeof *m.part) };
	int status = parallel_run(&(struct parallel){ .workers = workers, .task = measure_task, .arg = &m }, tasks);
	containment_init(out, mem_new(1, sizeof *out->nearest));
	for (size_t i = 0; i < tasks; i++) {
		const struct part_measure *part = &m.part[i];
		const struct window_distances *nearest = &part->nearest;
		out->inside += part->c.inside;
		out->outside += part->c.outside;
		out->contradictions += part->c.contradictions;
		out->missing += part->c.missing;
		out->worst = part->c.worst > out->worst ? part->c.worst : out->worst;
		for (size_t slice = 0; slice < SYNC_DELAY_SLICES; slice++) {
			out->nearest->has_inside[slice] |= nearest->has_inside[slice];
			out->nearest->has_contradiction[slice] |= nearest->has_contradiction[slice];
			for (int side = 0; side < 2 && nearest->has_inside[slice]; side++)
				update_nearest(out, nearest->ns[side][slice], side, slice);
		}
		if (part->err && err)
			*err = *part->err;
		free(part->err);
	}
	free(m.part);
	return status;
}

void containment_release(struct containment *c)
{
	free(c->nearest);
	*c = (struct containment){ 0 };
}

double containment_share(const struct containment *c)
{
	uint64_t all = c->inside + c->outside;
	return all == 0 ? -1 : (double)c->inside / (double)all;
}

double containment_possible_share(const struct containment *c)
{
	uint64_t all = c->inside + c->outside;
	return all == 0 ? -1 : (double)(all - c->contradictions) / (double)all;
}

bool containment_closer(const struct containment *a, const struct containment *b)
{
	unsigned nearer = 0, farther = 0;
	if (!a->nearest || !b->nearest)
		return false;
	for (int side = 0; side < 2; side++)
		for (size_t slice = 0; slice < SYNC_DELAY_SLICES; slice++) {
			const int64_t x = a->nearest->ns[side][slice], y = b->nearest->ns[side][slice];
			nearer += x < y && b->nearest->has_inside[slice];
			farther += y < x && a->nearest->has_inside[slice];
		}
	return nearer >= CLOSER_MIN && nearer >= CLOSER_TIMES * farther;
}
