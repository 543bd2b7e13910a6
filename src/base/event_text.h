/* Events as people read them: what snippets of traces are told in (index/index.h), reported (report/report.h) and shown. */
#ifndef STEALSCOPE_BASE_EVENT_TEXT_H
#define STEALSCOPE_BASE_EVENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts are as the traces have them: to be escaped. */
struct event_text {
	int64_t t, own;       /* ns: on the host's clock; as its machine's clock had it */
	const char *machine;  /* as the history calls it: "host" */
	unsigned cpu;
	int32_t tid;          /* that was current; -1: not recorded */
	const char *comm;     /* its name, "": not recorded */
	const char *event;    /* "sched_switch": what it is in a layout, or what its tracer calls it */
	const char *fields;   /* "prev_tid=12 next_tid=0": those that the layout names */
};

/* Some of them, in the order of time, with texts of their own. */
struct event_list {
	struct event_text *event;
	size_t len, cap;
	bool more;            /* there were more, behind them */
};

void event_list_add(struct event_list *l, const struct event_text *ev);
void event_list_release(struct event_list *l);

#endif
