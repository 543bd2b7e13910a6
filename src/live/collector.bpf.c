// SPDX-License-Identifier: GPL-2.0
/* The BPF program of `stealscope top` and `monitor`: sums of waiting time by victim and culprit, in the kernel.
 *
 * A switch of tasks that are no victims costs one clock read, two table lookups and one log entry. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "live/collector.h"
#include "live/kernel_structs.h"

#define TASK_STOPPED_OR_TRACED 0xc
#define TASK_DEAD 0x80

char LICENSE[] SEC("license") = "GPL";

volatile struct live_table live;
const volatile struct live_constants constants;
#define live_steal constants.steal
#define live_siblings constants.siblings

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LIVE_VICTIMS);
	__type(key, u32);
	__type(value, struct live_victim);
} victims SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);  /* user space sets the CPU count */
	__type(key, u32);
	__type(value, struct live_cpu);
} cpus SEC(".maps");

struct pair_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LIVE_PAIRS);
	__type(key, struct live_pair_key);
	__type(value, struct live_pair_value);
};
/* One map for each process that counters are published to: the process maps its own, and no other. */
struct page_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PUBLISHED_ENTRIES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, PUBLISHED_ENTRY_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, LIVE_CLIENTS);
	__type(key, u32);
	__array(values, struct page_map);
} pages SEC(".maps");

struct pair_map pairs_even SEC(".maps"), pairs_odd SEC(".maps");

#define ATOMIC_ADD(pointer, n) __sync_fetch_and_add((pointer), (n))
#define ATOMIC_SWAP(pointer, old, new) __sync_bool_compare_and_swap((pointer), (old), (new))
#define LIVE_GLOBAL __attribute__((noinline))
/* The verifier checks a step of bpf_loop() once (Linux 5.17), each step of a plain loop on its own. */
#define LIVE_REPEAT(n, step, arg) do { \
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) \
		bpf_loop((n), (step), (arg), 0); \
	else \
		for (u32 i_ = 0; i_ < (n) && !(step)(i_, (arg)); i_++) \
			; \
} while (0)

static __always_inline struct live_victim *victim_at(u32 slot)
{
	return bpf_map_lookup_elem(&victims, &slot);
}

static __always_inline struct live_cpu *cpu_at(u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline u64 steal_of(u32 cpu)
{
	const struct live_cpu *c = live_steal ? cpu_at(cpu) : 0;
	u64 steal = 0;
	if (c && c->steal_address)
		bpf_probe_read_kernel(&steal, sizeof steal, (const void *)(unsigned long)c->steal_address);
	return steal;
}

static __always_inline void find_steal_clock(struct live_cpu *c, u32 cpu, struct task_struct *t)
{
	const struct rq *queue = BPF_CORE_READ(t, se.cfs_rq, rq);
	if (queue && t->pid && BPF_CORE_READ(queue, cpu) == (int)cpu)
		c->steal_address = (u64)queue + constants.steal_distance;
}

static __always_inline void pair_add(u32 victim, const struct live_entry *e, u64 ns)
{
	void *map = live.epoch & 1 ? (void *)&pairs_odd : (void *)&pairs_even;
	const struct live_pair_key key = { victim, e->culprit };
	struct live_pair_value *found = bpf_map_lookup_elem(map, &key);
	if (found) {
		ATOMIC_ADD(&found->ns, ns);
		__builtin_memcpy(found->comm, e->comm, sizeof found->comm);  /* a program may have been executed meanwhile */
		return;
	}
	struct live_pair_value value = { .ns = ns, .tid = e->tid };
	__builtin_memcpy(value.comm, e->comm, sizeof value.comm);
	if (bpf_map_update_elem(map, &key, &value, BPF_NOEXIST) == 0)
		return;
	found = bpf_map_lookup_elem(map, &key);
	struct live_victim *v = victim_at(victim);
	if (found)
		ATOMIC_ADD(&found->ns, ns);
	else if (v)
		ATOMIC_ADD(&v->lost_ns, ns);
}

#include "live/accounting.h"

/* Returns a victim's slot; LIVE_VICTIMS: the thread is none. Most threads are none, and the filter is small enough to
 * stay in the cache. */
static __always_inline u32 victim_find(u32 tid)
{
	if (!(live.filter[tid % LIVE_FILTER / 64] >> tid % 64 & 1))
		return LIVE_VICTIMS;
	u32 at = tid * LIVE_HASH_FACTOR >> LIVE_HASH_SHIFT;
	for (int i = 0; i < LIVE_PROBES; i++) {
		const u64 found = live.tid[(at + i) & (LIVE_HASH - 1)];
		if (found == 0)
			break;
		if (found >> 32 == tid)
			return found & (LIVE_VICTIMS - 1);
	}
	return LIVE_VICTIMS;
}

static __always_inline u32 task_cpu_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->thread_info.cpu))
		return t->thread_info.cpu;
	return BPF_CORE_READ((struct task_struct___before_5_16 *)t, cpu);
}

