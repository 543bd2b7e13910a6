#include "sync/evidence/activity.h"

#include "base/base.h"
#include "base/bisect.h"
#include "sync/evidence/host_timeline.h"
#include "sync/evidence/time_sampling.h"

#ifndef ACTIVITY_MAX
#define ACTIVITY_MAX (3u << 20)
#endif

struct pending { int64_t before, ts; };  /* times of the last two events of a CPU, ns; INT64_MIN: none */

static void halve_slices(struct activity *a)
{
	a->slice_bits++;
	a->len = 0;
	for (unsigned c = 0; c < a->cpus; c++) {
		struct activity_cpu *cpu = &a->cpu[c];
		size_t n = 0;
		for (size_t i = 0; i < cpu->len; i++)
			if (is_slice_kept(a->slice_bits, a->begin, a->end, cpu->ts[i]))
				cpu->ts[n++] = cpu->ts[i];
		cpu->len = cpu->cap = n;
		cpu->ts = mem_resize(cpu->ts, n, sizeof *cpu->ts);
		a->len += n;
	}
}

static void add_time(struct activity *a, unsigned cpu, int64_t ts)
{
	if (!is_slice_kept(a->slice_bits, a->begin, a->end, ts))
		return;
	*ARRAY_PUSH(a->cpu[cpu].ts, a->cpu[cpu].len, a->cpu[cpu].cap) = ts;
	a->len++;
	while (a->len > ACTIVITY_MAX && a->slice_bits < SLICE_BITS_MAX)
		halve_slices(a);
}

static bool is_far_apart(int64_t a, int64_t b, int64_t min_gap_ns)
{
	return a == INT64_MIN || b - a >= min_gap_ns;
}

int activity_load(struct activity *a, const struct trace *guest, int64_t min_gap_ns, const atomic_bool *stop,
                  struct error *err)
{
	memset(a, 0, sizeof *a);
	const struct trace_info *info = trace_info(guest);
	a->info = info;
	a->begin = info->begin;
	a->end = info->end;
	a->cpus = info->cpus;
	a->cpu = mem_new(a->cpus, sizeof *a->cpu);
	struct pending *pending = mem_new(a->cpus, sizeof *pending);
	for (unsigned i = 0; i < a->cpus; i++)
		pending[i].before = pending[i].ts = INT64_MIN;
	struct trace_cursor *c = trace_cursor_open_times(guest, ALL_KINDS, -1, 0, 1, err);
	int status = c ? 0 : -1;
	uint64_t n_events = 0;
	const struct event *ev;
	while (c && (status = trace_cursor_borrow(c, &ev, err)) == 1) {
		if ((status = check_cancelled(stop, ++n_events, err)) != 0)
			break;
		a->has_loss = a->has_loss || ev->kind == EV_LOST;
		if (ev->cpu >= a->cpus || ev->kind == EV_LOST)
			continue;
		struct pending *p = &pending[ev->cpu];
		if (p->ts != INT64_MIN && (is_far_apart(p->before, p->ts, min_gap_ns) || is_far_apart(p->ts, ev->ts, min_gap_ns)))
			add_time(a, ev->cpu, p->ts);
		*p = (struct pending){ p->ts, ev->ts };
	}
	for (unsigned i = 0; i < a->cpus; i++)
		if (pending[i].ts != INT64_MIN)
			add_time(a, i, pending[i].ts);
	trace_cursor_close(c);
	free(pending);
	if (status < 0)
		activity_release(a);
	return status;
}

void activity_release(struct activity *a)
{
	for (unsigned i = 0; i < a->cpus; i++)
		free(a->cpu[i].ts);
	free(a->cpu);
	memset(a, 0, sizeof *a);
}

size_t activity_find(const struct activity_cpu *c, int64_t t)
{
	size_t at;
	BISECT(at, c->len, c->ts[at] < t);
	return at;
}

struct activity activity_view(const struct activity *a, struct ns_interval seg)
{
	struct activity v = *a;
	v.cpu = mem_new(a->cpus, sizeof *v.cpu);
	v.len = 0;
	v.begin = seg.from;
	v.end = seg.to;
	for (unsigned c = 0; c < a->cpus; c++) {
		size_t first = activity_find(&a->cpu[c], seg.from);
		v.cpu[c].ts = a->cpu[c].ts + first;
		v.cpu[c].len = activity_find(&a->cpu[c], seg.to + 1) - first;
		v.len += v.cpu[c].len;
	}
	return v;
}

void activity_view_end(struct activity *view)
{
	free(view->cpu);
}

size_t activity_count(const struct activity *a, struct ns_interval seg)
{
	size_t n = 0;
	for (unsigned c = 0; c < a->cpus; c++)
		n += activity_find(&a->cpu[c], seg.to + 1) - activity_find(&a->cpu[c], seg.from);
	return n;
}
