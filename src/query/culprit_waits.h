/* The longest wait of a target, and the wait in which a given culprit took most. A part of query/query.h. */
#ifndef STEALSCOPE_QUERY_CULPRIT_WAITS_H
#define STEALSCOPE_QUERY_CULPRIT_WAITS_H

#include "query/query.h"

struct culprit_waits {
	struct gap longest;        /* longest gap; valid if found */
	struct actor longest_by;   /* its main culprit, as in struct top_culprit; FLOW_RUNNING: none */
	char longest_name[128];    /* raw name of that culprit; "": none */
	struct gap taken;          /* gap in which the given culprit took most; valid if taken_ns > 0 */
	int64_t taken_ns;          /* ns of `taken` that the culprit took */
	bool found;
};

/* Reads the gaps of a machine, vCPU or thread within [from, to]. culprit, name: a top culprit of the target and its raw
 * name. Calls `stop` now and then, and returns 1 if it returns true. Returns 0, or -1 on error. */
int culprit_waits_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to,
                     const struct actor *culprit, const char *name, bool (*stop)(void *arg), void *arg,
                     struct culprit_waits *out, struct error *err);

#endif
