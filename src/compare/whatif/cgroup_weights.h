/* Cgroups that share a CPU by weight. Private to compare/. */
#pragma once

#include "base/base.h"

#define GROUPS_MAX 4096

struct host_demand;
struct replay_task;

struct replay_group {
	int64_t id;              /* number in the history */
	int32_t parent;          /* index into host_demand.group; -1: top level */
	double weight;           /* cpu.shares / 1024; 1 = a thread of nice 0 */
	double runnable_weight;  /* sum of the weights of the runnable tasks below the group, on all CPUs */
};

/* Parses a thread's cgroup path, "1:1024/4:2048" (number:shares, outermost first), and adds unknown groups. Returns the
 * index of the innermost group; -1: syntax error, or more than GROUPS_MAX groups. */
int32_t parse_groups(struct host_demand *d, const char *text);
/* Returns the weight of a task that gives it the same share of its CPU without groups. task[n]: all runnable tasks of
 * that CPU, with t. On each CPU a group has the part of its weight that corresponds to the part of its load there. */
double groups_weight(const struct host_demand *d, const struct replay_task *t, const struct replay_task *const *task,
                     size_t n);
/* Updates the load of the task's groups. sign: 1 = the task becomes runnable, -1 = it stops being runnable. */
void groups_update_load(struct host_demand *d, const struct replay_task *t, int sign);
/* Sets the threads' weight: of the outermost group that contains only these threads, or of each thread that has no
 * such group. */
void groups_set_weight(struct host_demand *d, const uint32_t *thread, size_t threads, double weight);
