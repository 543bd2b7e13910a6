/* Control groups of this machine, on cgroup v2, v1 and hybrid systems: the group of a thread, its files, and its name for
 * people.
 *
 * The kernel limits CPU time in one hierarchy only: that of v1's controller `cpu` if it is mounted, otherwise v2. Hybrid
 * systems mount v2 as well and print "0::/" for each thread, so v1's line decides. All functions take a root that replaces
 * "/", as in proc.h. */
#pragma once

#include "base/base.h"

/* The hierarchy that limits CPU time. */
struct cgroup_tree {
	char dir[64];        /* where it is mounted; "": there is none */
	char controllers[64];  /* its field in /proc/PID/cgroup: "cpu,cpuacct"; "": v2 */
	bool is_v2;
	unsigned hierarchy;  /* its number in /proc/PID/cgroup and in the kernel's events; v2: 0 */
};

void cgroup_tree_find(struct cgroup_tree *t, const char *root);
/* Returns the path of a thread's group, "/" for the root group. NULL: the thread has ended, or no hierarchy. The caller
 * frees. */
char *cgroup_tree_path(const struct cgroup_tree *t, const char *root, int32_t pid, int32_t tid);

/* CPU time that the threads of a group together may use in each period, on all CPUs. */
struct cgroup_quota { int64_t quota, period; /* ns; quota 0: no limit */ };
struct cgroup_quota cgroup_quota_read(const struct cgroup_tree *t, const char *root, const char *path);
/* Contents of cpu.stat. */
struct cgroup_stat { int64_t periods, throttled /* period count */, throttled_ns /* summed over CPUs */; };
void cgroup_stat_parse(const char *text, struct cgroup_stat *out);  /* text NULL: no counters */
bool cgroup_stat_read(const struct cgroup_tree *t, const char *root, const char *path, struct cgroup_stat *out);

/* Returns the name for people, raw; it need not be unique. The caller frees.
 *   unit        "web.service", "session-4.scope"
 *   container   its name by the runtime's state files, otherwise "docker/3f2a5c0912ab"
 *   pod         "NAMESPACE/POD/CONTAINER", by the state files of containerd, CRI-O or Docker
 *   others      the path without the first slash */
char *control_group_name(const char *root, const char *path);
