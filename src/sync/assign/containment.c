#include "sync/assign/containment.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"

/* The kinds that a traced CPU itself recorded. */
#define REAL_KINDS (ALL_KINDS & ~KIND(EV_LOST))

/* So many spans in which the nearest edge is nearer, and so many times those in which it is farther, are no accident. */
#define CLOSER_MIN 8
#define CLOSER_TIMES 3

static int64_t distance(const struct vthread *th, int64_t t, size_t near)
{
	int64_t d = INT64_MAX;
	if (near > 0)
		d = t - th->window[near - 1].to;
	if (near < th->windows && th->window[near].from - t < d)
		d = th->window[near].from - t;
	return d;
}

struct measure {
	const struct host_view *host;
	const struct vm_view *vm;
	const struct trace *guest;
	const struct clock_map *clock;
	int64_t begin, span;        /* guest ns; see sync_span_ns() */
	const struct beside *beside;
	size_t parts;               /* of each CPU's events */
	struct part_measure {
		struct containment c;
		struct nearness nearest;
		struct error *err;  /* malloc'ed when it failed */
	} *part;
};

static void containment_init(struct containment *c, struct nearness *nearest)
{
	*c = (struct containment){ .nearest = nearest };
	memset(nearest, 0, sizeof *nearest);
	for (int side = 0; side < 2; side++)
		for (size_t span = 0; span < SYNC_SPANS; span++)
			nearest->ns[side][span] = INT64_MAX;
}

static void keep_nearest(struct containment *to, int64_t ns, int side, size_t span)
{
	if (ns < to->nearest->ns[side][span])
		to->nearest->ns[side][span] = ns;
}

/* Of the guest's trace; SYNC_SPANS: none. */
static size_t span_of(const struct measure *m, int64_t guest)
{
	const int64_t span = (guest - m->begin) / m->span;
	return guest < m->begin || span >= SYNC_SPANS ? SYNC_SPANS : (size_t)span;
}

/* The ends of the host's trace end windows that it did not see begin or end. */
static void measure_delays(const struct measure *m, const struct span *window, int64_t guest, int64_t host,
                           struct containment *out)
{
	const size_t span = span_of(m, guest);
	if (span == SYNC_SPANS)
		return;
	out->nearest->held[span] = true;
	if (window->to < m->host->end)
		keep_nearest(out, window->to - host, SYNC_ABOVE, span);
	if (window->from > m->host->begin)
		keep_nearest(out, host - window->from, SYNC_BELOW, span);
}

/* Is the event out of guest mode whichever clock of the corridor is the true one? */
static bool is_refuted(const struct measure *m, const struct vthread *th, int64_t guest, int64_t host, size_t near)
{
	int64_t low, high;
	if (!clock_map_knows(m->clock, guest))
		return false;
	if (!clock_map_bounds(m->clock, guest, &low, &high))
		low = high = host;
	(void)vthread_mode(th, high, &near);
	return !vthread_blind(th, low, high) && (near == 0 || th->window[near - 1].to < low);
}

static void measure_event(const struct measure *m, const struct event *ev, const struct vthread **last, size_t *near,
                          struct containment *out)
{
	int64_t t = clock_map_at(m->clock, ev->ts);
	if (t < m->host->begin || t > m->host->end)
		return;
	const struct vthread *th = vm_thread_at(m->host, m->vm, ev->cpu, t);
	if (!th) {
		out->outside++;  /* the VM has no such CPU */
		out->refuted++;
		out->missing++;
		return;
	}
	if (th != *last)
		*near = 0;
	*last = th;
	enum guest_mode mode = vthread_mode(th, t, near);
	out->inside += mode == MODE_IN;
	out->outside += mode == MODE_OUT;
	if (mode == MODE_IN)
		measure_delays(m, &th->window[*near - 1], ev->ts, t, out);
	if (mode == MODE_OUT && is_refuted(m, th, ev->ts, t, *near)) {
		const size_t span = span_of(m, ev->ts);
		out->refuted++;
		if (span < SYNC_SPANS)
			out->nearest->denied[span] = true;
	}
	if (mode == MODE_OUT && distance(th, t, *near) > out->worst)
		out->worst = distance(th, t, *near);
}

