/* Parts of scenarios that scenario.c, groups.c, tenant.c and victims.c share. */
#pragma once

#include "sim.h"

struct plan {
	const char *name;
	struct machine *below; /* guest that runs the VM; NULL: the host */
	unsigned vcpus;
	uint64_t affinity;     /* CPUs that its vCPUs may use; 0: all */
	int64_t offset, ppb;   /* offset (ns) and drift of its clock against the clock of the machine below */
	struct quota_group *group;
	int64_t from, to;      /* traced interval, ns after the beginning; 0: always */
	bool changes;          /* hotplug: its CPUs, and perhaps the VM itself, come and go */
	unsigned spare;        /* CPUs that may be plugged */
	int64_t born, dies;    /* ns after the beginning; 0: exists from the beginning, or to the end */
	bool idle;             /* sleeps most of the time */
};

struct machine *host_add(struct sim *s, unsigned pcpus);
struct machine *guest_add(struct sim *s, const struct plan *p);
struct quota_group *quota_add(struct sim *s, int64_t quota, int64_t period, int64_t first);
int scenario_groups(struct sim *s);
int scenario_victims(struct sim *s);
void random_threads(struct sim *s, struct machine *m);
