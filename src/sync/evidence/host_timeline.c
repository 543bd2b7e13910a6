#include "sync/evidence/host_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/evidence/prefetch_cursor.h"
#include "sync/evidence/thread_lifetimes.h"
#include "sync/evidence/time_sampling.h"

#ifndef WINDOWS_MAX
#define WINDOWS_MAX (4u << 20)
#endif

#define QUIET_MAX 10000  /* ns */

#define HOST_KINDS (KIND(EV_KVM_ENTRY) | KIND(EV_KVM_EXIT) | KIND(EV_SWITCH) | KIND(EV_PROCESS) | KIND(EV_FORK) | \
	KIND(EV_RENAME) | KIND(EV_EXIT) | KIND(EV_SYNC) | KIND(EV_LOST))

/* State of the walk that is of no use after it. */
struct host_walk {
	struct host_view *v;
	int32_t *current;       /* by CPU: the thread on it, -1 = unknown */
	size_t cpus;
	struct span *loss;      /* when events of any CPU were lost, in order */
	size_t losses, loss_cap;
	unsigned workers;       /* to read with */
	int status;             /* -1: the ends of pairs cannot be kept, see *err */
	struct error *err;
	int64_t kvm_since;      /* first vm entry or exit of any thread: they are recorded from there on */
	bool explicit_c;        /* the trace has events for end c, entries need not stand in for them */
};

/* Too many windows: keeps half as many slices.  What goes becomes blind when the walk ends. */
static void thin_out(struct host_view *v)
{
	v->sliced++;
	v->windows = 0;
	for (size_t i = 0; i < v->threads; i++) {
		struct vthread *th = &v->thread[i];
		size_t n = 0;
		for (size_t k = 0; k < th->windows; k++)
			if (slice_kept(v->sliced, v->begin, v->end, th->window[k].from))
				th->window[n++] = th->window[k];
		th->windows = th->window_cap = n;
		th->window = mem_resize(th->window, n, sizeof *th->window);
		v->windows += n;
	}
}

static void close_window(struct host_view *v, struct vthread *th, int64_t to)
{
	if (v->sliced > 0 && !slice_kept(v->sliced, v->begin, v->end, th->entered))
		return;
	size_t before = th->windows;
	span_push(&th->window, &th->windows, &th->window_cap, th->entered, to);
	v->windows += th->windows - before;
	if (v->windows > WINDOWS_MAX && v->sliced < SLICED_MAX)
		thin_out(v);
}

/* The mode is known again at ts, because this thread has an event there. */
static void settle(struct vthread *th, int64_t ts, int64_t known_from)
{
	if (th->unsure == INT64_MIN)
		return;
	int64_t to = known_from < ts ? known_from : ts;
	vthread_hide(th, th->unsure, to);
	th->unsure = INT64_MIN;
}

/* End of the blindness that began before: the last moment at which lost events may hide a thread's. */
static int64_t lost_end(const struct host_walk *w)
{
	return w->v->lossy ? w->v->lost_until : INT64_MIN;
}

static void take_mark(struct host_walk *w, const struct sync_mark *m)
{
	mark_list_add(&w->v->marks, m);
	if (w->status == 0)
		w->status = mark_log_add(&w->v->log, m, w->err);
}

static void on_entry(struct host_walk *w, struct vthread *th, const struct event *ev)
{
	struct host_view *v = w->v;
	if (th->in_guest) {
		/* The exit was lost: guest mode is certain until the blindness begins. */
		if (th->unsure == INT64_MIN)
			vthread_hide(th, th->entered, ev->ts);
		else
			close_window(v, th, th->unsure);
	}
	if (!th->seen)
		vthread_hide(th, th->from, w->kvm_since - 1);
	settle(th, ev->ts, th->unsure == INT64_MIN ? ev->ts : lost_end(w));
	th->in_guest = true;
	th->entered = ev->ts;
	th->entries++;
	if (th->owes && !w->explicit_c) {
		struct sync_mark m = { th->owed + 1, ev->ts, EVENT_ABSENT, (int32_t)(th - v->thread), SYNC_C, 0 };
		take_mark(w, &m);
	}
	th->owes = false;
}

static void on_exit_event(struct host_walk *w, struct vthread *th, const struct event *ev)
{
	struct host_view *v = w->v;
	int64_t known = th->unsure == INT64_MIN ? ev->ts : lost_end(w);
	if (!th->seen && th->unsure == INT64_MIN) {
		th->entered = th->from;
		th->in_guest = true;
	} else if (th->unsure != INT64_MIN) {
		/* Between the end of the loss and this exit nothing happened: it was in the guest. */
		if (th->in_guest)
			close_window(v, th, th->unsure);
		settle(th, ev->ts, known);
		th->in_guest = known < ev->ts;
		th->entered = known + 1;
	} else if (!th->in_guest) {
		vthread_hide(th, th->to < ev->ts ? th->to : ev->ts, ev->ts);
	}
	if (th->in_guest)
		close_window(v, th, ev->ts);
	th->in_guest = false;
	/* Out of the guest it may move to a CPU whose events are being lost. */
	if (lost_end(w) >= ev->ts)
		th->unsure = ev->ts + 1;
}

