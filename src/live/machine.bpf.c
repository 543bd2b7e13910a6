// SPDX-License-Identifier: GPL-2.0
/* The BPF program of `stealscope top`, `monitor` and `run` for all threads of a machine: waiting time by process and
 * culprit.
 *
 * The kernel's own accounts (struct sched_info) contain when a task was queued and when the current one got the CPU, in
 * the run queue's clock. A switch from or to the idle task therefore returns at once: nobody waited. At another
 * switch, the outgoing task's tenure is appended to the log of its CPU, and the wait of the incoming one is split
 * along this log. Waits that end by a migration are accounted at the migration, and those that go on when user space lists
 * the tasks.
 *
 * Each wait has one mark, the time up to which it is accounted. Whoever exchanges it accounts the part behind it. The list
 * that ends a period also moves each task to the other tables: all its times end when the list visits it. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "live/machine.h"
#include "live/kernel_structs.h"

#define TASK_DEAD 0x80
#define STOPPED 0xc  /* by a signal or a debugger */
#define KERNEL_THREAD 0x00200000
#define IDLE_NS 2000000  /* longest time in which an idle CPU begins to run a woken task */

char LICENSE[] SEC("license") = "GPL";

volatile struct machine_control control;
u32 throttling;  /* 1: a task was throttled since the start */

/* State of a task that is remembered. */
struct task_wait {
	u64 delay;       /* its run_delay when it left the CPU, or was migrated last */
	u64 mark;        /* time up to which its waits are accounted */
	u64 length;      /* parts of the current wait on other CPUs */
	u64 left;        /* time when it left the CPU, if `throttling` */
	u64 quota;       /* throttled time of its group on this CPU at that time */
	u64 queue;       /* address of the group's run queue at that time */
	u64 ran;         /* CPU time that was reported */
	u32 out;         /* 1: it was throttled when it left the CPU */
	u32 listed;      /* 1: it was in a list, so that delay has a value */
	u32 bogus;       /* 1: the kernel's account of its next wait is wrong */
	u32 marked;      /* 1: a descendant of the command of `run` */
	u32 key;         /* of the thread, if it is a victim and a culprit of its own; 0: its process is */
	u32 tables;      /* 1 + the tables that count its waits, 0 or 1; 0: not visited yet, those of new tasks */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_wait);
} waits SEC(".maps");

/* Threads that are victims and culprits of their own, such as vCPUs. Written by user space only. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MACHINE_KEYS);
	__type(key, u32);    /* TID */
	__type(value, u32);
} keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);  /* user space sets the CPU count */
	__type(key, u32);
	__type(value, struct machine_cpu);
} cpus SEC(".maps");

struct pair_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LIVE_PAIRS);
	__type(key, struct live_pair_key);
	__type(value, u64);
} pairs_even SEC(".maps"), pairs_odd SEC(".maps");

struct row_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACHINE_ROWS);
	__type(key, u32);
	__type(value, struct machine_row);
} rows_even SEC(".maps"), rows_odd SEC(".maps");

struct ended_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACHINE_ROWS);
	__type(key, u32);
	__type(value, struct machine_ended);
} ended_even SEC(".maps"), ended_odd SEC(".maps");

#define TABLE(name, odd) ((odd) & 1 ? (void *)&name##_odd : (void *)&name##_even)
#define ATOMIC_ADD(pointer, n) __sync_fetch_and_add((pointer), (n))
/* The verifier checks a step of bpf_loop() once (Linux 5.17), each step of a plain loop on its own. */
#define LOG_WALK_PLAIN 64

/* ---- sums */

static __always_inline void pair_add(u32 tables, u32 victim, u32 culprit, u64 ns, struct machine_row *r)
{
	const struct live_pair_key key = { victim, culprit };
	void *map = TABLE(pairs, tables);
	u64 *found = bpf_map_lookup_elem(map, &key);
	if (found) {
		ATOMIC_ADD(found, ns);
		return;
	}
	if (bpf_map_update_elem(map, &key, &ns, BPF_NOEXIST) == 0)
		return;
	found = bpf_map_lookup_elem(map, &key);
	if (found)
		ATOMIC_ADD(found, ns);
	else if (r)
		ATOMIC_ADD(&r->lost, ns);
}

/* Returns which tables count the waits of a task: 0 or 1. */
static __always_inline u32 tables_of(const struct task_wait *t)
{
	return (t->tables ? t->tables - 1 : control.epoch) & 1;
}

