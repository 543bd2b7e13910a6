/* Requests as intervals of their vCPUs' progress, and their latency in a replay. Private to compare/. */
#pragma once

#include "compare/whatif/scheduler_replay.h"

struct replayed_request {
	char kind[TARGET_TEXT];
	int64_t start, latency;
	int64_t background;      /* part of the latency that may depend on time instead of work, ns: interrupt handlers,
	                          * hypervisor, and threads of the machine with little run time */
	struct replay_task *start_task, *end_task;  /* vCPU tasks on which the request starts and ends */
	int64_t work_at_start, work_at_end;  /* CPU time consumed by start_task at the start, and by end_task at the end, ns */
};

struct replayed_list {
	struct replayed_request *item;
	size_t len, cap;
};

/* Collects the complete requests of the window with servers that run in VMs of the host, and flags the sleeps within
 * them. Notes skipped requests. */
int replayed_read(struct replayed_list *l, const struct host_demand *d, struct notes *notes, struct error *err);
void replayed_release(struct replayed_list *l);
/* Returns the latency in the last replay, ns; NAN: the request does not end. `by_clock`: the request arrives at its
 * recorded time, or when its vCPU next runs, even if the vCPU has not finished earlier work. */
double replayed_latency(const struct replayed_request *s, bool by_clock);
/* Returns the time at which the request ends in the last replay; INT64_MIN: never. */
int64_t replayed_end_time(const struct replayed_request *s);
