/* Throttled time of control groups (private to live/), for victims without BPF.
 *
 * cpu.stat counts the throttled time of a group, summed over its pCPUs. Of a group with one victim it is this victim's;
 * among several it is divided by their demand (ran and waited), which is an estimate. If several groups above a thread
 * were throttled, the one with the most throttled time counts. */
#pragma once

#include "live/victims.h"

struct quotas;
struct quotas *quotas_new(void);
void quotas_free(struct quotas *q);
/* Reads the counters of all groups of the threads. */
void quotas_read(struct quotas *q, const char *root, const struct live_threads *t);
/* Moves the throttled time between the last two reads from stolen to throttled, since schedstat counts it as delay.
 * vcpu[i] belongs to thread i. */
void quotas_divide(const struct quotas *q, struct live_vcpu *vcpu, size_t n);
