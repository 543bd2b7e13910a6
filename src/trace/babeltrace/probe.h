/* Probes whether libbabeltrace2 can open a trace, in a child process: the library may abort or hang. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_PROBE_H
#define STEALSCOPE_TRACE_BABELTRACE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

struct babeltrace_probe {
	bool opens;
	char **port;  /* names of the ports if the trace opens */
	size_t ports, ports_cap;
	struct error err;  /* reason if the trace does not open */
};

/* Probes the trace in the directories dir[n]. bytes: approximate size of the trace, for the memory limit. Forks: no
 * other thread may run. */
void babeltrace_probe_run(struct babeltrace_probe *t, struct event_mapping *mapping, char *const *dir, size_t n,
                          uint64_t bytes);
void babeltrace_probe_release(struct babeltrace_probe *t);

#endif