static void on_kvm(struct host_walk *w, const struct event *ev, int32_t tid)
{
	struct vthread *th = life_known_so(w->v, tid, ev->comm, ev->pid);
	if (!th) {
		lives_tell_apart(w->v, tid, ev->ts, ev->comm, ev->pid);
		life_sight(w->v, ev->ts, tid, ev->comm, ev->pid);
		th = life_of(w->v, tid, ev->ts);
	}
	if (!w->v->has_kvm)
		w->kvm_since = ev->ts;
	w->v->has_kvm = true;
	if (!th)
		return;
	if (ev->pid > 0)
		th->pid = ev->pid;
	if (ev->comm != 0)
		th->comm = ev->comm;
	int64_t hint = ev->kvm.vcpu;
	if (hint != EVENT_ABSENT && ev->kind == EV_KVM_EXIT) {
		if (hint < 0 || hint > 4095 || (th->hint != EVENT_ABSENT && th->hint != hint))
			hint = -1;
		th->hint = hint;
	}
	if (ev->kind == EV_KVM_ENTRY)
		on_entry(w, th, ev);
	else
		on_exit_event(w, th, ev);
	th->cpu = ev->cpu;
	th->seen = true;
}

static void on_lost(struct host_walk *w, const struct event *ev)
{
	if (ev->lost.end < ev->ts)
		return;
	w->v->lost_until = w->v->lossy && w->v->lost_until > ev->lost.end ? w->v->lost_until : ev->lost.end;
	w->v->lossy = true;
	span_push(&w->loss, &w->losses, &w->loss_cap, ev->ts, ev->lost.end);
	uint64_t tid, index;
	for (size_t at = 0; map_each(&w->v->live, &at, &tid, &index);) {
		struct vthread *th = &w->v->thread[index];
		bool elsewhere = th->in_guest && th->cpu != ev->cpu;
		if (!elsewhere && th->unsure == INT64_MIN)
			th->unsure = ev->ts;
		th->owes = th->owes && elsewhere;
	}
	if (ev->cpu < w->cpus)
		w->current[ev->cpu] = -1;
}

static void on_sync(struct host_walk *w, const struct event *ev, int32_t tid)
{
	struct host_view *v = w->v;
	uint64_t *at = tid < 0 ? NULL : map_find(&v->live, (uint64_t)(uint32_t)tid);
	struct sync_mark m = { (uint64_t)ev->sync.key, ev->ts, ev->sync.uid, at ? (int32_t)*at : -1,
		(uint16_t)ev->sync.end, 0 };
	take_mark(w, &m);
	if (m.end == SYNC_C)
		w->explicit_c = true;
	if (m.end == SYNC_B && at) {
		v->thread[*at].owes = true;
		v->thread[*at].owed = m.key;
	}
}

static void set_current(struct host_walk *w, uint16_t cpu, int64_t tid)
{
	for (; w->cpus <= cpu; w->cpus++) {
		w->current = mem_resize(w->current, w->cpus + 1, sizeof *w->current);
		w->current[w->cpus] = -1;
	}
	w->current[cpu] = tid < 0 || tid > INT32_MAX ? -1 : (int32_t)tid;
}

static void on_event(struct host_walk *w, const struct event *ev)
{
	struct host_view *v = w->v;
	int32_t tid = ev->tid >= 0 ? ev->tid : ev->cpu < w->cpus ? w->current[ev->cpu] : -1;
	switch (ev->kind) {
	case EV_KVM_ENTRY:
	case EV_KVM_EXIT:
		if (tid >= 0)
			on_kvm(w, ev, tid);
		break;
	case EV_SWITCH:
		if (ev->sw.prev_state != RUN_DEAD) {
			life_name(v, ev->ts, ev->sw.prev_tid, ev->sw.prev_comm, EVENT_ABSENT);
		} else {  /* perhaps its exit was lost, or interrupts came after it, or this is all that is left of a life */
			lives_tell_apart(v, ev->sw.prev_tid, ev->ts, ev->sw.prev_comm, EVENT_ABSENT);
			life_end(v, ev->sw.prev_tid, ev->ts, true);
		}
		life_name(v, ev->ts, ev->sw.next_tid, ev->sw.next_comm, EVENT_ABSENT);
		set_current(w, ev->cpu, ev->sw.next_tid);
		break;
	case EV_PROCESS:
		life_name(v, ev->ts, ev->process.tid, ev->process.comm, ev->process.pid);
		break;
	case EV_FORK:
		life_end(v, ev->fork.child_tid, ev->ts, false);
		map_remove(&v->ended, (uint64_t)(uint32_t)ev->fork.child_tid);
		*map_put(&v->born, (uint64_t)(uint32_t)ev->fork.child_tid, NULL) = (uint64_t)ev->ts;
		life_name(v, ev->ts, ev->fork.child_tid, ev->fork.child_comm, ev->fork.child_pid);
		break;
	case EV_RENAME:
		life_name(v, ev->ts, ev->rename.tid, ev->rename.comm, EVENT_ABSENT);
		break;
	case EV_EXIT:
		if (v->lossy && ev->tid >= 0)  /* perhaps all that is left of a life */
			life_name(v, ev->ts, ev->tid, ev->comm == 0 ? EVENT_ABSENT : ev->comm, ev->pid);
		life_end(v, ev->exit.tid == EVENT_ABSENT ? tid : ev->exit.tid, ev->ts, true);
		break;
	case EV_SYNC:
		on_sync(w, ev, tid);
		break;
	case EV_LOST:
		on_lost(w, ev);
		break;
	}
	if (ev->tid >= 0 && ev->kind != EV_SWITCH && ev->kind != EV_EXIT)
		life_name(v, ev->ts, ev->tid, ev->comm == 0 ? EVENT_ABSENT : ev->comm, ev->pid);
}

