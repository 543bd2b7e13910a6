/* The folder of a machine in a recording of stealscope-record(1): raw pages of the kernel's ring buffers, as tracefs gives
 * them, with what explains them.  Decoded through libtraceevent.
 *
 * Times: the kernel counts in cycles of the TSC or in ns; about.yaml says what it counted and what time it was when the
 * recording began, which makes them ns since the epoch.  What tracefs writes into the files is trusted as little as any
 * trace: pages.c checks what it reads, pages_child.c each page before libtraceevent sees it. */
#ifndef STEALSCOPE_TRACE_PAGES_PAGES_H
#define STEALSCOPE_TRACE_PAGES_PAGES_H

#include "trace/pages/buffer_counters.h"
#include "trace/reader.h"

struct pages {
	char *path;
	char hostname[256];
	struct trace_scale scale;
	/* ns: when tracing was turned on and off (INT64_MAX: not said); of buffers that turned over, begin is since when all
	 * is kept: what is older counts for nothing. */
	int64_t begin, end;
	int64_t kept;            /* ns of the buffers, which turned over; 0: they did not */
	uint64_t lost;           /* as the recorder counted */
	struct pages_cpu {
		unsigned cpu;
		uint64_t bytes;      /* of its pages */
		bool has_stat;
		struct cpu_stat stat;
	} *cpu;                  /* by number */
	size_t cpus, cpus_cap;
	/* From header_page: where a page's length and data stand in it, bytes. */
	unsigned page, length_at, length_size, data_at;
};

/* Refuses a folder that holds no such recording, or says impossible things. */
struct pages *pages_read(const char *path, struct error *err);
void pages_free(struct pages *p);  /* NULL is allowed */

/* A whole file below the folder, with a NUL behind it, for the caller to free; NULL in *text where there is none.
 * -1: there is, and it cannot be read or is too long. */
int pages_text(const struct pages *p, const char *name, char **text, size_t *len, struct error *err);

extern const struct trace_reader pages_reader;

/* Those of its operations that need libtraceevent: pages_child.c, or pages_none.c in a build without it. */
enum claim pages_claims(const char *name, const unsigned char *head, size_t len);
void *pages_enter(struct source *s, struct error *err);
int pages_decode(void *entered, const struct stretch *p, struct outlet *out);

#endif