static __always_inline u32 task_space_of(struct task_struct *t)
{
	struct pid_namespace *ns = 0;
	if (!live.spaces)
		return 0;
	const struct pid *p = BPF_CORE_READ(t, thread_pid);  /* a number to the verifier, so that it may be computed with */
	if (!p)
		return 0;
	const void *upid = (const char *)p + bpf_core_field_offset(p->numbers) +
	                   BPF_CORE_READ(p, level) * (u64)bpf_core_type_size(struct upid);
	bpf_probe_read_kernel(&ns, sizeof ns, (const char *)upid + bpf_core_field_offset(struct upid, ns));
	return ns ? BPF_CORE_READ(ns, ns.inum) : 0;
}

/* Writes the counters of a victim into its entry of a page. Callers hold the lock of the thread's run queue, so one CPU
 * writes at a time. The exchanges are full barriers. */
static __always_inline void publish(const struct live_victim *v, u32 state, u64 now)
{
	const u32 client = v->client - 1, entry = v->entry;
	void *map = bpf_map_lookup_elem(&pages, &client);
	struct published_thread *e = map ? bpf_map_lookup_elem(map, &entry) : 0;
	if (!e)
		return;
	const u32 seq = e->seq;
	__sync_lock_test_and_set(&e->seq, seq | 1);
	e->state = state;
	e->updated = now;
	if (live_steal) {
		const u64 waited = v->ns[LIVE_WAITING] + v->ns[LIVE_THROTTLED];
		e->counter[PUBLISHED_STOLEN] = v->stolen_run + v->stolen_wait;
		e->counter[PUBLISHED_MIXED] = v->stolen_wake;
		e->counter[PUBLISHED_WAIT] = waited > v->stolen_wait ? waited - v->stolen_wait : 0;
	} else {
		e->counter[PUBLISHED_STOLEN] = v->other_ns + v->ns[LIVE_THROTTLED];
		e->counter[PUBLISHED_THROTTLED] = v->ns[LIVE_THROTTLED];
		e->counter[PUBLISHED_WAIT] = v->own_ns;
	}
	e->counter[PUBLISHED_BLOCKED] = v->ns[LIVE_BLOCKED] + v->ns[LIVE_PAUSED];
	e->counter[PUBLISHED_UNKNOWN] = v->ns[LIVE_UNKNOWN] + (live_steal ? 0 : v->unsure_ns);
	e->counter[PUBLISHED_SWITCHES] = v->waits;
	e->counter[PUBLISHED_WAKEUPS] = v->sleeps;
	__sync_lock_test_and_set(&e->seq, (seq | 1) + 1);
}

/* A switch's outgoing task: a victim's new state; or a sign that victims here may be throttled as well. */
static __always_inline void switch_out(struct live_cpu *c, u32 slot, bool preempted, struct task_struct *prev, u32 cpu,
                                       u64 now)
{
	const long state = task_state_of(prev);
	const bool runnable = preempted || state == 0;
	const bool throttled = runnable && prev->pid && traced_task_is_throttled(prev);
	if (throttled)
		c->throttled = 1;
	if (slot == LIVE_VICTIMS)
		return;
	struct live_victim *v = victim_at(slot);
	if (!v)
		return;
	v->task = (u64)prev;
	victim_was_missed(v);
	victim_move(slot, throttled ? LIVE_THROTTLED : runnable ? LIVE_WAITING :
	            state & TASK_STOPPED_OR_TRACED ? LIVE_PAUSED : LIVE_BLOCKED, cpu, now);
	if (v->client)
		publish(v, runnable ? PUBLISHED_IS_WAITING : PUBLISHED_IS_BLOCKED, now);
	if (!runnable && state & TASK_DEAD)
		v->tid = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	const u32 cpu = bpf_get_smp_processor_id();
	const u64 now = bpf_ktime_get_ns();
	struct live_cpu *c = cpu_at(cpu);
	const u32 tid = next->pid, out = victim_find(prev->pid), in = victim_find(tid);
	if (!c)
		return 0;
	log_check(c, prev->pid);
	switch_out(c, out, preempted, prev, cpu, now);
	struct live_victim *v = in != LIVE_VICTIMS ? victim_at(in) : 0;
	if (v) {
		victim_move(in, LIVE_RUNNING, cpu, now);
		if (v->client)
			publish(v, PUBLISHED_IS_RUNNING, now);
	}
	struct live_entry e = { .ts = now, .culprit = v && v->listed ? CULPRIT_VICTIM + in : (u32)next->tgid, .tid = tid,
	                        .tgid = next->tgid, .space = task_space_of(next) };
	__builtin_memcpy(e.comm, next->comm, sizeof e.comm);
	log_append(c, cpu, &e, live.epoch);
	if (live_steal && !c->steal_address)
		find_steal_clock(c, cpu, next);
	c->steal = steal_of(cpu);
	return 0;
}

