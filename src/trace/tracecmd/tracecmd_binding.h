/* Binds a layout to the events of ftrace; resolves the fields once per event id. For use by one thread. */
#pragma once

#include <event-parse.h>

#include "trace/layout/layout.h"
#include "trace/string_table.h"

struct tep_binder;

/* The result is never freed: the child process reads one file and exits. */
struct tep_binder *tep_binder_new(struct tep_handle *tep, const struct layout *layout, struct string_cache *names);

/* The CPU's counters, read at an event; EVENT_ABSENT: not read. */
struct tep_counters { int64_t instructions, cycles; };
/* Adds the fields perf_cpu_instructions and perf_cpu_cycles to all events. *counters contains their values while an event
 * is bound. Call it before the first event. */
void tep_binder_set_counters(struct tep_binder *b, const struct tep_counters *counters);

/* Fills *ev except the time. Returns false if the record is too short to be an event. */
bool tep_binder_event(struct tep_binder *b, struct tep_record *rec, struct event *ev);

/* Makes the event with the counters that were read at the event *ev, which precedes it. Returns false if there is none. */
bool tep_binder_counters(struct tep_binder *b, struct tep_record *rec, const struct event *ev, struct event *counters);

/* Returns how well the layout matches the events described in the file. Sets *enabled_events to the bits of all
 * described events, see rules_score(). */
size_t tep_binder_score(struct tep_handle *tep, const struct layout *layout, unsigned *enabled_events);
