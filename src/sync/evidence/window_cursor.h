/* Cursor over the guest-mode windows of one guest CPU, for times in roughly ascending order (private to sync/).
 *
 * Several threads may run the CPU one after the other. A look-up is O(1) near the previous time, otherwise O(log n). */
#pragma once

#include "sync/evidence/vm_candidates.h"

struct window_cursor {
	const struct host_timeline *host;
	const struct vm_candidate *vm;
	unsigned cpu;              /* guest CPU */
	const struct vthread *th;  /* thread that runs the CPU at the time of the last seek; NULL: none */
	size_t started;            /* windows of th that start at or before the time of the last look-up */
};

/* Moves to host time t. Returns the thread that runs the CPU then; NULL: none. */
static inline const struct vthread *window_cursor_seek(struct window_cursor *c, int64_t t)
{
	const struct vthread *th = vm_thread_at(c->host, c->vm, c->cpu, t);
	if (th != c->th)
		c->started = 0;
	return c->th = th;
}

/* Returns the mode at t of the thread found by the last seek, which must not be NULL. */
static inline enum guest_mode window_cursor_mode(struct window_cursor *c, int64_t t)
{
	return vthread_mode(c->th, t, &c->started);
}

static inline size_t window_cursor_count(struct window_cursor *c, int64_t t)
{
	return c->started = vthread_count_windows(c->th, t, c->started);
}

/* Returns true if one thread alone runs the guest CPU. */
static inline bool window_cursor_is_constant(const struct window_cursor *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->vm->vcpus; i++)
		n += c->vm->vcpu[i].number == c->cpu;
	return n == 1;
}

/* Returns the guest time up to which a clock, or its bound, surely stays in the window: it is steady (see
 * clock_steady_distance()), and is `host` at `guest`, within the window of the thread found by the last seek. */
static inline int64_t window_cursor_inside_until(const struct window_cursor *c, const struct ns_interval *window,
                                                 int64_t guest, int64_t host)
{
	const int64_t known = vthread_known_until(c->th, host);
	const int64_t last = window->to < c->host->end ? window->to : c->host->end;
	return guest + clock_steady_distance((last < known ? last : known) - host);
}

/* Returns true if the thread found by the last seek is in guest mode at some time in [from, to]. Its mode must be known
 * there. */
static inline bool window_cursor_overlaps(struct window_cursor *c, int64_t from, int64_t to)
{
	const size_t n = window_cursor_count(c, to);
	return n > 0 && c->th->window[n - 1].to >= from;
}
