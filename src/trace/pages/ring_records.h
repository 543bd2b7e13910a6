/* Records of the kernel's ring buffers. Shared by the child processes of the readers of trace-cmd's files, of raw pages and
 * of perf's files. */
#pragma once

#include <event-parse.h>

#include "base/map.h"
#include "trace/pages/buffer_counters.h"
#include "trace/pages/timestamp_check.h"
#include "trace/tracecmd/tracecmd_binding.h"

struct ring {
	struct tep_handle *tep;      /* borrowed; contains the formats of the events and the saved names of threads */
	struct tep_binder *binder;
	struct string_cache cache;
	struct map process_by_tid;          /* TID -> process id, from the saved table; incomplete */
};

/* Binds the events to the layout that matches best. The result is never freed, because the child process exits. */
void ring_init(struct ring *r, struct tep_handle *tep, struct event_mapping *m);

/* Saves the names of threads, or their processes: lines "TID NAME" or "TID PROCESS", which are changed. NULL: none. */
void ring_read_lines(struct ring *r, bool names, char *text);
/* Sets the name of the current thread from the saved table, until the first switch on the CPU: switches contain the names.
 * (After that, the table would be wrong for threads renamed during the recording.) */
void ring_name_thread(struct ring *r, struct event *ev, bool *has_switch);

/* Decoding state of one CPU. */
struct ring_cpu {
	unsigned cpu;
	struct timestamp_check timestamp_check;
	uint64_t records;
	int64_t first, last; /* time of the first and of the last event, ns; INT64_MIN: none yet */
	bool has_switch;
	const char *end_reason;  /* reason for a premature end; NULL: none */
};

void ring_cpu_open(struct ring_cpu *p, unsigned cpu, struct event_sink *out, int64_t limit);
/* Adds a record of page number `page` with the time `now` (ns; < 0: impossible). Sets p->why if the record is not valid.
 * Returns 0 or -1. */
int ring_cpu_add_record(struct ring *r, struct ring_cpu *p, uint64_t page, struct tep_record *rec, int64_t now);
/* Reports the recorded interval of the CPU. If the kernel's counters (s may be NULL) show more events than were decoded,
 * reports damage instead. Returns 0 or -1. */
int ring_cpu_add_coverage(const struct ring_cpu *p, const struct cpu_stat *s, int64_t begin, int64_t end,
                          struct event_sink *out);
