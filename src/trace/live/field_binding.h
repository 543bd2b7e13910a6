/* Binds a layout to the event classes of a trace in libbabeltrace2: resolves the names of fields once per event class,
 * never per event. For use by one thread. */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "trace/layout/layout.h"
#include "trace/string_table.h"
#include "trace/trace.h"

struct binder;

struct binder *binder_new(const struct layout *layout, struct string_cache *names);
void binder_free(struct binder *b);  /* b may be NULL */

/* Fills *ev except its time. cpu: the packet's CPU, used if the event has no CPU field. Returns true if a second event
 * precedes it: *counters, with the time of *ev. */
bool binder_event(struct binder *b, const bt_event *event, uint16_t cpu, struct event *ev, struct event *counters);

/* Returns the CPU in a packet's context; -1: none. */
int64_t binder_packet_cpu(struct binder *b, const bt_packet *packet);

/* Returns how well the layout matches the trace's event classes: the sum of rules_score(), which also sets
 * *enabled_events. */
size_t binder_score(const struct layout *layout, const bt_trace_class *tc, unsigned *enabled_events);
