/* Control groups of the host, or of the only machine. Then a group with threads is a machine of kind MACHINE_CONTAINER. */
#ifndef STEALSCOPE_QUERY_CATALOG_GROUPS_H
#define STEALSCOPE_QUERY_CATALOG_GROUPS_H

#include <stdint.h>

/* Texts are raw and borrowed from the history. */
struct catalog_group {
	const char *path, *name, *cpus;         /* name: for people; cpus: its CPU set, "": unknown */
	int64_t quota_ns, period_ns;            /* quota_ns 0: no limit */
	int64_t periods, throttled, throttled_ns;  /* by cpu.stat, see base/control_groups.h; -1: unknown */
};

#endif
