#include "sync/evidence/host_timeline.h"

#include "base/base.h"
#include "sync/evidence/prefetch_cursor.h"
#include "sync/evidence/thread_lifetimes.h"
#include "sync/evidence/time_sampling.h"

#ifndef WINDOWS_MAX
#define WINDOWS_MAX (4u << 20)
#endif

#define MIN_GAP_MAX_NS 10000  /* upper limit of min_gap_ns: limits the activity of a guest that never leaves guest mode */

#define HOST_KINDS (KIND(EV_VCPU_ENTRY) | KIND(EV_VCPU_EXIT) | KIND(EV_SWITCH) | KIND(EV_PROCESS) | KIND(EV_FORK) | \
	KIND(EV_VCPU_STATE) | KIND(EV_VM) | KIND(EV_RENAME) | KIND(EV_EXIT) | KIND(EV_SYNC) | KIND(EV_LOST))

/* State needed only while the trace is read. */
struct host_walk {
	struct host_timeline *v;
	int32_t *current;       /* by pCPU: TID of the current thread; -1: unknown */
	size_t cpus;
	struct ns_interval *loss;      /* times of losses on any CPU, sorted */
	size_t losses, loss_cap;
	unsigned workers;       /* threads for reading */
	int status;             /* -1: a sync event could not be stored, *err is set */
	struct error *err;
	int64_t guest_mode_since;  /* first event of any thread that shows guest mode, ns: not recorded before it */
	bool has_sync_c;        /* the trace has SYNC_C events; VM entries then do not take their part */
};

/* Halves the stored slice count when there are too many windows. finish_threads() makes the dropped times unknown. */
static void halve_slices(struct host_timeline *v)
{
	v->slice_bits++;
	v->windows = 0;
	for (size_t i = 0; i < v->threads; i++) {
		struct vthread *th = &v->thread[i];
		size_t n = 0;
		for (size_t k = 0; k < th->windows; k++)
			if (is_slice_kept(v->slice_bits, v->begin, v->end, th->window[k].from))
				th->window[n++] = th->window[k];
		th->windows = th->window_cap = n;
		th->window = mem_resize(th->window, n, sizeof *th->window);
		v->windows += n;
	}
}

static void close_window(struct host_timeline *v, struct vthread *th, int64_t to)
{
	if (v->slice_bits > 0 && !is_slice_kept(v->slice_bits, v->begin, v->end, th->window_start))
		return;
	size_t before = th->windows;
	interval_append(&th->window, &th->windows, &th->window_cap, th->window_start, to);
	v->windows += th->windows - before;
	if (v->windows > WINDOWS_MAX && v->slice_bits < SLICE_BITS_MAX)
		halve_slices(v);
}

/* Ends the unknown mode of a thread that has an event at ts. The unknown interval ends at known_from if that is earlier. */
static void end_unknown_mode(struct vthread *th, int64_t ts, int64_t known_from)
{
	if (th->mode_unknown_since == INT64_MIN)
		return;
	int64_t to = known_from < ts ? known_from : ts;
	vthread_add_unknown(th, th->mode_unknown_since, to);
	th->mode_unknown_since = INT64_MIN;
}

/* Returns the last time at which a loss may hide events of a thread; INT64_MIN: no loss. */
static int64_t loss_end(const struct host_walk *w)
{
	return w->v->has_loss ? w->v->lost_until : INT64_MIN;
}

static void add_sync_event(struct host_walk *w, const struct sync_event *m)
{
	sync_event_set_add(&w->v->sync_events, m);
	if (w->status == 0)
		w->status = sync_event_file_add(&w->v->event_file, m, w->err);
}

/* ---- Guest mode, shown by VM entries and exits of threads or by run states of vCPUs */

static void show_guest_mode(struct host_walk *w, int64_t ts)
{
	if (!w->v->has_guest_mode)
		w->guest_mode_since = ts;
	w->v->has_guest_mode = true;
}

