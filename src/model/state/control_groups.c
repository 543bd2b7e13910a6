/* Control groups of a machine's threads, and the time for which the quotas of their groups keep threads off.
 *
 * A thread has the group that the session file lists, or that of the thread that forked it, until an event moves it. With
 * events `throttled` the time is exact: from the switch-out of a throttled thread until the event that ends it, or until
 * the thread runs. The kernel keeps the other threads of its group off that CPU too, those that wait there and those that
 * are woken there, but they leave no CPU and have no event: the time of the thread with the event is theirs.
 * If it moves to another group or CPU, the end is unknown: until they run, the quota or others keep them off.
 * O(1) per event, O(threads) when a thread is throttled and when that ends. */
#include "base/base.h"
#include "model/model.h"
#include "model/state/state.h"

#define NEVER INT64_MAX
#define STAY_MIN 100000000  /* ns in a group for which a thread that leaves it counts for a note */

void thread_set_groups(struct model *m, const struct model_groups *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*map_put(&m->groups, (uint64_t)groups[i].tid, NULL) = (uint64_t)sink_id(&m->sink, groups[i].text);
}

void groups_set(struct model *m, const struct control_groups *groups)
{
	if (groups && groups->is_guest && m->machines != 2)  /* of which guest? */
		return;
	m->control_groups = groups;
	m->grouped = m->machine[groups && groups->is_guest ? 1 : 0];
	group_quota_begin(m);
	m->grouped->has_throttled |= groups && groups->has_events;
	for (size_t i = 0; groups && i < groups->members; i++)
		*map_put(&m->group_of, (uint64_t)groups->member[i].tid, NULL) = groups->member[i].group;
}

static void write_text(struct model *m, const char *node, enum group_attr attr, const char *text)
{
	if (text && *text)
		sink_set(&m->sink, sink_attribute(&m->sink, node, &group_schema[attr], 0), sink_id(&m->sink, text));
}

static void write_number(struct model *m, const char *node, enum group_attr attr, int64_t n, int64_t least)
{
	if (n >= least)
		sink_set(&m->sink, sink_attribute(&m->sink, node, &group_schema[attr], 0), n);
}

void groups_write_attributes(struct model *m)
{
	for (size_t i = 0; m->control_groups && i < m->control_groups->groups; i++) {
		const struct control_group *g = &m->control_groups->group[i];
		char *node = mem_printf("%s/" SCHEMA_GROUPS "/%zu", m->grouped->root, i);
		write_text(m, node, GROUP_PATH, g->path);
		write_text(m, node, GROUP_NAME, g->name);
		write_text(m, node, GROUP_CPU_SET, g->cpus);
		write_number(m, node, GROUP_QUOTA, g->quota_ns, 1);
		write_number(m, node, GROUP_PERIOD, g->quota_ns ? g->period_ns : 0, 1);
		write_number(m, node, GROUP_PERIODS, g->periods, 0);
		write_number(m, node, GROUP_THROTTLED, g->throttled, 0);
		write_number(m, node, GROUP_THROTTLED_NS, g->throttled_ns, 0);
		free(node);
	}
}

/* Returns the number of a group that appears in an event only, since it was created or had threads only then. */
static int32_t seen_group(struct model *m, const char *path)
{
	const size_t before = m->seen_groups.groups;
	const uint32_t index = control_groups_put(&m->seen_groups, path);
	if (index == UINT32_MAX)
		return -1;
	const int32_t number = (int32_t)(m->control_groups->groups + index);
	if (m->seen_groups.groups > before) {
		char *node = mem_printf("%s/" SCHEMA_GROUPS "/%d", m->grouped->root, (int)number);
		write_text(m, node, GROUP_PATH, path);
		write_text(m, node, GROUP_NAME, strrchr(path, '/') && strrchr(path, '/')[1] ? strrchr(path, '/') + 1 : path);
		free(node);
	}
	return number;
}

/* limits: the recorded group with the same limits: the group itself, or one around it. */
static void set_group(struct machine *mc, struct thread *th, int32_t group, int32_t limits)
{
	th->shown_group = group;
	th->group = limits;
	th->in_quota = group != limits || group_has_quota(mc->model, limits);
	thread_set(mc, th, THREAD_GROUP, group < 0 ? HISTORY_NULL : group);
}

/* Returns the recorded group with this path, or the nearest one around it: its limits hold there, too. -1: none. */
static int32_t recorded_group(const struct model *m, const char *path)
{
	char *outer = mem_dup(path), *slash;
	int32_t group;
	while ((group = control_groups_find(m->control_groups, outer)) < 0 && (slash = strrchr(outer, '/')))
		*slash = '\0';
	free(outer);
	return group;
}