/* A timer that is due expires as soon as the host runs the vCPU again, so the steal clock is read shortly after a gap. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_timer)
{
	const u32 slot = victim_find((u32)bpf_get_current_pid_tgid()), cpu = bpf_get_smp_processor_id();
	struct live_victim *v = slot == LIVE_VICTIMS ? 0 : victim_at(slot);
	const u64 now = bpf_ktime_get_ns();
	if (!v || !v->client || (v->mark & (LIVE_STATES - 1)) != LIVE_RUNNING)
		return 0;
	victim_move(slot, LIVE_RUNNING, cpu, now);
	publish(v, PUBLISHED_IS_RUNNING, now);
	return 0;
}

/* A wakeup while the thread runs, or while it waits already, changes nothing. */
static __always_inline int wake(struct task_struct *p)
{
	const u32 slot = victim_find(p->pid);
	if (slot == LIVE_VICTIMS)
		return 0;
	struct live_victim *v = victim_at(slot);
	if (!v)
		return 0;
	const u32 state = v->mark & (LIVE_STATES - 1);
	if (state != LIVE_BLOCKED && state != LIVE_PAUSED && state != LIVE_UNKNOWN)
		return 0;
	v->task = (u64)p;
	const u64 now = bpf_ktime_get_ns();
	const u32 cpu = task_cpu_of(p);
	const struct live_cpu *c = live_steal ? cpu_at(cpu) : 0;
	if (c && c->head && c->log[(c->head - 1) & (LIVE_LOG - 1)].culprit == 0) {
		const u64 steal = steal_of(cpu);
		v->stolen_wake += steal > c->steal ? steal - c->steal : 0;
	}
	victim_move(slot, task_is_throttled((u64)p) ? LIVE_THROTTLED : LIVE_WAITING, cpu, now);
	if (v->client)
		publish(v, PUBLISHED_IS_WAITING, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	return wake(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	return wake(p);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int to)
{
	const u32 slot = victim_find(p->pid);
	struct live_victim *v = slot == LIVE_VICTIMS ? 0 : victim_at(slot);
	if (!v || !state_waits(v->mark & (LIVE_STATES - 1)))
		return 0;
	return victim_move(slot, v->mark & (LIVE_STATES - 1), to, bpf_ktime_get_ns());
}

/* Run by user space on a pCPU: accounts the victims that wait there up to now. The current task runs, which is news if it
 * is a victim that has not been switched since it was added. */
SEC("raw_tp")
int account_now(void *ctx)
{
	const u32 cpu = bpf_get_smp_processor_id(), slot = victim_find((u32)bpf_get_current_pid_tgid());
	const struct live_victim *v = slot == LIVE_VICTIMS ? 0 : victim_at(slot);
	const u64 now = bpf_ktime_get_ns();
	(void)ctx;
	if (v && (v->mark & (LIVE_STATES - 1)) == LIVE_UNKNOWN)
		victim_move(slot, LIVE_RUNNING, cpu, now);
	account_cpu(cpu, now);
	return 0;
}

/* Run by user space, which cannot write the pages: they are frozen before a process gets one. Arguments: enum page_action,
 * client, and the action's arguments. */
SEC("raw_tp")
int write_page(struct bpf_raw_tracepoint_args *ctx)
{
	const u32 action = ctx->args[0], client = ctx->args[1], first = 0, entry = ctx->args[2];
	void *map = bpf_map_lookup_elem(&pages, &client);
	struct published_header *h = map ? bpf_map_lookup_elem(map, &first) : 0;
	struct published_thread *e = map ? bpf_map_lookup_elem(map, &entry) : 0;
	if (!h || !e)
		return 0;
	switch (action) {
	case PAGE_OPEN:
		h->version = PUBLISHED_VERSION;
		h->flags = ctx->args[3];
		h->source = ctx->args[4];
		h->session = ctx->args[5];
		h->beat = ctx->args[6];
		h->resolution = ctx->args[7];
		h->magic = PUBLISHED_MAGIC;
		break;
	case PAGE_BEAT:
		h->beat = ctx->args[3];
		break;
	case PAGE_CLOSE:
		h->closed = 1;
		break;
	case PAGE_THREAD:
		__sync_lock_test_and_set(&e->tid, 0);
		__builtin_memset(e->counter, 0, sizeof e->counter);
		e->seq = 0;
		__sync_lock_test_and_set(&e->tid, (u32)ctx->args[3]);
		break;
	}
	return 0;
}