static void enter_guest_mode(struct host_walk *w, struct vthread *th, const struct event *ev)
{
	struct host_timeline *v = w->v;
	if (th->in_guest) {
		/* The exit was lost: guest mode is certain only up to the time at which the mode became unknown. */
		if (th->mode_unknown_since == INT64_MIN)
			vthread_add_unknown(th, th->window_start, ev->ts);
		else
			close_window(v, th, th->mode_unknown_since);
	}
	if (!th->has_guest_mode)
		vthread_add_unknown(th, th->from, w->guest_mode_since - 1);
	end_unknown_mode(th, ev->ts, th->mode_unknown_since == INT64_MIN ? ev->ts : loss_end(w));
	th->in_guest = true;
	th->window_start = ev->ts;
	th->entries++;
	if (th->hypercall_pending && !w->has_sync_c) {
		struct sync_event m = { th->hypercall_key + 1, ev->ts, EVENT_ABSENT, (int32_t)(th - v->thread), SYNC_C, 0 };
		add_sync_event(w, &m);
	}
	th->hypercall_pending = false;
}

static void leave_guest_mode(struct host_walk *w, struct vthread *th, const struct event *ev)
{
	struct host_timeline *v = w->v;
	int64_t known = th->mode_unknown_since == INT64_MIN ? ev->ts : loss_end(w);
	if (!th->has_guest_mode && th->mode_unknown_since == INT64_MIN) {
		th->window_start = th->from;
		th->in_guest = true;
	} else if (th->mode_unknown_since != INT64_MIN) {
		/* No event between the end of the loss and this exit: the thread was in guest mode during that time. */
		if (th->in_guest)
			close_window(v, th, th->mode_unknown_since);
		end_unknown_mode(th, ev->ts, known);
		th->in_guest = known < ev->ts;
		th->window_start = known + 1;
	} else if (!th->in_guest) {
		vthread_add_unknown(th, th->to < ev->ts ? th->to : ev->ts, ev->ts);
	}
	if (th->in_guest)
		close_window(v, th, ev->ts);
	th->in_guest = false;
	/* Outside guest mode the thread may migrate to a CPU with a loss. */
	if (loss_end(w) >= ev->ts)
		th->mode_unknown_since = ev->ts + 1;
}

static void on_guest_mode(struct host_walk *w, const struct event *ev, int32_t tid)
{
	struct vthread *th = lifetime_find_unchanged(w->v, tid, ev->comm, ev->pid);
	if (!th) {
		lifetime_end_if_other_thread(w->v, tid, ev->ts, ev->comm, ev->pid);
		lifetime_record_sighting(w->v, ev->ts, tid, ev->comm, ev->pid);
		th = lifetime_get(w->v, tid, ev->ts);
	}
	show_guest_mode(w, ev->ts);
	if (!th)
		return;
	if (ev->pid > 0)
		th->pid = ev->pid;
	if (ev->comm != 0)
		th->comm = ev->comm;
	int64_t vcpu_id = ev->vcpu_exit.vcpu;
	if (vcpu_id != EVENT_ABSENT && ev->kind == EV_VCPU_EXIT) {
		if (vcpu_id < 0 || vcpu_id > 4095 || (th->vcpu_id != EVENT_ABSENT && th->vcpu_id != vcpu_id))
			vcpu_id = -1;
		th->vcpu_id = vcpu_id;
	}
	if (ev->kind == EV_VCPU_ENTRY)
		enter_guest_mode(w, th, ev);
	else
		leave_guest_mode(w, th, ev);
	th->cpu = ev->cpu;
	th->has_guest_mode = true;
}

/* Processes a VM entry or exit of a vCPU with run states. Before its first entry, running counts as guest mode. */
static void on_reported_guest_mode(struct host_walk *w, struct vthread *th, const struct event *ev)
{
	if (ev->kind == EV_VCPU_EXIT) {
		if (th->in_guest || th->mode_unknown_since != INT64_MIN)
			leave_guest_mode(w, th, ev);
		return;
	}
	if (!th->has_entries)
		th->in_guest = false;
	th->has_entries = true;
	enter_guest_mode(w, th, ev);
}

static void set_current(struct host_walk *w, uint16_t cpu, int64_t tid)
{
	for (; w->cpus <= cpu; w->cpus++) {
		w->current = mem_resize(w->current, w->cpus + 1, sizeof *w->current);
		w->current[w->cpus] = -1;
	}
	w->current[cpu] = tid < 0 || tid > INT32_MAX ? -1 : (int32_t)tid;
}

