/* A layout bound to the events of a trace-cmd file: fields are looked up once per event id.  For one thread. */
#ifndef STEALSCOPE_TRACE_TRACECMD_TRACECMD_BINDING_H
#define STEALSCOPE_TRACE_TRACECMD_TRACECMD_BINDING_H

#include <event-parse.h>

#include "trace/layout/layout.h"
#include "trace/string_table.h"

struct tep_binder;

/* Lives as long as the process, which is a child that reads one file. */
struct tep_binder *tep_binder_new(struct tep_handle *tep, const struct layout *layout, struct name_cache *names);

/* Fills *ev but for its time; false: the record is no event. */
bool tep_binder_event(struct tep_binder *b, struct tep_record *rec, struct event *ev);

/* How well the layout fits the events that the file describes; *asked: of all; see rules_score(). */
size_t tep_binder_score(struct tep_handle *tep, const struct layout *layout, unsigned *asked);

#endif
