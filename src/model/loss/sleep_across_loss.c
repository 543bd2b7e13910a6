#include "model/loss/sleep_across_loss.h"

#include "base/bisect.h"
#include "base/states.h"

static int64_t lost_end(const struct proved_sleeps *a, int64_t cpu)
{
	return cpu >= 0 && cpu < (int64_t)a->cpus ? a->lost_end[cpu] : INT64_MIN;
}

static void on_lost(struct proved_sleeps *a, const struct event *ev)
{
	int64_t end = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
	if (ev->cpu >= a->cpus) {
		a->lost_end = mem_resize(a->lost_end, (size_t)ev->cpu + 1, sizeof *a->lost_end);
		while (a->cpus <= ev->cpu)
			a->lost_end[a->cpus++] = INT64_MIN;
	}
	a->lost_end[ev->cpu] = end > a->lost_end[ev->cpu] ? end : a->lost_end[ev->cpu];
	a->any_lost_end = end > a->any_lost_end ? end : a->any_lost_end;
	*ARRAY_PUSH(a->loss, a->losses, a->loss_cap) = ev->ts;
}

/* Records that the thread blocked on `cpu`; -1: was woken. */
static void set_sleep_state(struct proved_sleeps *a, int64_t tid, int64_t t, int32_t cpu)
{
	bool is_new;
	if (tid <= 0 || tid > INT32_MAX)
		return;
	uint64_t *at = map_put(&a->last, (uint64_t)tid, &is_new);
	if (is_new) {
		*at = a->states;
		ARRAY_PUSH(a->state, a->states, a->state_cap);
	}
	a->state[*at] = (struct sleep_state){ t, cpu };
}

static void on_waking(struct proved_sleeps *a, const struct event *ev)
{
	int64_t tid = ev->wake.tid, cpu = ev->wake.target_cpu;
	if (tid <= 0 || tid > INT32_MAX || cpu < 0 || cpu > UINT16_MAX)
		return;
	uint64_t *at = map_find(&a->last, (uint64_t)tid);
	struct sleep_state last = at ? a->state[*at] : (struct sleep_state){ INT64_MIN, -1 };
	/* The thread blocked on its target CPU, either at a recorded switch or during a loss on that CPU: its events on any
	 * other CPU would have been recorded. */
	int64_t from = lost_end(a, cpu);
	if (last.cpu == cpu && last.since > from)
		from = last.since;
	if (from >= last.since && from < a->any_lost_end)
		*ARRAY_PUSH(a->sleep, a->sleeps, a->sleep_cap) = (struct sleep){
			.from = from, .until = ev->ts, .tid = (int32_t)tid, .cpu = (int32_t)cpu, .sched = THREAD_BLOCKED,
			.comm = ev->wake.comm > 0 && ev->wake.comm <= UINT32_MAX ? (uint32_t)ev->wake.comm : 0 };
	set_sleep_state(a, tid, ev->ts, -1);
}

static struct vcpu_off_time *off_time_of(struct proved_sleeps *a, int32_t tid)
{
	bool is_new;
	uint64_t *at = map_put(&a->off, (uint64_t)tid, &is_new);
	if (is_new) {
		*at = a->vcpus;
		*ARRAY_PUSH(a->vcpu, a->vcpus, a->vcpu_cap) = (struct vcpu_off_time){ .state = -1 };
	}
	return &a->vcpu[*at];
}

static void add_vcpu_sleep(struct proved_sleeps *a, const struct event *ev, const struct vcpu_off_time *off, int64_t from,
                           int64_t until, int8_t sched)
{
	if (from < until)
		*ARRAY_PUSH(a->sleep, a->sleeps, a->sleep_cap) = (struct sleep){ .from = from, .until = until, .cpu = off->cpu,
			.tid = vcpu_thread_id(ev->vcpu_state.vm, ev->vcpu_state.vcpu), .sched = sched,
			.comm = (uint32_t)ev->vcpu_state.name };
}

static bool has_loss_since(const struct proved_sleeps *a, const struct vcpu_off_time *off)
{
	return off->in_loss || off->losses < a->losses;
}

/* The vCPU ran, or was woken, unrecorded: its state is unknown since the first loss. */
static void add_unrecorded_change(struct proved_sleeps *a, const struct event *ev, const struct vcpu_off_time *off,
                                  int64_t until)
{
	add_vcpu_sleep(a, ev, off, off->in_loss ? off->since : a->loss[off->losses], until, THREAD_UNKNOWN);
}

/* A vCPU starts to run, and nothing contradicts the records since it left its last pCPU. The recorded duration counts from
 * a decision of the hypervisor, which precedes the record of the switch by decision_max at most. */