/* Processes the run state of a vCPU that the hypervisor schedules without a host thread: running is guest mode, unless its
 * VM entries are recorded. */
static void on_vcpu_state(struct host_walk *w, const struct event *ev)
{
	struct host_timeline *v = w->v;
	const int32_t tid = vcpu_thread_id(ev->vcpu_state.vm, ev->vcpu_state.vcpu);
	const int64_t old = ev->vcpu_state.old, state = ev->vcpu_state.state;
	if (old == VCPU_STATE_RUNNING || state == VCPU_STATE_RUNNING)
		set_current(w, ev->cpu, state == VCPU_STATE_RUNNING ? tid : -1);
	if (tid < 0)
		return;
	show_guest_mode(w, ev->ts);
	if (!map_find(&v->live_threads, (uint64_t)tid) && !v->has_loss)
		lifetime_record_sighting(v, ev->ts, vcpu_process(ev->vcpu_state.vm), ev->vcpu_state.name, EVENT_ABSENT);
	struct vthread *th = lifetime_get(v, tid, ev->ts);
	if (!th)
		return;
	th->last_seen = ev->ts;
	th->pid = vcpu_process(ev->vcpu_state.vm);
	th->comm = ev->vcpu_state.name;
	th->vcpu_id = ev->vcpu_state.vcpu;
	th->is_reported = true;
	if (old == VCPU_STATE_RUNNING && state != VCPU_STATE_RUNNING && (th->in_guest || !th->has_entries))
		leave_guest_mode(w, th, ev);
	else if (state == VCPU_STATE_RUNNING && !th->has_entries &&
	         !(th->in_guest && old == VCPU_STATE_RUNNING && th->mode_unknown_since == INT64_MIN))
		enter_guest_mode(w, th, ev);
	else if (th->mode_unknown_since != INT64_MIN && !th->in_guest && loss_end(w) < ev->ts &&
	         !(state == VCPU_STATE_RUNNING && old == VCPU_STATE_RUNNING))
		end_unknown_mode(th, ev->ts, loss_end(w));
	th->is_running = state == VCPU_STATE_RUNNING;
	if (th->is_running || old == VCPU_STATE_RUNNING)
		th->cpu = ev->cpu;
	th->has_guest_mode = true;
}

static void on_vm(struct host_walk *w, const struct event *ev)
{
	for (size_t i = 0; i < w->v->threads && !ev->vm.exists; i++)
		if (w->v->thread[i].is_reported && w->v->thread[i].pid == vcpu_process(ev->vm.vm) &&
		    w->v->thread[i].to == INT64_MAX)
			lifetime_end(w->v, w->v->thread[i].tid, ev->ts, true);
}

static void on_lost(struct host_walk *w, const struct event *ev)
{
	if (ev->lost.end < ev->ts)
		return;
	w->v->lost_until = w->v->has_loss && w->v->lost_until > ev->lost.end ? w->v->lost_until : ev->lost.end;
	w->v->has_loss = true;
	interval_append(&w->loss, &w->losses, &w->loss_cap, ev->ts, ev->lost.end);
	uint64_t tid, index;
	for (size_t at = 0; map_each(&w->v->live_threads, &at, &tid, &index);) {
		struct vthread *th = &w->v->thread[index];
		bool elsewhere = (th->in_guest || th->is_running) && th->cpu != ev->cpu;
		if (!elsewhere && th->mode_unknown_since == INT64_MIN)
			th->mode_unknown_since = ev->ts;
		th->hypercall_pending = th->hypercall_pending && elsewhere;
	}
	if (ev->cpu < w->cpus)
		w->current[ev->cpu] = -1;
}

static void on_sync(struct host_walk *w, const struct event *ev, int32_t tid)
{
	struct host_timeline *v = w->v;
	uint64_t *at = tid < 0 ? NULL : map_find(&v->live_threads, (uint64_t)(uint32_t)tid);
	struct sync_event m = { (uint64_t)ev->sync.key, ev->ts, ev->sync.uid, at ? (int32_t)*at : -1,
		(uint16_t)ev->sync.end, 0 };
	add_sync_event(w, &m);
	if (m.end == SYNC_C)
		w->has_sync_c = true;
	if (m.end == SYNC_B && at) {
		v->thread[*at].hypercall_pending = true;
		v->thread[*at].hypercall_key = m.key;
	}
}

