/* Provenance of a history: its traces, machines, clocks and notes, and a fingerprint that shows whether the history is
 * stale. Stored in the history as one JSON document (key "provenance"), and as an equivalent session file (key
 * "session"). */
#pragma once

#include "index/index.h"

/* Keys of the metadata in the history. */
#define PROVENANCE_KEY "provenance"
#define PROVENANCE_NOTES "notes"

/* Returns the guests with manual clock offsets: [{"guest", "nudge_ns"}]. */
struct json_object *provenance_manual_offsets(const struct input *in);

/* Stores the provenance in a history under construction, which will be the file `path`. Returns 0 or -1. */
int provenance_store(struct history_builder *b, const char *path, const struct input *in, const struct loaded *l);

/* Restores the traces and options of a history, as input_resolve() would set them. Returns 0 or -1. Call input_release()
 * in both cases. */
int provenance_input(const struct history *h, struct input *in, struct error *err);

/* Compares the history with these traces and options. Returns 0: current; 1: stale, for the reason in `why`; -1:
 * failure. */
int provenance_stale(const struct history *h, const struct input *in, char *why, size_t size, struct error *err);

/* Filter for the provenance of a cut (cut.c): selects traces, clocks and notes of the whole history. */
struct provenance_cut {
	int64_t from, to;
	bool aliases;
	/* Returns the alias or the name itself; both are escaped. buf: ALIAS_TEXT bytes, which the result may use. */
	const char *(*name)(const void *arg, const char *text, char *buf);
	bool (*wanted)(const void *arg, const char *machine);  /* returns true for selected machines; machine: escaped name;
	                                                        * not called for the host, which is always selected */
	const void *arg;
};
int provenance_copy(const struct history *h, struct history_builder *b, const struct provenance_cut *how,
                    struct error *err);