static int measure_part(const struct measure *m, size_t i, struct containment *out, struct error *err)
{
	struct trace_cursor *c =
		trace_cursor_open_times(m->guest, REAL_KINDS, (int)(i / m->parts), i % m->parts, m->parts, err);
	const struct vthread *last = NULL;
	size_t near = 0;
	int status = c ? 0 : -1;
	uint64_t seen = 0;
	const struct event *ev;
	while (c && (status = trace_cursor_borrow(c, &ev, err)) == 1) {
		measure_event(m, ev, &last, &near, out);
		if ((status = walk_stopped(m->host->stop, ++seen, err)) != 0)
			break;
	}
	trace_cursor_close(c);
	return status;
}

/* What is beside it comes first: it cannot be divided. */
static int measure_task(void *arg, size_t i)
{
	const struct measure *m = arg;
	struct part_measure *part = &m->part[i];
	struct error err = ERROR_INIT;
	containment_init(&part->c, &part->nearest);
	int status = i > 0 ? measure_part(m, i - 1, &part->c, &err) :
		m->beside ? m->beside->run(m->beside->arg, &err) : 0;
	if (status != 0) {
		part->err = mem_new(1, sizeof *part->err);
		*part->err = err;
	}
	return status;
}

int containment_measure(const struct host_view *host, const struct vm_view *vm, const struct trace *guest,
                        const struct clock_map *clock, unsigned workers, const struct beside *beside,
                        struct containment *out, struct error *err)
{
	const struct trace_info *info = trace_info(guest);
	const size_t wanted = workers > 1 && info->cpus ? 4 * (size_t)workers / info->cpus : 0;
	const size_t parts = wanted ? wanted : 1, tasks = 1 + parts * info->cpus;
	struct measure m = { host, vm, guest, clock, info->begin, sync_span_ns(info), beside, parts,
		mem_new(tasks, sizeof *m.part) };
	int status = parallel_run(&(struct parallel){ .workers = workers, .task = measure_task, .arg = &m }, tasks);
	containment_init(out, mem_new(1, sizeof *out->nearest));
	for (size_t i = 0; i < tasks; i++) {
		const struct part_measure *part = &m.part[i];
		const struct nearness *nearest = &part->nearest;
		out->inside += part->c.inside;
		out->outside += part->c.outside;
		out->refuted += part->c.refuted;
		out->missing += part->c.missing;
		out->worst = part->c.worst > out->worst ? part->c.worst : out->worst;
		for (size_t span = 0; span < SYNC_SPANS; span++) {
			out->nearest->held[span] |= nearest->held[span];
			out->nearest->denied[span] |= nearest->denied[span];
			for (int side = 0; side < 2 && nearest->held[span]; side++)
				keep_nearest(out, nearest->ns[side][span], side, span);
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

double containment_possible(const struct containment *c)
{
	uint64_t all = c->inside + c->outside;
	return all == 0 ? -1 : (double)(all - c->refuted) / (double)all;
}

bool containment_closer(const struct containment *a, const struct containment *b)
{
	unsigned nearer = 0, farther = 0;
	if (!a->nearest || !b->nearest)
		return false;
	for (int side = 0; side < 2; side++)
		for (size_t span = 0; span < SYNC_SPANS; span++) {
			const int64_t x = a->nearest->ns[side][span], y = b->nearest->ns[side][span];
			nearer += x < y && b->nearest->held[span];
			farther += y < x && a->nearest->held[span];
		}
	return nearer >= CLOSER_MIN && nearer >= CLOSER_TIMES * farther;
}
