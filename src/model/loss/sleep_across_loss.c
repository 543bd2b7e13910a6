#include "model/loss/sleep_across_loss.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

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
			.from = from, .until = ev->ts, .tid = (int32_t)tid, .cpu = (int32_t)cpu,
			.comm = ev->wake.comm > 0 && ev->wake.comm <= UINT32_MAX ? (uint32_t)ev->wake.comm : 0 };
	set_sleep_state(a, tid, ev->ts, -1);
}

void proved_sleeps_feed(struct proved_sleeps *a, const struct event *ev)
{
	if (ev->kind == EV_LOST)
		on_lost(a, ev);
	else if (ev->kind == EV_WAKING)
		on_waking(a, ev);
	else if (ev->kind == EV_FORK)
		set_sleep_state(a, ev->fork.child_tid, ev->ts, -1);  /* a new thread did not sleep before */
	else if (ev->kind == EV_SWITCH && 
	         (ev->sw.prev_state == RUN_BLOCKED || ev->sw.prev_state == RUN_UNINTERRUPTIBLE))
		set_sleep_state(a, ev->sw.prev_tid, ev->ts, ev->cpu);
}

static int compare_sleeps(const void *pa, const void *pb)
{
	const struct sleep *a = pa, *b = pb;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

void proved_sleeps_finish(struct proved_sleeps *a)
{
	if (a->sleeps)
		qsort(a->sleep, a->sleeps, sizeof *a->sleep, compare_sleeps);
	map_release(&a->last);
	free(a->state);
	free(a->lost_end);
	a->state = NULL;
	a->lost_end = NULL;
	a->states = a->state_cap = a->cpus = 0;
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