static void end_off_time(struct proved_sleeps *a, const struct event *ev, const struct vcpu_off_time *off)
{
	const bool is_woken = off->woken != INT64_MIN;
	if (ev->vcpu_state.idle_ns == EVENT_ABSENT)
		return;
	const int64_t left = ev->ts - ev->vcpu_state.idle_ns, until = is_woken ? off->woken : ev->ts;
	const uint32_t late = (uint32_t)(left - off->since);  /* the duration is modulo 2^32 */
	if (!has_loss_since(a, off)) {
		a->decision_max = late > a->decision_max && late <= INT32_MAX ? late : a->decision_max;
	} else if (!off->in_loss && left < a->loss[off->losses]) {
		add_vcpu_sleep(a, ev, off, off->since, until, off->state == VCPU_STATE_BLOCKED ? THREAD_BLOCKED : THREAD_PREEMPTED);
		add_vcpu_sleep(a, ev, off, until, ev->ts, THREAD_PREEMPTED);
	} else if (late > a->decision_max && late <= INT32_MAX) {
		add_unrecorded_change(a, ev, off, left < until ? until : ev->ts);
	}
}

static void on_vcpu_state(struct proved_sleeps *a, const struct event *ev)
{
	const int64_t old = ev->vcpu_state.old, state = ev->vcpu_state.state;
	const int32_t tid = ev->vcpu_state.vm == EVENT_ABSENT ? -1 : vcpu_thread_id(ev->vcpu_state.vm, ev->vcpu_state.vcpu);
	if (tid < 0)
		return;
	struct vcpu_off_time *off = off_time_of(a, tid);
	const int expected = off->state == VCPU_STATE_BLOCKED && off->woken != INT64_MIN ? VCPU_STATE_RUNNABLE : off->state;
	if (off->state >= 0 && old != expected) {
		if (has_loss_since(a, off))
			add_unrecorded_change(a, ev, off, ev->ts);
		off->state = -1;
	}
	if (off->state == VCPU_STATE_BLOCKED && old == VCPU_STATE_BLOCKED && state == VCPU_STATE_RUNNABLE) {
		off->woken = ev->ts;
		return;
	}
	if (off->state >= 0 && state == VCPU_STATE_RUNNING)
		end_off_time(a, ev, off);
	*off = (struct vcpu_off_time){ .since = ev->ts, .woken = INT64_MIN, .losses = a->losses, .cpu = ev->cpu,
		.in_loss = a->any_lost_end >= ev->ts, .state = -1 };
	if (old == VCPU_STATE_RUNNING && (state == VCPU_STATE_RUNNABLE || state == VCPU_STATE_BLOCKED))
		off->state = (int8_t)state;
}

void proved_sleeps_feed(struct proved_sleeps *a, const struct event *ev)
{
	if (ev->kind == EV_LOST)
		on_lost(a, ev);
	else if (ev->kind == EV_WAKING)
		on_waking(a, ev);
	else if (ev->kind == EV_VCPU_STATE)
		on_vcpu_state(a, ev);
	else if (ev->kind == EV_FORK)
		set_sleep_state(a, ev->fork.child_tid, ev->ts, -1);  /* a new thread did not sleep before */
	else if (ev->kind == EV_SWITCH && 
	         (ev->sw.prev_state == RUN_BLOCKED || ev->sw.prev_state == RUN_UNINTERRUPTIBLE))
		set_sleep_state(a, ev->sw.prev_tid, ev->ts, ev->cpu);
}

ORDER_BY(compare_sleeps, struct sleep, RISING(tid) RISING(from))

void proved_sleeps_finish(struct proved_sleeps *a)
{
	ARRAY_SORT(a->sleep, a->sleeps, compare_sleeps);
	map_release(&a->last);
	map_release(&a->off);
	free(a->state);
	free(a->lost_end);
	free(a->loss);
	free(a->vcpu);
	a->state = NULL;
	a->lost_end = a->loss = NULL;
	a->vcpu = NULL;
	a->states = a->state_cap = a->losses = a->loss_cap = a->vcpus = a->vcpu_cap = 0;
	a->cpus = 0;
}

void proved_sleeps_release(struct proved_sleeps *a)
{
	proved_sleeps_finish(a);
	free(a->sleep);
	*a = (struct proved_sleeps)PROVED_SLEEPS_INIT;
}

const struct sleep *proved_sleep_at(const struct proved_sleeps *a, int64_t tid, int64_t t)
{
	size_t at;
	BISECT(at, a->sleeps, a->sleep[at].tid < tid || (a->sleep[at].tid == tid && a->sleep[at].from <= t));
	const struct sleep *s = at ? &a->sleep[at - 1] : NULL;
	return s && s->tid == tid && t < s->until ? s : NULL;
}