static __always_inline struct machine_row *row_of(u32 tables, u32 victim, u32 marked)
{
	static const struct machine_row zero;
	void *map = TABLE(rows, tables);
	struct machine_row *r = bpf_map_lookup_elem(map, &victim);
	if (r)
		return r;
	bpf_map_update_elem(map, &victim, &zero, BPF_NOEXIST);
	r = bpf_map_lookup_elem(map, &victim);
	if (r)
		r->marked = marked;
	return r;
}

static __always_inline u32 length_bin(u64 ns)
{
	u32 bin = 0;
	for (u32 step = 32; step; step >>= 1) {
		if (ns >> step) {
			ns >>= step;
			bin += step;
		}
	}
	return bin & (MACHINE_BINS - 1);
}

/* ---- waits */

#define WALK_SUMS 8  /* culprits that a walk sums before it adds them to their pairs */

/* A wait of which [from, end) is not yet split. */
struct log_walk {
	u64 from, end, head;
	struct machine_cpu *cpu;
	struct machine_row *row;
	u32 victim, top, tables;
	u64 top_ns;
	struct { u64 ns; u64 culprit; } sum[WALK_SUMS];
};

static __always_inline void walk_add(struct log_walk *w, u32 culprit, u64 ns)
{
	pair_add(w->tables, w->victim, culprit, ns, w->row);
	if (ns > w->top_ns) {
		w->top_ns = ns;
		w->top = culprit;
	}
}

/* Takes [begin, end). A culprit that has the place of another one in the sums makes that one leave. */
static __always_inline void walk_sum(struct log_walk *w, u32 culprit, u64 begin)
{
	const u32 at = (culprit ^ culprit >> 3) & (WALK_SUMS - 1);
	if (w->sum[at].culprit != culprit) {
		if (w->sum[at].ns)
			walk_add(w, w->sum[at].culprit, w->sum[at].ns);
		w->sum[at].culprit = culprit;
		w->sum[at].ns = 0;
	}
	w->sum[at].ns += w->end - begin;
	w->end = begin;
}

/* Takes the part of entry i, counted back from the latest one. Returns 1 at the end. */
static long walk_entry(u32 i, void *arg)
{
	struct log_walk *w = arg;
	if (i >= w->head || i >= MACHINE_LOG || !w->cpu)
		return 1;
	const struct machine_entry *e = &w->cpu->log[(w->head - 1 - i) & (MACHINE_LOG - 1)];
	const u64 to = e->to, from = e->from;
	if (to <= w->from)
		return 1;
	if (from >= w->end)
		return 0;
	if (to < w->end)  /* between two tenures: the way out of idle, or an event that the kernel hides */
		walk_sum(w, w->end - to > IDLE_NS ? CULPRIT_UNKNOWN : 0, to);
	walk_sum(w, e->culprit, from > w->from ? from : w->from);
	return w->end <= w->from;
}

static __always_inline u32 key_of(const struct task_struct *p, const struct task_wait *t)
{
	return t && t->key ? t->key : (u32)p->tgid;
}

/* A CPU, and its current task if that is not in the log yet. */
struct occupied { u32 cpu, key /* 0: none */; u64 since; };

static __always_inline u32 key_of_current(const struct task_struct *curr)
{
	const u32 tid = BPF_CORE_READ(curr, pid), *found = control.keys ? bpf_map_lookup_elem(&keys, &tid) : 0;
	return found ? *found : (u32)BPF_CORE_READ(curr, tgid);
}


