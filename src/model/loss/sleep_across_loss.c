#include "model/loss/sleep_across_loss.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

static int64_t lost_end(const struct asleep *a, int64_t cpu)
{
	return cpu >= 0 && cpu < (int64_t)a->cpus ? a->lost_end[cpu] : INT64_MIN;
}

static void on_lost(struct asleep *a, const struct event *ev)
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

/* cpu: where it falls asleep; -1: it is woken. */
static void note(struct asleep *a, int64_t tid, int64_t t, int32_t cpu)
{
	bool is_new;
	if (tid <= 0 || tid > INT32_MAX)
		return;
	uint64_t *at = map_put(&a->last, (uint64_t)tid, &is_new);
	if (is_new) {
		*at = a->turns;
		ARRAY_PUSH(a->turn, a->turns, a->turn_cap);
	}
	a->turn[*at] = (struct turn){ t, cpu };
}

static void on_waking(struct asleep *a, const struct event *ev)
{
	int64_t tid = ev->wake.tid, cpu = ev->wake.target_cpu;
	if (tid <= 0 || tid > INT32_MAX || cpu < 0 || cpu > UINT16_MAX)
		return;
	uint64_t *at = map_find(&a->last, (uint64_t)tid);
	struct turn last = at ? a->turn[*at] : (struct turn){ INT64_MIN, -1 };
	/* It fell asleep on that CPU as was seen, or while that CPU's events were lost; whatever else it did would show. */
	int64_t from = lost_end(a, cpu);
	if (last.cpu == cpu && last.since > from)
		from = last.since;
	if (from >= last.since && from < a->any_lost_end)
		*ARRAY_PUSH(a->sleep, a->sleeps, a->sleep_cap) = (struct sleep){
			.from = from, .until = ev->ts, .tid = (int32_t)tid, .cpu = (int32_t)cpu,
			.comm = ev->wake.comm > 0 && ev->wake.comm <= UINT32_MAX ? (uint32_t)ev->wake.comm : 0 };
	note(a, tid, ev->ts, -1);
}

void asleep_feed(struct asleep *a, const struct event *ev)
{
	if (ev->kind == EV_LOST)
		on_lost(a, ev);
	else if (ev->kind == EV_WAKING)
		on_waking(a, ev);
	else if (ev->kind == EV_FORK)
		note(a, ev->fork.child_tid, ev->ts, -1);  /* before that, nobody slept */
	else if (ev->kind == EV_SWITCH && 
	         (ev->sw.prev_state == RUN_BLOCKED || ev->sw.prev_state == RUN_UNINTERRUPTIBLE))
		note(a, ev->sw.prev_tid, ev->ts, ev->cpu);
}

static int by_tid(const void *pa, const void *pb)
{
	const struct sleep *a = pa, *b = pb;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

void asleep_finish(struct asleep *a)
{
	if (a->sleeps)
		qsort(a->sleep, a->sleeps, sizeof *a->sleep, by_tid);
	map_release(&a->last);
	free(a->turn);
	free(a->lost_end);
	a->turn = NULL;
	a->lost_end = NULL;
	a->turns = a->turn_cap = a->cpus = 0;
}

void asleep_release(struct asleep *a)
{
	asleep_finish(a);
	free(a->sleep);
	*a = (struct asleep)ASLEEP_INIT;
}

const struct sleep *asleep_at(const struct asleep *a, int64_t tid, int64_t t)
{
	size_t at;
	BISECT(at, a->sleeps, a->sleep[at].tid < tid || (a->sleep[at].tid == tid && a->sleep[at].from <= t));
	const struct sleep *s = at ? &a->sleep[at - 1] : NULL;
	return s && s->tid == tid && t < s->until ? s : NULL;
}
