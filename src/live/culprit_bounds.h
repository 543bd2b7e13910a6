/* Culprits without BPF (private to live/): lower bounds from counters of /proc.
 *
 * A victim that stayed on one pCPU waited D, ran R, and the pCPU was idle for I of a period P. A task that stayed on the
 * same pCPU ran T. Both D (without the waits for an idle pCPU to wake up) and T lie within P - R - I, so they overlap for
 * D + T - (P - R - I) at least. The bound is exact if victims wait whenever the task runs, and 0 or less on a pCPU that
 * many tasks share. Migrations are counted in /proc/PID/sched; without this file only pinned tasks qualify.
 *
 * Cost: two small files for each task of the machine, and one more for each task that ran. */
#pragma once

#include "live/source.h"
#include "live/victims.h"

struct culprit_bounds;
struct culprit_bounds *culprit_bounds_new(void);
void culprit_bounds_free(struct culprit_bounds *b);
/* Reads the counters of all tasks. began: when the caller began to read the victims, CLOCK_MONOTONIC ns. */
void culprit_bounds_scan(struct culprit_bounds *b, const char *root, int64_t began);
/* Returns the pairs between the last two scans; the caller frees them. A victim is an index into t and s->vcpu below
 * LIVE_VICTIMS; a culprit is CULPRIT_VICTIM + such an index, a TGID, or CULPRIT_UNKNOWN for the remainder. The pairs of a
 * victim add up to its stolen time. s: period, vcpu with their times, and idle times of the pCPUs. tick: resolution of
 * the idle times, ns. */
struct bpf_pair *culprit_bounds_pairs(const struct culprit_bounds *b, const struct live_threads *t,
                                      const struct live_sample *s, int64_t tick, size_t *n);