/* Splits [from, to) of a wait along a CPU's log. Returns the culprit that had most of it. */
static __always_inline u32 wait_split(struct machine_row *r, u32 tables, u32 victim, const struct occupied *o, u64 from,
                                      u64 to)
{
	struct machine_cpu *c = bpf_map_lookup_elem(&cpus, &o->cpu);
	if (!c || from >= to)
		return CULPRIT_UNKNOWN;
	struct log_walk w = { .from = from, .end = to, .head = c->head, .cpu = c, .row = r, .victim = victim,
	                      .top = CULPRIT_UNKNOWN, .tables = tables };
	if (o->key && o->since < to) {
		const u64 begin = o->since > from ? o->since : from;
		walk_add(&w, o->key, to - begin);
		w.end = begin;
	} else if (w.head) {  /* most waits had one culprit */
		const struct machine_entry *e = &c->log[(w.head - 1) & (MACHINE_LOG - 1)];
		if (e->to == to && e->from <= from) {
			walk_add(&w, e->culprit, to - from);
			return w.top;
		}
	}
	if (w.end <= from)
		return w.top;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(MACHINE_LOG, walk_entry, &w, 0);
	else
		for (u32 i = 0; i < LOG_WALK_PLAIN && walk_entry(i, &w) == 0; i++)
			;
	if (w.end > from)
		walk_sum(&w, w.end - from > IDLE_NS ? CULPRIT_UNKNOWN : 0, from);
	for (u32 i = 0; i < WALK_SUMS; i++)
		if (w.sum[i].ns)
			walk_add(&w, w.sum[i].culprit, w.sum[i].ns);
	return w.top;
}

/* Returns the time for which the kernel throttled the group of a run queue up to now. */
static __always_inline u64 quota_time(const struct cfs_rq *q, u64 now)
{
	if (!q || !bpf_core_field_exists(q->throttled_clock_self_time))
		return 0;
	const u64 since = q->throttled_clock_self;
	return q->throttled_clock_self_time + (since && now > since ? now - since : 0);
}

/* Accounts [from, to) of a wait that began at `queued`. Its throttled part is at its beginning: a group that is throttled
 * again lets its tasks run before. What the kernel throttled while the task may have slept is unknown. */
static __always_inline u32 wait_account(struct task_struct *p, struct task_wait *t, struct machine_row *r,
                                        const struct occupied *o, u64 queued, u64 from, u64 to)
{
	u64 throttled = 0, unsure = 0;
	if (throttling) {
		const struct cfs_rq *q = p->se.cfs_rq;
		if (bpf_core_field_exists(q->throttled_clock_self_time)) {
			const u64 gained = (u64)q == t->queue ? quota_time(q, to) - t->quota : 0;
			const u64 slept = queued > t->left && t->left ? queued - t->left : 0;
			throttled = gained > slept ? gained - slept : 0;
			unsure = gained - throttled;
		} else if (t->out) {
			throttled = to - queued;
		}
	}
	u64 begin = from;
	if (throttled && queued + throttled > from) {
		begin = queued + throttled < to ? queued + throttled : to;
		ATOMIC_ADD(&r->throttled, begin - from);
	}
	const u64 doubt = queued + throttled + unsure;
	if (unsure && doubt > begin) {
		const u64 end = doubt < to ? doubt : to;
		if (end > begin)
			pair_add(tables_of(t), key_of(p, t), CULPRIT_UNKNOWN, end - begin, r);
		begin = end;
	}
	if (begin >= to)
		return CULPRIT_THROTTLED;
	const u32 top = wait_split(r, tables_of(t), key_of(p, t), o, begin, to);
	return begin - from > to - begin ? CULPRIT_THROTTLED : top;
}

/* The wait of a task on a CPU ends now. */
static __always_inline void wait_end(struct task_struct *p, struct task_wait *t, u32 cpu, u64 now)
{
	const u64 queued = p->sched_info.last_queued;
	if (!queued || queued >= now || t->bogus)
		return;
	struct machine_row *r = row_of(tables_of(t), key_of(p, t), t->marked);
	const u64 mark = __sync_lock_test_and_set(&t->mark, now);
	if (!r || mark >= now)
		return;
	const struct occupied o = { .cpu = cpu };
	const u32 top = wait_account(p, t, r, &o, queued, mark > queued ? mark : queued, now);
	const u64 length = t->length + (now - queued);
	t->length = 0;
	ATOMIC_ADD(&r->waits, 1);
	ATOMIC_ADD(&r->bin[length_bin(length)], 1);
	if (length > r->longest) {
		r->longest = length;
		r->longest_culprit = top;
	}
}

/* A task leaves its CPU. */
static __always_inline void task_leaves(struct task_struct *p, struct task_wait *t, u64 now, bool throttled)
{
	const struct cfs_rq *q = p->se.cfs_rq;
	t->delay = p->sched_info.run_delay;
	t->length = 0;
	t->bogus = 0;
	t->left = now;
	t->out = throttled;
	t->queue = (u64)q;
	t->quota = quota_time(q, now);
}

static __always_inline u64 clock_of(struct task_struct *t)
{
	const struct cfs_rq *q = t->se.cfs_rq;
	const struct rq *queue = q ? q->rq : 0;
	return queue ? queue->clock : 0;
}

