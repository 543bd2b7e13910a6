/* Periodic timers (paper, Fig. 15). Part of query.h. */
#ifndef STEALSCOPE_QUERY_PERIODIC_TIMERS_H
#define STEALSCOPE_QUERY_PERIODIC_TIMERS_H

#include "query/query.h"

/* A guest thread (or, if no thread ran, the guest's idle task) that wakes an idle vCPU periodically. */
struct periodic {
	int32_t machine, tid;     /* tid 0: the idle task of the guest handled a timer, no thread ran */
	uint32_t name;
	uint32_t vcpu;           /* index into catalog->cpu */
	int64_t period;          /* median time between wakeups, ns */
	double regular;          /* share of these times within 10 % of the period, or of twice the period */
	uint64_t wakeups;
	int64_t busy;            /* ns that the vCPU's thread was on a pCPU for these wakeups */
	int64_t cost;            /* ns for which these wakeups kept other threads off a pCPU */
	uint64_t switches;       /* number of wakeups that kept another thread off a pCPU */
};

struct periodic_list {
	struct periodic *item;   /* largest cost first */
	size_t items;
	char **name;
	size_t names;
};

int periodic_timers_of(const struct catalog *catalog, int64_t from, int64_t to, struct periodic_list *out,
                       struct error *err);
void periodic_release(struct periodic_list *l);

#endif
