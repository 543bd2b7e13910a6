/* A look at a trace's metadata: which machine and which trace it is.  What events mean is for its reader. */
#ifndef STEALSCOPE_TRACE_DISCOVERY_METADATA_H
#define STEALSCOPE_TRACE_DISCOVERY_METADATA_H

#include <stdbool.h>

#include "base/error.h"

struct metadata {  /* "" where it is not said */
	char hostname[256], domain[16], tracer[128], uuid[40], clock_uuid[40], clock_offset[48];
};

/* Do two traces come from one machine, with one clock? */
bool metadata_same_machine(const struct metadata *a, const struct metadata *b);
void metadata_tracer(struct metadata *m, const char *name, const char *major, const char *minor, const char *patch);

/* Of CTF 1.8: of the text, false: it says that it is of another version; of the folder of a trace. */
bool metadata_scan(const char *text, struct metadata *m);
/* Of CTF 2 (json): what can be understood of it. */
void metadata_fragments(const char *text, size_t len, struct metadata *m);
int metadata_read(const char *dir, struct metadata *m, struct error *err);
/* The text itself, out of its packets, a zero byte behind it; malloc'ed.  NULL: as metadata_read() fails. */
char *metadata_text(const char *dir, size_t *len, struct error *err);

#endif