/* Appends a task's tenure. */
static __always_inline void log_append(u32 cpu, struct task_struct *p, u32 key, u64 now)
{
	struct machine_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return;
	const u64 from = p->sched_info.last_arrival;
	struct machine_entry *last = &c->log[(c->head - 1) & (MACHINE_LOG - 1)];
	if (c->head && last->culprit == key && last->to == from) {
		last->to = now;
		return;
	}
	c->log[c->head & (MACHINE_LOG - 1)] = (struct machine_entry){ from, now, key, 0 };
	c->head++;
}

/* ---- tasks that end */

/* Returns MACHINE_V2 | inode number of the task's group in v2; or that in v1's hierarchy with the controller. */
static __always_inline u64 group_of(struct task_struct *p)
{
	struct cgroup *c = BPF_CORE_READ(p, sched_task_group, css.cgroup), *v2 = BPF_CORE_READ(p, cgroups, dfl_cgrp);
	const bool same = c && v2 && BPF_CORE_READ(c, root) == BPF_CORE_READ(v2, root);
	if (v2 && (same || !c || (BPF_CORE_READ(c, level) == 0 && BPF_CORE_READ(v2, level) > 0)))
		return MACHINE_V2 | BPF_CORE_READ(v2, kn, id);
	return c ? BPF_CORE_READ(c, kn, id) : 0;
}

static __always_inline void comm_of(struct task_struct *p, char comm[16])
{
	struct task_struct *leader = BPF_CORE_READ(p, group_leader);
	bpf_core_read(comm, 16, &leader->comm);
}

