/* Members of kernel structures that the BPF programs use. CO-RE finds their place in the running kernel. */
#ifndef STEALSCOPE_LIVE_KERNEL_STRUCTS_H
#define STEALSCOPE_LIVE_KERNEL_STRUCTS_H

struct rq { int cpu; } __attribute__((preserve_access_index));
struct cfs_rq { int throttle_count; struct rq *rq; } __attribute__((preserve_access_index));
struct sched_entity { struct cfs_rq *cfs_rq; } __attribute__((preserve_access_index));
struct thread_info___kernel { u32 cpu; } __attribute__((preserve_access_index));
struct ns_common { u32 inum; } __attribute__((preserve_access_index));
struct pid_namespace { struct ns_common ns; } __attribute__((preserve_access_index));
struct upid { struct pid_namespace *ns; } __attribute__((preserve_access_index));
struct pid { u32 level; struct upid numbers[1]; } __attribute__((preserve_access_index));
struct task_struct {
	struct pid *thread_pid;
	struct thread_info___kernel thread_info;
	unsigned int __state;
	int pid, tgid;
	char comm[16];
	struct sched_entity se;
	bool throttled;  /* since 6.18: a task is throttled on its own */
} __attribute__((preserve_access_index));
struct task_struct___before_5_14 { long state; } __attribute__((preserve_access_index));
struct task_struct___before_5_16 { unsigned int cpu; } __attribute__((preserve_access_index));

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

#endif
