/* Where a history comes from: traces, machines, clocks, notes, and the fingerprint that tells when it is stale.
 * Kept in the history as one JSON document under the key "provenance"; and as a session file that gives the same
 * history again, under the key "session". */
#ifndef STEALSCOPE_INDEX_PROVENANCE_H
#define STEALSCOPE_INDEX_PROVENANCE_H

#include "index/index.h"

/* Keys in the history. */
#define PROVENANCE_KEY "provenance"
#define PROVENANCE_NOTES "notes"

/* The guests whose clocks are nudged: [{"guest", "nudge_ns"}]. */
struct json_object *provenance_nudges(const struct input *in);

/* Stores the provenance of a history under construction, which will be the file `path`. */
int provenance_store(struct history_builder *b, const char *path, const struct input *in, const struct loaded *l);

/* The traces and options that a history was made of, as input_resolve() would give them.  Call input_release() in any
 * case. */
int provenance_input(const struct history *h, struct input *in, struct error *err);

/* Why the history no longer fits these traces and options, in `why`; 0 = it fits, 1 = stale, -1 = error. */
int provenance_stale(const struct history *h, const struct input *in, char *why, size_t size, struct error *err);

/* What the history's cut (cut.c) says of where it comes from: its traces, clocks and notes are those of the whole. */
struct provenance_cut {
	int64_t from, to;
	bool aliases;
	/* The name that takes this one's place (both escaped), perhaps in buf, of ALIAS_TEXT bytes. */
	const char *(*name)(const void *arg, const char *text, char *buf);
	bool (*wanted)(const void *arg, const char *machine);  /* escaped; the host always is */
	const void *arg;
};
int provenance_copy(const struct history *h, struct history_builder *b, const struct provenance_cut *how,
                    struct error *err);

#endif
