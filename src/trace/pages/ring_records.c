#include "trace/pages/ring_records.h"

#include <stdio.h>

#define MOST_ASKED 512  /* events: who describes more, describes all that the kernel has, asked for or not */

void ring_init(struct ring *r, struct tep_handle *tep, struct meaning *m)
{
	size_t best = 0, best_score = 0;
	unsigned asked, best_asked = 0;
	r->tep = tep;
	name_cache_init(&r->cache, m->names);
	for (size_t i = 0; i < m->layouts; i++) {
		size_t score = tep_binder_score(tep, m->layout[i], &asked);
		if (score > best_score) {
			best = i;
			best_score = score;
			best_asked = asked;
		}
	}
	if (tep_get_events_count(tep) <= MOST_ASKED)
		atomic_store(&m->asked, best_asked);
	atomic_store(&m->chosen, best_score ? best + 1 : 0);
	r->binder = tep_binder_new(tep, m->layout[best], &r->cache);
}

void ring_cpu_open(struct ring_cpu *p, unsigned cpu, struct outlet *out, int64_t limit)
{
	*p = (struct ring_cpu){ .cpu = cpu, .first = INT64_MIN, .last = INT64_MIN };
	guard_open(&p->guard, out, limit);
}

/* The record before this one is not the one that the kernel wrote before it.  What that told holds at its own ns. */
static int put_lost(struct ring_cpu *p, uint64_t page, const struct tep_record *rec, int64_t now)
{
	return guard_put(&p->guard, page, &(struct event){ .ts = p->last == INT64_MIN || p->last >= now ? now : p->last + 1,
		.kind = EV_LOST, .cpu = (uint16_t)rec->cpu, .tid = -1, .pid = -1,
		.lost = { now, rec->missed_events > 0 ? rec->missed_events : EVENT_ABSENT } });
}

/* Switches name the threads; until a CPU's first one, the table of names that the kernel saved does.  (Later it would be
 * wrong for threads that changed their name while they were traced.) */
static void name_current(struct ring *r, struct event *ev, bool *switched)
{
	*switched |= ev->kind == EV_SWITCH;
	if (*switched || ev->comm || ev->tid <= 0)
		return;
	const char *name = tep_data_comm_from_pid(r->tep, ev->tid);
	if (name && *name && *name != '<')
		ev->comm = name_cache_put(&r->cache, name, strlen(name));
}

static void place_current(const struct ring *r, struct event *ev)
{
	const uint64_t *process = ev->tid > 0 && ev->pid < 0 ? map_find(&r->process, (uint64_t)ev->tid) : NULL;
	if (process)
		ev->pid = (int32_t)*process;
}

int ring_cpu_take(struct ring *r, struct ring_cpu *p, uint64_t page, struct tep_record *rec, int64_t now)
{
	struct event ev;
	if (now < 0 || rec->cpu != (int)p->cpu)
		p->why = "an event without a possible time";
	if (p->why)
		return 0;
	p->records++;
	if (rec->missed_events && put_lost(p, page, rec, now))
		return -1;
	if (!tep_binder_event(r->binder, rec, &ev))
		return 0;
	ev.ts = p->last = now;
	p->first = p->first == INT64_MIN ? now : p->first;
	name_current(r, &ev, &p->switched);
	place_current(r, &ev);
	return guard_put(&p->guard, page, &ev);
}

int ring_cpu_cover(const struct ring_cpu *p, const struct cpu_stat *s, int64_t begin, int64_t end, struct outlet *out)
{
	char why[80];
	const bool from_first = s && s->lost && p->first != INT64_MIN;
	if (end == INT64_MAX || !s)
		return 0;
	if (p->records >= s->events)
		return outlet_covers(out, (uint16_t)p->cpu, from_first ? p->first : begin, end);
	snprintf(why, sizeof why, "the kernel had %llu more events of this CPU", (unsigned long long)(s->events - p->records));
	return outlet_damaged(out, why, false);
}