void group_move(struct machine *mc, const struct event *ev)
{
	struct model *m = mc->model;
	if (mc != m->grouped || !m->control_groups || ev->group_move.path <= 0 || ev->group_move.tid <= 0)
		return;
	struct thread *th = thread_find(mc, ev->group_move.tid);
	const char *path = mc->names.get(mc->names.of, ev->group_move.path);
	const int32_t limits = recorded_group(m, path);
	const bool is_recorded = strcmp(limits < 0 ? "/" : m->control_groups->group[limits].path, path) == 0;
	if (!th)
		th = thread_get(mc, ev->group_move.tid);
	if (!th)
		return;
	if (th->in_quota)
		group_quota_waited(mc, th, true);
	if (th->shown_group >= 0 && m->sink.now - th->group_since > STAY_MIN && !m->threads_moved++)
		m->first_moved = th->tid;
	th->group_since = m->sink.now;
	set_group(mc, th, is_recorded ? limits : seen_group(m, path), limits);
	throttled_arrive(mc, th);
}

void group_join(struct machine *mc, struct thread *th)
{
	const uint64_t *text = mc->index ? NULL : map_find(&mc->model->groups, (uint64_t)th->tid);
	const uint64_t *group = mc == mc->model->grouped ? map_find(&mc->model->group_of, (uint64_t)th->tid) : NULL;
	if (text)
		thread_set(mc, th, THREAD_GROUPS, (int64_t)*text);
	if (group)
		set_group(mc, th, (int32_t)*group, (int32_t)*group);
}

void group_inherit(struct machine *mc, struct thread *th, const struct thread *parent)
{
	if (th->shown_group < 0 && parent->shown_group >= 0)
		set_group(mc, th, parent->shown_group, parent->group);
	th->group_since = mc->model->sink.now;
}

/* The next thread with this TID has another group. */
void group_leave(struct machine *mc, struct thread *th)
{
	if (th->attr[THREAD_GROUPS] != HISTORY_NONE) {
		thread_set(mc, th, THREAD_GROUPS, HISTORY_NULL);
		(void)map_remove(&mc->model->groups, (uint64_t)th->tid);
	}
	if (th->attr[THREAD_GROUP] != HISTORY_NONE) {
		thread_set(mc, th, THREAD_GROUP, HISTORY_NULL);
		(void)map_remove(&mc->model->group_of, (uint64_t)th->tid);
	}
}

void groups_add_notes(const struct machine *mc, struct notes *notes)
{
	const struct model *m = mc->model;
	char stay[TIME_TEXT];
	if (mc == m->grouped && m->threads_moved)
		note_add(notes, THREADS_MOVED, mc->name, time_duration(stay, STAY_MIN), m->threads_moved, (int)m->first_moved);
}

/* ---- throttled threads */

/* Writes the time for which the thread was throttled. to: its end, excluded; NEVER: the history's end. */
static void write_throttled(struct machine *mc, struct thread *th, int64_t to)
{
	const int64_t from = th->throttled_since;
	const enum out_reason why = th->throttled_with == THROTTLED_MAYBE ? OUT_QUOTA_OR_OTHERS : OUT_QUOTA;
	th->throttled_since = NEVER;
	th->throttled_with = THROTTLED_ALONE;
	if (from >= to || (to == NEVER && from > mc->model->sink.now))
		return;
	if (why == OUT_QUOTA)
		group_quota_exact(mc, th, (to == NEVER ? mc->model->sink.now : to) - from);
	if (th->vcpu != NONE) {
		struct vcpu *v = &mc->model->vcpu[th->vcpu];
		throttling_write(mc->model, v, from, to, why);
		v->throttling.throttled_at = mc->model->sink.now;
	}
	thread_set_at(mc, th, from, THREAD_OUT_BY, why);
	if (to != NEVER)
		thread_set_at(mc, th, to, THREAD_OUT_BY, HISTORY_NULL);
}

/* Returns the nearest group with a quota, from a group up; -1: none. */
static int32_t with_quota(const struct model *m, int32_t group)
{
	while (group >= 0 && !m->control_groups->group[group].quota_ns)
		group = m->group_above[group];
	return group;
}

/* Returns the smallest group that a quota throttles on a CPU if it throttles this thread; -1: none, or unknown. */
static int32_t throttled_group(const struct model *m, const struct thread *th)
{
	return th->in_quota && th->group == th->shown_group ? with_quota(m, th->group) : -1;
}

static uint64_t throttled_key(int32_t group, const struct thread *th)
{
	return (uint64_t)(uint32_t)group << 32 | (uint32_t)th->cpu;
}

