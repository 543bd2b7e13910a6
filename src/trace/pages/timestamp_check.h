/* A guard between the pages of a CPU's ring buffer and the outlet: times that cannot be.
 *
 * In a buffer times never go back, so one damaged time stamp that lies ahead would push all later events to it.  Each page
 * is held until the next one begins: what lies behind that beginning is damaged, and so is a page that begins before what
 * came before it.  It is dropped, and said; what the CPU did meanwhile is unknown. */
#ifndef STEALSCOPE_TRACE_PAGES_TIMESTAMP_CHECK_H
#define STEALSCOPE_TRACE_PAGES_TIMESTAMP_CHECK_H

#include "trace/reader.h"

struct guard {
	struct outlet *out;
	int64_t limit;       /* ns: no event can be later; INT64_MAX: nobody knows */
	struct event *held;  /* of the page */
	size_t len, cap;
	uint64_t page;
	int64_t good;        /* ns: the last event that was put, INT64_MIN: none */
};

void guard_open(struct guard *g, struct outlet *out, int64_t limit);
/* An event of that page of the buffer: pages come in their order. */
int guard_put(struct guard *g, uint64_t page, const struct event *ev);
/* What is held, when no more comes.  The guard is released in any case. */
int guard_close(struct guard *g);

#endif
