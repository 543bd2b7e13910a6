/* Control groups that share a CPU by weight.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_CGROUP_WEIGHTS_H
#define STEALSCOPE_COMPARE_WHATIF_CGROUP_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#define GROUPS_MOST 4096

struct wants;
struct replay_task;

struct replay_group {
	int64_t id;              /* of the history */
	int32_t parent;          /* in wants->group; -1: the root */
	double weight;           /* 1: that of a thread of nice 0 */
	double wants_cpu;        /* the weights of all below it that can run now, on all CPUs */
};

/* The innermost group of a thread whose history says "1:1024/4:2048": from the outside, a number for each group and its
 * shares.  -1: the text says no such thing. */
int32_t groups_of(struct wants *w, const char *text);
/* The weight of a task among all that can run on its CPU (task[n], itself included) as if there were no groups: as much
 * of the CPU as groups give it.  A group has on each CPU as much of its weight as it has of its own load there. */
double groups_weight(const struct wants *w, const struct replay_task *t, const struct replay_task *const *task, size_t n);
/* A task can run from now on (1), or no longer (-1). */
void groups_load(struct wants *w, const struct replay_task *t, int sign);
/* These threads have that weight together: the outermost group which is theirs alone; those in none of their own have it
 * each. */
void groups_set_weight(struct wants *w, const uint32_t *thread, size_t threads, double weight);

#endif
