// SPDX-License-Identifier: GPL-2.0
/* The BPF program of `stealscope top`, `monitor` and `run` for all threads of a machine: waiting time by process and
 * culprit.
 *
 * The kernel's own accounts (struct sched_info) contain when a task was queued and when the current one got the CPU, in
 * the clock of the run queue. A switch from or to the idle task therefore returns at once: nobody waited. At another
 * switch, the tenure of the outgoing task is appended to the log of its CPU, and the wait of the incoming one is split
 * along this log. Waits that end by a migration are accounted at the migration, and those that go on when user space lists
 * the tasks.
 *
 * Each wait has one mark, the time up to which it is accounted. Whoever exchanges it accounts the part behind it. */
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

/* What is remembered of a task. */
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
	__uint(max_entries, 1);  /* user space sets the number of CPUs */
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

#define OF_EPOCH(name) (control.epoch & 1 ? (void *)&name##_odd : (void *)&name##_even)
#define ATOMIC_ADD(pointer, n) __sync_fetch_and_add((pointer), (n))
/* The verifier checks a step of bpf_loop() once (Linux 5.17), each step of a plain loop on its own. */
#define LOG_WALK_PLAIN 64

/* ---- sums */

static __always_inline void pair_add(u32 victim, u32 culprit, u64 ns, struct machine_row *r)
{
	const struct live_pair_key key = { victim, culprit };
	void *map = OF_EPOCH(pairs);
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

static __always_inline struct machine_row *row_of(u32 victim, u32 marked)
{
	static const struct machine_row zero;
	void *map = OF_EPOCH(rows);
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
	u32 victim, top;
	u64 top_ns;
	struct { u64 ns; u64 culprit; } sum[WALK_SUMS];
};

static __always_inline void walk_add(struct log_walk *w, u32 culprit, u64 ns)
{
	pair_add(w->victim, culprit, ns, w->row);
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


/* Splits [from, to) of a wait along the log of a CPU. Returns the culprit that had most of it. */
static __always_inline u32 wait_split(struct machine_row *r, u32 victim, const struct occupied *o, u64 from, u64 to)
{
	struct machine_cpu *c = bpf_map_lookup_elem(&cpus, &o->cpu);
	if (!c || from >= to)
		return CULPRIT_UNKNOWN;
	struct log_walk w = { .from = from, .end = to, .head = c->head, .cpu = c, .row = r, .victim = victim,
	                      .top = CULPRIT_UNKNOWN };
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
			pair_add(key_of(p, t), CULPRIT_UNKNOWN, end - begin, r);
		begin = end;
	}
	if (begin >= to)
		return CULPRIT_THROTTLED;
	const u32 top = wait_split(r, key_of(p, t), o, begin, to);
	return begin - from > to - begin ? CULPRIT_THROTTLED : top;
}

/* The wait of a task on a CPU ends now. */
static __always_inline void wait_end(struct task_struct *p, struct task_wait *t, u32 cpu, u64 now)
{
	const u64 queued = p->sched_info.last_queued;
	if (!queued || queued >= now || t->bogus)
		return;
	struct machine_row *r = row_of(key_of(p, t), t->marked);
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

/* Appends the tenure of a task. */
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

