#include "sync/contain.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The kinds that a traced CPU itself recorded. */
#define REAL_KINDS (ALL_KINDS & ~(1ULL << EV_LOST))

static int64_t distance(const struct vthread *th, int64_t t, size_t near)
{
	int64_t d = INT64_MAX;
	if (near > 0)
		d = t - th->window[near - 1].to;
	if (near < th->windows && th->window[near].from - t < d)
		d = th->window[near].from - t;
	return d;
}

int containment_measure(const struct host_view *host, const struct vm_view *vm, const struct trace *guest,
                        const struct clock_map *clock, struct containment *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	unsigned cpus = trace_info(guest)->cpus;
	size_t *near = mem_new(cpus, sizeof *near);
	const struct vthread **last = mem_new(cpus, sizeof(*last));
	struct trace_cursor *c = trace_cursor_open(guest, REAL_KINDS, -1, err);
	int status = c == NULL ? -1 : 0;
	struct event ev;
	while (c != NULL && (status = trace_cursor_next(c, &ev, err)) == 1) {
		int64_t t = clock_map_at(clock, ev.ts);
		if (t < host->begin || t > host->end || ev.cpu >= cpus)
			continue;
		const struct vthread *th = vm_thread_at(host, vm, ev.cpu, t);
		if (th == NULL) {
			out->outside++;  /* the VM has no such CPU */
			continue;
		}
		if (th != last[ev.cpu])
			near[ev.cpu] = 0;
		last[ev.cpu] = th;
		enum mode mode = vthread_mode(th, t, &near[ev.cpu]);
		out->inside += mode == MODE_IN;
		out->outside += mode == MODE_OUT;
		if (mode == MODE_OUT && distance(th, t, near[ev.cpu]) > out->worst)
			out->worst = distance(th, t, near[ev.cpu]);
	}
	trace_cursor_close(c);
	free(last);
	free(near);
	return status;
}

double containment_share(const struct containment *c)
{
	uint64_t all = c->inside + c->outside;
	return all == 0 ? -1 : (double)c->inside / (double)all;
}
