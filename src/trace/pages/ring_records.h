/* The records of a kernel's ring buffers, in the child: what the readers of trace-cmd's files and of raw pages share. */
#ifndef STEALSCOPE_TRACE_PAGES_RING_RECORDS_H
#define STEALSCOPE_TRACE_PAGES_RING_RECORDS_H

#include <event-parse.h>

#include "base/map.h"
#include "trace/pages/buffer_counters.h"
#include "trace/pages/timestamp_check.h"
#include "trace/tracecmd/tracecmd_binding.h"

struct ring {
	struct tep_handle *tep;      /* borrowed; knows the events' formats and the saved names of threads */
	struct tep_binder *binder;
	struct name_cache cache;
	struct map process;          /* TID -> process, as far as it was saved */
};

/* Binds the events by the layout that fits them best; that is the child's until it ends. */
void ring_init(struct ring *r, struct tep_handle *tep, struct meaning *m);

/* A CPU's data, as far as they were decoded. */
struct ring_cpu {
	unsigned cpu;
	struct guard guard;
	uint64_t records;
	int64_t first, last; /* ns, INT64_MIN: none yet */
	bool switched;
	const char *why;     /* it ends too early; NULL: it does not */
};

void ring_cpu_open(struct ring_cpu *p, unsigned cpu, struct outlet *out, int64_t limit);
/* A record that lies in that page and was made at `now` (ns; < 0: no possible time).  May set p->why. */
int ring_cpu_take(struct ring *r, struct ring_cpu *p, uint64_t page, struct tep_record *rec, int64_t now);
/* Until when was the CPU recorded?  All that the kernel had should have come: that is what it said (s may be NULL). */
int ring_cpu_cover(const struct ring_cpu *p, const struct cpu_stat *s, int64_t begin, int64_t end, struct outlet *out);

#endif