static void on_event(struct host_walk *w, const struct event *ev)
{
	struct host_timeline *v = w->v;
	int32_t tid = ev->tid >= 0 ? ev->tid : ev->cpu < w->cpus ? w->current[ev->cpu] : -1;
	struct vthread *th;
	switch (ev->kind) {
	case EV_VCPU_ENTRY:
	case EV_VCPU_EXIT:
		if (tid >= VCPU_TID_FIRST && ev->tid < 0 && (th = lifetime_get(v, tid, ev->ts)) && th->is_reported) {
			if (ev->kind == EV_VCPU_ENTRY || ev->vcpu_exit.isa != EXIT_ISA_XEN_PV)
				on_reported_guest_mode(w, th, ev);
		} else if (tid >= 0) {
			on_guest_mode(w, ev, tid);
		}
		break;
	case EV_SWITCH:
		if (ev->sw.prev_state != RUN_DEAD) {
			lifetime_observe(v, ev->ts, ev->sw.prev_tid, ev->sw.prev_comm, EVENT_ABSENT);
		} else {  /* the exit event was lost, or follows interrupts after the exit, or this switch is the only event of a
		           * lifetime */
			lifetime_end_if_other_thread(v, ev->sw.prev_tid, ev->ts, ev->sw.prev_comm, EVENT_ABSENT);
			lifetime_end(v, ev->sw.prev_tid, ev->ts, true);
		}
		lifetime_observe(v, ev->ts, ev->sw.next_tid, ev->sw.next_comm, EVENT_ABSENT);
		set_current(w, ev->cpu, ev->sw.next_tid);
		break;
	case EV_PROCESS:
		lifetime_observe(v, ev->ts, ev->process.tid, ev->process.comm, ev->process.pid);
		break;
	case EV_FORK:
		lifetime_end(v, ev->fork.child_tid, ev->ts, false);
		map_remove(&v->exited_tids, (uint64_t)(uint32_t)ev->fork.child_tid);
		*map_put(&v->fork_times, (uint64_t)(uint32_t)ev->fork.child_tid, NULL) = (uint64_t)ev->ts;
		lifetime_observe(v, ev->ts, ev->fork.child_tid, ev->fork.child_comm, ev->fork.child_pid);
		break;
	case EV_RENAME:
		lifetime_observe(v, ev->ts, ev->rename.tid, ev->rename.comm, EVENT_ABSENT);
		break;
	case EV_EXIT:
		if (v->has_loss && ev->tid >= 0)  /* this exit may be the only event of a lifetime */
			lifetime_observe(v, ev->ts, ev->tid, ev->comm == 0 ? EVENT_ABSENT : ev->comm, ev->pid);
		lifetime_end(v, ev->exit.tid == EVENT_ABSENT ? tid : ev->exit.tid, ev->ts, true);
		break;
	case EV_VCPU_STATE:
		on_vcpu_state(w, ev);
		break;
	case EV_VM:
		on_vm(w, ev);
		break;
	case EV_SYNC:
		on_sync(w, ev, tid);
		break;
	case EV_LOST:
		on_lost(w, ev);
		break;
	}
	if (ev->tid >= 0 && ev->kind != EV_SWITCH && ev->kind != EV_EXIT)
		lifetime_observe(v, ev->ts, ev->tid, ev->comm == 0 ? EVENT_ABSENT : ev->comm, ev->pid);
}

/* Makes the mode unknown after the end of a thread if events were lost after it: another thread may have continued the
 * vCPU unrecorded. */
static void add_unknown_after_end(const struct host_walk *w, struct vthread *th)
{
	for (size_t i = 0; i < w->losses; i++)
		if (w->loss[i].to > th->to) {
			vthread_add_unknown(th, w->loss[i].from > th->to ? w->loss[i].from : th->to + 1, w->v->end);
			return;
		}
}