/* A task leaves its CPU for the last time. */
static __always_inline void task_ends(struct task_struct *p)
{
	const struct task_wait *t = bpf_task_storage_get(&waits, p, 0, 0);
	const u32 key = key_of(p, t);
	const u64 sum = p->se.sum_exec_runtime, ran = t && sum > t->ran ? sum - t->ran : t ? 0 : sum;
	void *map = TABLE(ended, t ? tables_of(t) : control.epoch);
	struct machine_ended *e = bpf_map_lookup_elem(map, &key);
	if (e) {
		ATOMIC_ADD(&e->ran, ran);
		return;
	}
	struct machine_ended value = { .ran = ran, .group = group_of(p), .marked = t ? t->marked : 0,
	                               .kernel = (p->flags & KERNEL_THREAD) != 0 };
	comm_of(p, value.comm);
	bpf_map_update_elem(map, &key, &value, BPF_NOEXIST);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	if (prev->pid == 0 && !throttling)
		return 0;
	const long state = preempted ? 0 : task_state_of(prev);
	struct task_wait *t = 0;
	if (state & TASK_DEAD)
		task_ends(prev);
	else if (prev->pid)
		t = bpf_task_storage_get(&waits, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (next->pid == 0 && state != 0 && !throttling) {  /* nobody waits: only its account is remembered */
		if (t) {
			t->delay = prev->sched_info.run_delay;
			t->length = 0;
			t->bogus = 0;
		}
		return 0;
	}
	const u32 cpu = bpf_get_smp_processor_id();
	const u64 now = clock_of(prev->pid ? prev : next);
	if (prev->pid) {
		const bool throttled = state == 0 && traced_task_is_throttled(prev);
		if (next->pid)
			log_append(cpu, prev, key_of(prev, t), now);
		if (throttled)
			throttling = 1;
		if (t)
			task_leaves(prev, t, now, throttled);
	}
	if (next->pid) {
		t = bpf_task_storage_get(&waits, next, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (t && (prev->pid || quota_time(next->se.cfs_rq, now) != t->quota || t->out))
			wait_end(next, t, cpu, now);
	}
	return 0;
}

/* A waiting task moves to another CPU. The kernel has added this part of its wait to its run delay just before. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int to)
{
	(void)to;
	const bool sleeps = task_state_of(p) != 0;
	/* Since 6.12 a task may sleep in its queue. If it is moved then, sched_info counts its sleep as a wait. */
	if (sleeps && (!bpf_core_field_exists(p->se.sched_delayed) || !p->se.sched_delayed))
		return 0;  /* it is woken */
	struct task_wait *t = bpf_task_storage_get(&waits, p, 0, 0);
	if (t && sleeps)
		t->bogus = 1;
	if (sleeps)
		return 0;
	const struct cfs_rq *q = p->se.cfs_rq;
	const struct rq *queue = q ? q->rq : 0;
	if (!t || !queue)
		return 0;
	const u64 now = queue->clock, delay = p->sched_info.run_delay, ns = delay > t->delay ? delay - t->delay : 0;
	if (!ns || ns > now)
		return 0;
	t->delay = delay;
	t->length += ns;
	struct machine_row *r = row_of(tables_of(t), key_of(p, t), t->marked);
	const struct task_struct *curr = queue->curr;
	const struct occupied o = { queue->cpu, key_of_current(curr), BPF_CORE_READ(curr, sched_info.last_arrival) };
	const u64 mark = __sync_lock_test_and_set(&t->mark, now), queued = now - ns;
	if (r && mark < now)
		wait_account(p, t, r, &o, queued, mark > queued ? mark : queued, now);
	t->queue = 0;
	t->out = 0;
	return 0;
}

/* ---- tasks that begin, and those that are listed */

/* Loaded for `run`: its command's descendants are marked. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct task_wait *t = bpf_task_storage_get(&waits, parent, 0, 0);
	struct task_wait *mine;
	if ((t && t->marked) || ((u32)parent->tgid == control.root && control.root))
		if ((mine = bpf_task_storage_get(&waits, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)))
			mine->marked = 1;
	return 0;
}

/* Accounts the wait of a task that goes on, up to now. */
static __always_inline void wait_goes_on(struct task_struct *p, struct task_wait *t, struct rq *queue, u64 now)
{
	const u64 queued = p->sched_info.last_queued, mark = t->mark, from = mark > queued ? mark : queued;
	const u32 cpu = BPF_CORE_READ(queue, cpu);
	if (!queued || p->on_cpu || task_state_of(p) || t->bogus || from >= now ||
	    __sync_val_compare_and_swap(&t->mark, mark, now) != mark)
		return;
	struct machine_row *r = row_of(tables_of(t), key_of(p, t), t->marked);
	struct task_struct *curr = BPF_CORE_READ(queue, curr);
	const struct occupied o = { cpu, key_of_current(curr), BPF_CORE_READ(curr, sched_info.last_arrival) };
	if (!r)
		return;
	const u32 top = wait_account(p, t, r, &o, queued, from, now);
	const u64 length = t->length + (now - queued);
	if (length > r->longest) {
		r->longest = length;
		r->longest_culprit = top;
	}
}

SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task, *self = bpf_get_current_task_btf();
	if (!p)
		return 0;
	struct task_wait *t = bpf_task_storage_get(&waits, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct rq *queue = BPF_CORE_READ(p, se.cfs_rq, rq);
	if (!t || !queue)
		return 0;
	/* Neither clock is older than what was counted for the task: our own one stands while a hypervisor has this CPU. */
	const u64 own = BPF_CORE_READ(self, se.cfs_rq, rq, clock), clock = BPF_CORE_READ(queue, clock);
	const u64 now = own > clock ? own : clock;
	if (control.root && (u32)p->tgid == control.root)
		t->marked = 1;
	if (!t->listed)
		t->delay = p->sched_info.run_delay;
	t->listed = 1;
	const u32 tid = p->pid, *key = control.keys ? bpf_map_lookup_elem(&keys, &tid) : 0;
	t->key = key ? *key : 0;
	wait_goes_on(p, t, queue, now);
	t->tables = 1 + (control.epoch & 1);
	if (!control.lists)
		return 0;
	/* The kernel's sum of a running task is as old as the clock of its run queue. */
	const u64 late = p->on_cpu && now > clock ? now - clock : 0;
	const u64 ran = p->se.sum_exec_runtime + late;
	struct machine_task out = { .ran = ran > t->ran ? ran - t->ran : 0, .at = now, .group = group_of(p), .tid = tid,
	                            .tgid = p->tgid,
	                            .cpu = BPF_CORE_READ(queue, cpu), .kernel = (p->flags & KERNEL_THREAD) != 0,
	                            .marked = t->marked, .key = key_of(p, t), .stopped = (task_state_of(p) & STOPPED) != 0 };
	t->ran = ran > t->ran ? ran : t->ran;
	comm_of(p, out.comm);
	bpf_seq_write(ctx->meta->seq, &out, sizeof out);
	return 0;
}
