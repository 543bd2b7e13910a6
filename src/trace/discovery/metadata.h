/* The metadata members that identify machine, trace and clock. Event classes are read elsewhere, by the decoders. */
#pragma once

#include "base/base.h"

struct metadata {  /* "": not recorded */
	char vm_id[128];     /* identity of the VM at its provider; "": not recorded */
	bool guest_only;     /* recorded by `record --guest-only` */
	bool is_monotonic;   /* the clock is CLOCK_MONOTONIC */
	int64_t realtime_error;  /* error of the times against CLOCK_REALTIME at the start, ns; 0: not recorded */
	char hostname[256], domain[16], tracer[128], uuid[40], clock_uuid[40], clock_offset[48];
};

/* Returns true if two traces come from the same machine and use the same clock. */
bool metadata_same_machine(const struct metadata *a, const struct metadata *b);
void metadata_tracer(struct metadata *m, const char *name, const char *major, const char *minor, const char *patch);

/* Scans CTF 1.8 metadata. Returns false if it has another version. */
bool metadata_scan(const char *text, struct metadata *m);
/* Scans CTF 2 metadata (JSON). Stops without an error at the first fragment that is not valid. */
void metadata_fragments(const char *text, size_t len, struct metadata *m);
/* Reads the metadata of the trace in a directory. Returns 0 or -1. */
int metadata_read(const char *dir, struct metadata *m, struct error *err);
/* Returns the text of the metadata without its packet headers, terminated by a zero byte, malloc'ed. Returns NULL, with
 * *err set, on failure. */
char *metadata_text(const char *dir, size_t *len, struct error *err);