/* Closes open windows, and makes the mode unknown in the dropped slices of time. */
static void finish_threads(struct host_walk *w)
{
	struct host_timeline *v = w->v;
	for (size_t i = 0; i < v->threads; i++) {
		struct vthread *th = &v->thread[i];
		int64_t end = th->to < v->end ? th->to : v->end;
		if (!v->has_guest_mode)
			vthread_add_unknown(th, v->begin, v->end);
		if (th->mode_unknown_since != INT64_MIN) {
			if (th->in_guest)
				close_window(v, th, th->mode_unknown_since);
			vthread_add_unknown(th, th->mode_unknown_since, end);
		} else if (th->in_guest) {
			close_window(v, th, end);
		}
		add_unknown_after_end(w, th);
		if (v->slice_bits == 0)
			continue;
		size_t n = th->unknowns;
		struct ns_interval *old = th->unknown, *next = old;
		th->unknown = NULL;
		th->unknowns = th->unknown_cap = 0;
		for (int64_t from = v->begin; from <= v->end;) {
			/* A window belongs to the slice in which it starts, so the first ns of a dropped slice may belong to a
			 * stored window. */
			int64_t to = (from / SLICE_NS + 1) * SLICE_NS - 1;
			bool kept = is_slice_kept(v->slice_bits, v->begin, v->end, from) &&
				is_slice_kept(v->slice_bits, v->begin, v->end, to);
			if (!kept)
				vthread_add_unknown(th, from, to);
			for (; kept && next < old + n && next->from <= to; next++)
				vthread_add_unknown(th, next->from, next->to);
			from = to + 1;
		}
		free(old);
	}
}

static int64_t find_min_gap(const struct host_timeline *v)
{
	int64_t min_gap_ns = MIN_GAP_MAX_NS;
	for (size_t i = 0; i < v->threads; i++) {
		const struct vthread *th = &v->thread[i];
		for (size_t k = 1; k < th->windows; k++)
			if (th->window[k].from - th->window[k - 1].to < min_gap_ns)
				min_gap_ns = th->window[k].from - th->window[k - 1].to;
	}
	return min_gap_ns - min_gap_ns / 100 - 1;
}

int check_cancelled(const atomic_bool *stop, uint64_t n_events, struct error *err)
{
	if ((n_events & 0xffff) != 0 || !stop || !atomic_load(stop))
		return 0;
	return error_set(err, STATUS_CANCELLED, NULL, "synchronization: interrupted");
}

int host_timeline_load(struct host_timeline *v, const struct trace *trace, const struct map *vcpu_tids, unsigned workers,
                       const atomic_bool *stop, struct error *err)
{
	struct host_walk w = { .v = v, .workers = workers, .err = err };
	const struct trace_info *info = trace_info(trace);
	memset(v, 0, sizeof *v);
	v->trace = trace;
	v->vcpu_tids = vcpu_tids;
	v->stop = stop;
	v->begin = info->begin;
	v->end = info->end;
	const struct event *ev;
	struct prefetch_cursor *c = prefetch_cursor_open(trace, HOST_KINDS, workers, err);
	int status = c ? 0 : -1;
	uint64_t n_events = 0;
	while (c && (status = prefetch_cursor_next(c, &ev, err)) == 1) {
		on_event(&w, ev);
		if ((status = w.status) != 0 || (status = check_cancelled(stop, ++n_events, err)) != 0)
			break;
	}
	prefetch_cursor_close(c);
	if (status == 0) {
		finish_threads(&w);
		v->min_gap_ns = find_min_gap(v);
	}
	free(w.current);
	free(w.loss);
	if (status < 0)
		host_timeline_release(v);
	return status;
}

void host_timeline_release(struct host_timeline *v)
{
	for (size_t i = 0; i < v->threads; i++) {
		free(v->thread[i].window);
		free(v->thread[i].unknown);
	}
	free(v->thread);
	sync_event_set_release(&v->sync_events);
	sync_event_file_release(&v->event_file);
	map_release(&v->live_threads);
	map_release(&v->comm);
	map_release(&v->pid);
	map_release(&v->fork_times);
	map_release(&v->exited_tids);
	map_release(&v->last_sighting);
	map_release(&v->last_other);
	map_release(&v->vcpu_name);
	memset(v, 0, sizeof *v);
}
