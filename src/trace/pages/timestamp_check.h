/* Filter between the pages of a CPU's ring buffer and the event sink: drops events with impossible times.
 *
 * Within a buffer, times never decrease, so one damaged timestamp in the future would raise the times of all later
 * events. The filter holds each page until the next one begins. Events of the held page that are later than the start of
 * the next page are damaged, and so is a page that begins before the events of the previous pages. The filter drops and
 * reports the damaged part; the CPU's state is unknown during that time. */
#pragma once

#include "trace/reader.h"

struct timestamp_check {
	struct event_sink *out;
	int64_t limit;          /* latest possible time, ns; INT64_MAX: unknown */
	struct event *pending;  /* events of the current page */
	size_t len, cap;
	uint64_t page;
	int64_t last_passed;        /* time of the last event passed on, ns; INT64_MIN: none */
};

void timestamp_check_open(struct timestamp_check *g, struct event_sink *out, int64_t limit);
/* Adds an event of page number `page`. Pages must be added in order. Returns 0 or -1. */
int timestamp_check_put(struct timestamp_check *g, uint64_t page, const struct event *ev);
/* Passes the last page on. Releases the filter, also on failure. Returns 0 or -1. */
int timestamp_check_close(struct timestamp_check *g);