/* Returns true if the quota that throttles `by` keeps a thread off, too. Real-time threads have no quota. */
static bool is_throttled_with(const struct model *m, const struct thread *th, const struct thread *by)
{
	int32_t group = throttled_group(m, th);
	const int32_t limit = throttled_group(m, by);
	if (th == by || th->on_cpu >= 0 || th->sched != THREAD_PREEMPTED || th->stale || th->nice == NICE_RT)
		return false;
	while (group >= 0 && group != limit)
		group = m->group_above[group];
	return group >= 0 && th->cpu == by->cpu;
}

/* Returns true if the quota of another throttled thread keeps this one off, too. */
static bool find_throttled(const struct machine *mc, const struct thread *th)
{
	const struct model *m = mc->model;
	for (int32_t g = throttled_group(m, th); g >= 0; g = with_quota(m, m->group_above[g])) {
		const uint64_t *tid = map_find(&m->throttled, throttled_key(g, th));
		const struct thread *by = tid ? thread_find(mc, (int64_t)*tid) : NULL;
		const bool waits = by && by->throttled_since != NEVER && by->throttled_with == THROTTLED_ALONE && by->on_cpu < 0;
		if (waits && throttled_group(m, by) == g && is_throttled_with(m, th, by))
			return true;
	}
	return false;
}

/* Updates a thread that may be throttled with others. after: its state if it is so no more. */
static void update_throttled_with(struct machine *mc, struct thread *th, enum throttled_with after)
{
	if (th->throttled_since != NEVER && th->throttled_with == THROTTLED_ALONE)
		return;
	if (th->throttled_with != THROTTLED_WITH)
		after = th->throttled_with;
	const enum throttled_with with = find_throttled(mc, th) ? THROTTLED_WITH : after;
	if (with == th->throttled_with)
		return;
	if (th->throttled_with != THROTTLED_ALONE)
		write_throttled(mc, th, mc->model->sink.now);
	if (with == THROTTLED_ALONE)
		return;
	th->throttled_since = mc->model->sink.now;
	th->throttled_with = with;
}

/* Updates the threads that are throttled with others, and those that may be throttled with this one. */
static void update_throttled(struct machine *mc, const struct thread *by, enum throttled_with after)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		if (th->throttled_with != THROTTLED_ALONE || is_throttled_with(mc->model, th, by))
			update_throttled_with(mc, th, after);
	}
}

void throttled_arrive(struct machine *mc, struct thread *th)
{
	if (th->throttled_since != NEVER && th->throttled_with == THROTTLED_ALONE) {
		update_throttled(mc, th, THROTTLED_MAYBE);
		return;
	}
	if (th->throttled_with == THROTTLED_MAYBE)
		write_throttled(mc, th, mc->model->sink.now);
	update_throttled_with(mc, th, THROTTLED_ALONE);
}

void throttled_end(struct machine *mc, struct thread *th)
{
	if (th->throttled_since == NEVER)
		return;
	write_throttled(mc, th, mc->model->sink.now);
	if (throttled_group(mc->model, th) >= 0)
		update_throttled(mc, th, THROTTLED_ALONE);
}

void throttled_end_all(struct machine *mc, bool close)
{
	uint64_t tid, p;
	for (size_t at = 0; (mc->model->growth || mc->has_throttled) && map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		if (th->in_quota || th->waits)
			group_quota_thread_end(mc, th, true);
		if (th->throttled_since != NEVER && th->on_cpu < 0)
			write_throttled(mc, th, close ? mc->model->sink.now : NEVER);
	}
}

void throttled_switch_out(struct machine *mc, struct thread *th, bool is_runnable)
{
	if (th->throttled_since == NEVER)
		return;
	th->throttled_since = is_runnable ? mc->model->sink.now : NEVER;
	const int32_t group = is_runnable && th->cpu >= 0 ? throttled_group(mc->model, th) : -1;
	if (group < 0)
		return;
	*map_put(&mc->model->throttled, throttled_key(group, th), NULL) = (uint64_t)th->tid;
	update_throttled(mc, th, THROTTLED_ALONE);
}

void throttled_event(struct machine *mc, const struct event *ev)
{
	struct thread *th = thread_find(mc, ev->throttled.tid);
	mc->has_throttled = true;
	if (!th)
		return;
	/* The event of its begin precedes the trace: it was printed when the thread left its CPU. */
	if (!ev->throttled.on && !th->has_left && th->status == THREAD_PREEMPTED && th->status_since <= mc->begin)
		th->throttled_since = mc->begin;
	if (!ev->throttled.on)
		throttled_end(mc, th);
	else if (th->throttled_since == NEVER)
		th->throttled_since = mc->model->sink.now;
	th->throttled_with = THROTTLED_ALONE;
}