/* After a thread's end, in a loss, another one may have become the same vCPU that nothing is ever seen of. */
static void doubt_succession(const struct host_walk *w, struct vthread *th)
{
	for (size_t i = 0; i < w->losses; i++)
		if (w->loss[i].to > th->to) {
			vthread_hide(th, w->loss[i].from > th->to ? w->loss[i].from : th->to + 1, w->v->end);
			return;
		}
}

/* Closes what is open, and makes the slices of time that were not kept blind. */
static void finish(struct host_walk *w)
{
	struct host_view *v = w->v;
	for (size_t i = 0; i < v->threads; i++) {
		struct vthread *th = &v->thread[i];
		int64_t end = th->to < v->end ? th->to : v->end;
		if (!v->has_kvm)
			vthread_hide(th, v->begin, v->end);
		if (th->unsure != INT64_MIN) {
			if (th->in_guest)
				close_window(v, th, th->unsure);
			vthread_hide(th, th->unsure, end);
		} else if (th->in_guest) {
			close_window(v, th, end);
		}
		doubt_succession(w, th);
		if (v->sliced == 0)
			continue;
		size_t n = th->blinds;
		struct span *old = th->blind, *next = old;
		th->blind = NULL;
		th->blinds = th->blind_cap = 0;
		for (int64_t from = v->begin; from <= v->end;) {
			/* Windows belong to the slice in which they begin; the next slice's first ns may hide one that goes on. */
			int64_t to = (from / SLICE_NS + 1) * SLICE_NS - 1;
			bool kept = slice_kept(v->sliced, v->begin, v->end, from) && slice_kept(v->sliced, v->begin, v->end, to);
			if (!kept)
				vthread_hide(th, from, to);
			for (; kept && next < old + n && next->from <= to; next++)
				vthread_hide(th, next->from, next->to);
			from = to + 1;
		}
		free(old);
	}
}

static int64_t quiet_of(const struct host_view *v)
{
	int64_t quiet = QUIET_MAX;
	for (size_t i = 0; i < v->threads; i++) {
		const struct vthread *th = &v->thread[i];
		for (size_t k = 1; k < th->windows; k++)
			if (th->window[k].from - th->window[k - 1].to < quiet)
				quiet = th->window[k].from - th->window[k - 1].to;
	}
	return quiet - quiet / 100 - 1;
}

int walk_stopped(const atomic_bool *stop, uint64_t seen, struct error *err)
{
	if ((seen & 0xffff) != 0 || !stop || !atomic_load(stop))
		return 0;
	return error_set(err, STATUS_CANCELLED, NULL, "synchronization: interrupted");
}

int host_view_load(struct host_view *v, const struct trace *trace, const struct map *known, unsigned workers,
                   const atomic_bool *stop, struct error *err)
{
	struct host_walk w = { .v = v, .workers = workers, .err = err };
	const struct trace_info *info = trace_info(trace);
	memset(v, 0, sizeof *v);
	v->trace = trace;
	v->known = known;
	v->stop = stop;
	v->begin = info->begin;
	v->end = info->end;
	const struct event *ev;
	struct cursor_ahead *c = cursor_ahead_open(trace, HOST_KINDS, workers, err);
	int status = c ? 0 : -1;
	uint64_t seen = 0;
	while (c && (status = cursor_ahead_next(c, &ev, err)) == 1) {
		on_event(&w, ev);
		if ((status = w.status) != 0 || (status = walk_stopped(stop, ++seen, err)) != 0)
			break;
	}
	cursor_ahead_close(c);
	if (status == 0) {
		finish(&w);
		v->quiet = quiet_of(v);
	}
	free(w.current);
	free(w.loss);
	if (status < 0)
		host_view_release(v);
	return status;
}

void host_view_release(struct host_view *v)
{
	for (size_t i = 0; i < v->threads; i++) {
		free(v->thread[i].window);
		free(v->thread[i].blind);
	}
	free(v->thread);
	mark_list_release(&v->marks);
	mark_log_release(&v->log);
	map_release(&v->live);
	map_release(&v->comm);
	map_release(&v->pid);
	map_release(&v->born);
	map_release(&v->ended);
	map_release(&v->sight);
	map_release(&v->other);
	map_release(&v->vcpu_name);
	memset(v, 0, sizeof *v);
}
