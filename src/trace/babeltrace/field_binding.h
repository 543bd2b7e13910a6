/* A layout bound to the event classes of one trace: names are looked up once per event class, never per event.
 * One binder serves one thread. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_FIELD_BINDING_H
#define STEALSCOPE_TRACE_BABELTRACE_FIELD_BINDING_H

#include <babeltrace2/babeltrace.h>

#include "trace/layout/layout.h"
#include "trace/string_table.h"
#include "trace/trace.h"

struct binder;

struct binder *binder_new(const struct layout *layout, struct name_cache *names);
void binder_free(struct binder *b);  /* NULL is allowed */

/* Fills *ev but for its time; cpu is that of the packet, for traces whose events do not say it. */
void binder_event(struct binder *b, const bt_event *event, uint16_t cpu, struct event *ev);

/* The CPU that the context of a packet names, or -1. */
int64_t binder_packet_cpu(struct binder *b, const bt_packet *packet);

/* How well the layout fits the event classes of the trace: a point for each rule that can be bound, 100 for switches.
 * *asked: of all of them; see rules_score(). */
size_t binder_score(const struct layout *layout, const bt_trace_class *tc, unsigned *asked);

#endif
