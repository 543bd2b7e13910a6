/* Members of kernel structures that the BPF programs use. CO-RE finds their place in the running kernel. */
#pragma once

struct task_struct;
struct rq { u64 clock; int cpu; struct task_struct *curr; } __attribute__((preserve_access_index));
struct cfs_rq {
	int throttle_count;
	u64 throttled_clock_self, throttled_clock_self_time;
	struct rq *rq;
} __attribute__((preserve_access_index));
struct sched_entity {
	unsigned char sched_delayed;
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
} __attribute__((preserve_access_index));
struct sched_info { u64 run_delay, last_arrival, last_queued; } __attribute__((preserve_access_index));
struct kernfs_node { u64 id; } __attribute__((preserve_access_index));
struct cgroup_root;
struct cgroup { int level; struct kernfs_node *kn; struct cgroup_root *root; } __attribute__((preserve_access_index));
struct cgroup_subsys_state { struct cgroup *cgroup; } __attribute__((preserve_access_index));
struct task_group { struct cgroup_subsys_state css; } __attribute__((preserve_access_index));
struct css_set { struct cgroup *dfl_cgrp; } __attribute__((preserve_access_index));
struct thread_info___kernel { u32 cpu; } __attribute__((preserve_access_index));
struct ns_common { u32 inum; } __attribute__((preserve_access_index));
struct pid_namespace { struct ns_common ns; } __attribute__((preserve_access_index));
struct upid { struct pid_namespace *ns; } __attribute__((preserve_access_index));
struct pid { u32 level; struct upid numbers[1]; } __attribute__((preserve_access_index));
struct task_struct {
	struct pid *thread_pid;
	struct thread_info___kernel thread_info;
	unsigned int __state, flags;
	int pid, tgid, on_cpu;
	char comm[16];
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_group *sched_task_group;
	struct css_set *cgroups;
	struct task_struct *group_leader;
	bool throttled;  /* since 6.18: a task is throttled on its own */
} __attribute__((preserve_access_index));
struct task_struct___before_5_14 { long state; } __attribute__((preserve_access_index));
struct task_struct___before_5_16 { unsigned int cpu; } __attribute__((preserve_access_index));
struct seq_file;
struct bpf_iter_meta { struct seq_file *seq; } __attribute__((preserve_access_index));
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; } __attribute__((preserve_access_index));

static __always_inline long task_state_of(const struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return BPF_CORE_READ((struct task_struct___before_5_14 *)t, state);
}

/* For a task of a tracepoint: the verifier trusts it, so that plain loads replace calls of helpers. */
static __always_inline bool traced_task_is_throttled(struct task_struct *t)
{
	if (bpf_core_field_exists(t->throttled))
		return t->throttled;
	if (bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count)) {
		struct cfs_rq *queue = t->se.cfs_rq;
		return queue && queue->throttle_count > 0;
	}
	return false;
}

/* task: address of a task that waits. A task that ends is never waiting, so the address is valid. */
static __always_inline bool task_is_throttled(u64 task)
{
	const struct task_struct *t = (const void *)(unsigned long)task;
	if (!t)
		return false;
	if (bpf_core_field_exists(t->throttled))
		return BPF_CORE_READ(t, throttled);
	if (bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count))
		return BPF_CORE_READ(t, se.cfs_rq, throttle_count) > 0;
	return false;
}
