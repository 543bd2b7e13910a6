#include "trace/pages/ring_records.h"

#include <stdio.h>

#define SELECTED_EVENTS_MAX 512  /* Most event formats in a recording of selected events, which are enabled. A
                        * recording with more formats contains those of all events of the kernel, enabled or not. */

void ring_init(struct ring *r, struct tep_handle *tep, struct event_mapping *m)
{
	size_t best = 0, best_score = 0;
	unsigned enabled_events, best_enabled = 0;
	r->tep = tep;
	string_cache_init(&r->cache, m->names);
	for (size_t i = 0; i < m->layouts; i++) {
		size_t score = tep_binder_score(tep, m->layout[i], &enabled_events);
		if (score && score >= best_score) {  /* of equal ones the last: ftrace, which others have names in common with */
			best = i;
			best_score = score;
			best_enabled = enabled_events;
		}
	}
	if (tep_get_events_count(tep) <= SELECTED_EVENTS_MAX)
		atomic_store(&m->enabled_events, best_enabled);
	atomic_store(&m->chosen, best_score ? best + 1 : 0);
	r->binder = tep_binder_new(tep, m->layout[best], &r->cache);
}

void ring_cpu_open(struct ring_cpu *p, unsigned cpu, struct event_sink *out, int64_t limit)
{
	*p = (struct ring_cpu){ .cpu = cpu, .first = INT64_MIN, .last = INT64_MIN };
	timestamp_check_open(&p->timestamp_check, out, limit);
}

/* Adds a loss before this record. The loss starts 1 ns after the previous event, because the state that this event shows
 * is valid at its own time. */
static int put_lost(struct ring_cpu *p, uint64_t page, const struct tep_record *rec, int64_t now)
{
	const int64_t begin = p->last == INT64_MIN || p->last >= now ? now : p->last + 1;
	return timestamp_check_put(&p->timestamp_check, page, &(struct event){ .ts = begin,
		.kind = EV_LOST, .cpu = (uint16_t)rec->cpu, .tid = -1, .pid = -1,
		.lost = { now, rec->missed_events > 0 ? rec->missed_events : EVENT_ABSENT } });
}

void ring_read_lines(struct ring *r, bool names, char *text)
{
	for (char *line; text && (line = strsep(&text, "\n"));) {
		char *value;
		const long tid = strtol(line, &value, 10);
		if (value == line || *value != ' ' || tid <= 0 || tid > INT32_MAX)
			continue;
		if (names)
			tep_register_comm(r->tep, value + 1, (int)tid);
		else
			*map_put(&r->process_by_tid, (uint64_t)tid, NULL) = (uint64_t)strtol(value + 1, NULL, 10) & INT32_MAX;
	}
}

void ring_name_thread(struct ring *r, struct event *ev, bool *has_switch)
{
	*has_switch |= ev->kind == EV_SWITCH;
	if (*has_switch || ev->comm || ev->tid <= 0)
		return;
	const char *name = tep_data_comm_from_pid(r->tep, ev->tid);
	if (name && *name && *name != '<')
		ev->comm = string_cache_put(&r->cache, name, strlen(name));
}

static void set_process(const struct ring *r, struct event *ev)
{
	const uint64_t *process = ev->tid > 0 && ev->pid < 0 ? map_find(&r->process_by_tid, (uint64_t)ev->tid) : NULL;
	if (process)
		ev->pid = (int32_t)*process;
}

int ring_cpu_add_record(struct ring *r, struct ring_cpu *p, uint64_t page, struct tep_record *rec, int64_t now)
{
	struct event ev;
	if (now < 0 || rec->cpu != (int)p->cpu)
		p->end_reason = "event with an impossible time";
	if (p->end_reason)
		return 0;
	p->records++;
	if (rec->missed_events && put_lost(p, page, rec, now))
		return -1;
	if (!tep_binder_event(r->binder, rec, &ev))
		return 0;
	ev.ts = p->last = now;
	p->first = p->first == INT64_MIN ? now : p->first;
	ring_name_thread(r, &ev, &p->has_switch);
	set_process(r, &ev);
	return timestamp_check_put(&p->timestamp_check, page, &ev);
}

int ring_cpu_add_coverage(const struct ring_cpu *p, const struct cpu_stat *s, int64_t begin, int64_t end,
                          struct event_sink *out)
{
	char why[80];
	const bool from_first = s && s->lost && p->first != INT64_MIN;
	if (end == INT64_MAX || !s)
		return 0;
	if (p->records >= s->events)
		return event_sink_add_coverage(out, (uint16_t)p->cpu, from_first ? p->first : begin, end);
	snprintf(why, sizeof why, "events missing according to the kernel's counters: %llu",
	         (unsigned long long)(s->events - p->records));
	return event_sink_report_damage(out, why, false);
}
