/* Events as text: rows that index/raw_events.c reads from a trace, for reports and the viewer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One event. Texts are not escaped. */
struct event_text {
	int64_t t, own;          /* time on the host's clock, and on the clock of the event's own machine, ns */
	const char *machine;  /* name in the history; "host" for the host */
	unsigned cpu;
	int32_t tid;             /* TID of the current thread; -1: not recorded */
	const char *comm;        /* name of the current thread; "": not recorded */
	const char *event;       /* name in the layout, "sched_switch"; the tracer's name if the layout does not list the
	                          * event */
	const char *fields;      /* fields named in the layout: "prev_tid=12 next_tid=0" */
};

/* Events in order of time; owns their texts. */
struct event_list {
	struct event_text *event;
	size_t len, cap;
	bool more;               /* true: the list was cut, later events exist */
};

void event_list_add(struct event_list *l, const struct event_text *ev);
void event_list_release(struct event_list *l);
