/* Reads the topology of this host and the memory of its VMs by NUMA node from /sys and /proc. */
#pragma once

#include <stdint.h>

#include "base/topology.h"

/* Reads the CPUs that are online. Facts that the kernel does not show are unknown. Release with topology_release(). */
void topology_facts_read(struct topology *t, const char *root);
/* Returns true if the thread has a cookie of core scheduling. */
bool topology_facts_has_cookie(int32_t tid);
/* Adds the process's memory, from /proc/PID/numa_maps; nothing on machines with one NUMA node. */
void topology_facts_read_memory(struct topology *t, const char *root, int32_t pid, const char *vm);
