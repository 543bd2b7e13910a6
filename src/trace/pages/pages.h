/* Reader of a machine's directory in a recording of stealscope-record(1): raw pages of the kernel's ring buffers from
 * tracefs, and files that describe them. Decodes with libtraceevent.
 *
 * Times: the kernel records TSC cycles or ns. about.yaml contains the clock and the real time at the start of the
 * recording, from which ns since the epoch are computed. The files are not trusted: pages.c checks the descriptions, and
 * pages_child.c checks each page before libtraceevent reads it.
 *
 * Copies of tracefs that others made are read, too: events/ (or formats/, as SchedViz names it) with header_page and the
 * formats, and beside it each CPU's pages, see plain_formats. Their clock is taken for one in ns. */
#pragma once

#include "trace/pages/buffer_counters.h"
#include "trace/reader.h"

/* A page's layout: its size; offset and size of the length field and offset of the data in it, bytes. */
struct page_header { unsigned page, length_offset, length_size, data_offset; };
/* Parses the kernel's file header_page. Returns false if the values are impossible. */
bool page_header_parse(const char *text, struct page_header *p);

struct page_clock { int64_t count, ns; };  /* 0: not recorded */

struct pages {
	char *path;
	char *cpu_format;                /* path of a CPU's pages, with %u for its number */
	const char *formats;             /* directory of the events' formats, relative to path */
	bool is_plain;                   /* files that somebody copied from tracefs, without about.yaml */
	char hostname[256], vm_id[128];  /* vm_id: identity of the VM at its provider; "": none */
	bool guest_only;                 /* recorded by `record --guest-only` */
	struct clock_scale scale;
	bool counts_tsc;                 /* the kernel recorded TSC cycles */
	struct page_clock ended;         /* the recording's end */
	int64_t realtime_error;          /* error of the real time at the start, ns; 0: not recorded */
	/* Times at which tracing was turned on and off, ns; end: INT64_MAX: not recorded. In overwrite mode, begin is the
	 * start of the time for which all events are guaranteed; older events are dropped. */
	int64_t begin, end;
	int64_t overwrite_ns;            /* time before `end` for which the buffers are guaranteed to have all events, ns; 0:
	                                  * not in overwrite mode */
	uint64_t lost;         /* lost event count, as counted by the recorder */
	struct pages_cpu {
		unsigned cpu;
		uint64_t bytes;      /* size of the CPU's pages, bytes */
		bool has_stat;
		struct cpu_stat stat;
	} *cpu;                  /* sorted by number */
	size_t cpus, cpus_cap;
	struct page_header header;
};

/* Reads the descriptions. Returns NULL, with *err set, if the directory contains no such recording, or impossible
 * values. */
struct pages *pages_read(const char *path, struct error *err);
void pages_free(struct pages *p);  /* p may be NULL */

/* Returns the path of a CPU's pages, malloc'ed. */
char *pages_cpu_path(const struct pages *p, unsigned cpu);

/* Reads a file of the directory into *text, terminated by a NUL; the caller frees it. NULL: there is no such file.
 * Returns -1 if the file exists but cannot be read or is too long, otherwise 0. */
int pages_text(const struct pages *p, const char *name, char **text, size_t *len, struct error *err);

extern const struct trace_reader pages_reader;

/* Operations that need libtraceevent: pages_child.c, or traceevent_none.c in a build without it. */
enum claim pages_claims(const char *name, const unsigned char *head, size_t len);
void *pages_enter(struct source *s, struct error *err);
int pages_decode(void *state, const struct stream_part *p, struct event_sink *out);
