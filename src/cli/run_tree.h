/* Waits of a process and its descendants by polling /proc, for `stealscope run` without privileges. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct run_tree_sums {
	int64_t ran, waited;       /* of the threads that were seen, up to the last poll in which they lived, ns */
	int64_t throttled;         /* of the command's control groups, by cpu.stat, ns */
	double host;               /* share of busy time of this machine's CPUs that its host took */
	int64_t longest, longest_at;  /* most waiting time of one thread between two polls, at the second one */
};

struct run_tree;
struct run_tree *run_tree_new(pid_t root);
/* Cost: one small file for each process of the machine, and one for each thread of the tree. */
void run_tree_poll(struct run_tree *t);
void run_tree_close(struct run_tree *t, struct run_tree_sums *sums);
