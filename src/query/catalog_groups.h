/* Control groups of the host, or of the only machine. Then a group with threads is a machine of kind MACHINE_CONTAINER. */
#ifndef STEALSCOPE_QUERY_CATALOG_GROUPS_H
#define STEALSCOPE_QUERY_CATALOG_GROUPS_H

#include <stdint.h>

#include "base/error.h"

/* Texts are raw and borrowed from the history. */
struct catalog_group {
	const char *path, *name, *cpus;         /* name: for people; cpus: its CPU set, "": unknown */
	int64_t quota_ns, period_ns;            /* quota_ns 0: no limit */
	int64_t periods, throttled, throttled_ns;  /* by cpu.stat, see base/control_groups.h; -1: unknown */
};

struct catalog;
struct target;

/* Finds the last value of an attribute that is not null; HISTORY_NULL: none. Returns 0 or -1. */
int attribute_last_value(const struct catalog *catalog, uint32_t attr, int64_t *value, struct error *err);
/* Finds a process ("process:java", "process:14770", "Debian/process:init": all processes of that name), or a control group
 * with other groups in it, the sum of which it is. Returns 1 and the target; 0: the text is neither, but may be a thread
 * of one ("process:java/151"), which catalog_find_targets() finds then; -1 with *err. May open the catalog again: other
 * targets and actors become invalid. O(threads). */
int catalog_select(struct catalog *catalog, const char *text, struct target *out, struct error *err);

#endif
