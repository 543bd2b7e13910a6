// SPDX-License-Identifier: GPL-2.0
/* The BPF program of `record` that shows whose quota keeps a thread from running: it prints "stealscope throttled TID 1"
 * into the kernel's trace event bpf_trace_printk when a throttled thread leaves its CPU, and "... TID 0" when its group
 * has got new quota, even if other threads still have the CPU. It is attached before the recorder enables sched_switch, so
 * the former precedes the sched_switch.
 *
 * The scheduler has no event for the end. The program examines the throttled threads of a CPU at each switch, at the end
 * of each timer (the refill, or at the latest the tick), and after each function call of another CPU, which the refill
 * needs for a remote CPU. A switch with no throttled thread costs two loads. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u32 u32;
typedef __u64 u64;

#include "live/kernel_structs.h"

#define SLOTS 64  /* throttled threads of one CPU; further ones are not recorded, so their waits have no proof */

char LICENSE[] SEC("license") = "GPL";

struct throttled_cpu { u32 used; u32 tid[SLOTS]; u64 task[SLOTS]; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct throttled_cpu);
} cpus SEC(".maps");

static __always_inline struct throttled_cpu *this_cpu(void)
{
	const u32 zero = 0;
	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline void print(u32 tid, u32 on)
{
	static const char format[] = "stealscope throttled %u %u";
	bpf_trace_printk(format, sizeof format, tid, on);
}

static __always_inline bool is_runnable(const struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return BPF_CORE_READ(t, __state) == 0;
	return BPF_CORE_READ((const struct task_struct___before_5_14 *)t, state) == 0;
}

/* Prints the threads of this CPU that are throttled no more. A task that ended has another PID in its memory. */
static __attribute__((noinline)) int examine(struct throttled_cpu *c)
{
	if (!c)
		return 0;
	for (u32 i = 0; i < SLOTS; i++) {
		const struct task_struct *t = (const void *)c->task[i];
		if (!t)
			continue;
		if ((u32)BPF_CORE_READ(t, pid) == c->tid[i] && task_is_throttled(c->task[i]))
			continue;
		print(c->tid[i], 0);
		c->task[i] = 0;
		c->used--;
	}
	return 0;
}

static __always_inline void add(struct throttled_cpu *c, struct task_struct *t, u32 tid)
{
	for (u32 i = 0; i < SLOTS; i++)
		if (!c->task[i]) {
			c->task[i] = (u64)t;
			c->tid[i] = tid;
			c->used++;
			print(tid, 1);
			return;
		}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(at_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct throttled_cpu *c = this_cpu();
	if (!c)
		return 0;
	if (c->used)
		examine(c);
	const u32 tid = (u32)prev->pid;
	if (tid && task_is_throttled((u64)prev) && is_runnable(prev))
		add(c, prev, tid);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(at_timer)
{
	struct throttled_cpu *c = this_cpu();
	return c && c->used ? examine(c) : 0;
}

SEC("tp_btf/call_function_single_exit")
int BPF_PROG(at_call)
{
	struct throttled_cpu *c = this_cpu();
	return c && c->used ? examine(c) : 0;
}
