#include "model/inference/group_quota.h"

#include "base/base.h"
#include "model/state/state.h"

#define MISSED_MIN 20000000  /* ns by cpu.stat that the events may miss without a warning ... */
#define UNKNOWN_LIMIT_MIN 1000000  /* least wait in groups with unknown limits for a note, ns: less than one period */
#define MISSED_SHARE 10      /* ... or this part of it, 1 / n */

/* Returns the group above; -1: none. */
static int32_t group_above(const struct control_groups *g, int32_t group)
{
	const char *path = g->group[group].path;
	size_t best = 0;
	int32_t above = -1;
	for (size_t i = 0; i < g->groups; i++) {
		const size_t length = strlen(g->group[i].path);
		if ((int32_t)i != group && length > best && strncmp(path, g->group[i].path, length) == 0 && path[length] == '/') {
			best = length;
			above = (int32_t)i;
		}
	}
	return above;
}

void group_quota_begin(struct model *m)
{
	const struct control_groups *g = m->control_groups;
	if (!g || !g->groups)
		return;
	m->group_above = mem_new(g->groups, sizeof *m->group_above);
	m->growth = mem_new(g->groups, sizeof *m->growth);
	for (size_t i = 0; i < g->groups; i++) {
		m->group_above[i] = group_above(g, (int32_t)i);
		m->growth[i] = (struct group_growth){ .ns = -1, .at = INT64_MIN, .grew_at = INT64_MIN };
	}
}

bool group_has_quota(const struct model *m, int32_t group)
{
	for (; group >= 0; group = m->group_above[group])
		if (m->control_groups->group[group].quota_ns)
			return true;
	return false;
}

/* Returns true if the quota of a group, or of one above, may have kept a thread off in a wait. decided: set to false if a
 * sample after its end is still to come. */
static bool may_be_limited(const struct model *m, const struct group_wait *w, bool *decided)
{
	bool may = false;
	for (int32_t group = w->group; group >= 0; group = m->group_above[group]) {
		const struct control_group *g = &m->control_groups->group[group];
		const struct group_growth *growth = &m->growth[group];
		if (!g->quota_ns)
			continue;
		if (growth->at == INT64_MIN)  /* no samples: the counters at both ends */
			may = may || g->throttled_ns != 0;
		else
			may = may || growth->grew_at > w->from;
		const int64_t counted_by = w->to + (w->has_moved ? g->period_ns : 0);
		*decided = *decided && (growth->at == INT64_MIN || growth->at >= counted_by);
	}
	return may;
}

static void write_wait(struct machine *mc, struct thread *th, int64_t from, int64_t to)
{
	if (th->vcpu != NONE)
		throttling_set(mc->model, &mc->model->vcpu[th->vcpu], from, to, OUT_QUOTA_OR_OTHERS);
	thread_set_at(mc, th, from, THREAD_OUT_BY, OUT_QUOTA_OR_OTHERS);
	thread_set_at(mc, th, to, THREAD_OUT_BY, HISTORY_NULL);
}

/* Returns true if a quota of the group, or of one above, ever throttled a thread, or may have done so. */
static bool has_grown(const struct model *m, int32_t group)
{
	for (; group >= 0; group = m->group_above[group])
		if (m->control_groups->group[group].quota_ns && m->control_groups->group[group].throttled_ns != 0)
			return true;
	return false;
}

enum undecided { UNDECIDED_KEEP, UNDECIDED_IF_GROWN, UNDECIDED_WRITE };

/* Writes the waits that are decided. undecided: the others are kept for the next sample, or written, all or if the quota
 * ever throttled a thread. */
static void decide_waits(struct machine *mc, struct thread *th, enum undecided undecided)
{
	struct group_waits *w = th->waits;
	unsigned kept = 0, i = 0;
	for (; w && i < w->len; i++) {
		bool decided = true;
		const bool may = may_be_limited(mc->model, &w->wait[i], &decided);
		if (!decided && undecided == UNDECIDED_KEEP)
			break;
		if (may || (!decided && (undecided == UNDECIDED_WRITE || has_grown(mc->model, w->wait[i].group))))
			write_wait(mc, th, w->wait[i].from, w->wait[i].to);
	}
	for (; w && i < w->len; i++)
		w->wait[kept++] = w->wait[i];
	if (w)
		w->len = kept;
}

/* Returns the start of a thread's wait in its present group. */
static int64_t wait_since(const struct thread *th)
{
	return th->status_since > th->group_since ? th->status_since : th->group_since;
}

void group_quota_waited(struct machine *mc, struct thread *th, bool has_moved)
{
	const int64_t from = wait_since(th), to = mc->model->sink.now;
	if (mc->has_throttled || th->status != THREAD_PREEMPTED || from >= to)
		return;
	if (th->shown_group != th->group)
		mc->model->unknown_limit_ns += to - from;
	if (!group_has_quota(mc->model, th->group))
		return;
	decide_waits(mc, th, UNDECIDED_KEEP);
	if (!th->waits)
		th->waits = mem_new(1, sizeof *th->waits);
	struct group_waits *w = th->waits;
	if (w->len == GROUP_WAITS && w->wait[w->len - 1].group != th->group)
		decide_waits(mc, th, UNDECIDED_IF_GROWN);
	if (w->len == GROUP_WAITS) {
		w->len--;
		w->wait[w->len - 1].to = w->wait[w->len].to;
		w->wait[w->len - 1].has_moved |= w->wait[w->len].has_moved;
	}
	w->wait[w->len++] = (struct group_wait){ from, to, th->group, has_moved };
}

void group_quota_settle(struct machine *mc, struct thread *th, int64_t from, int64_t to)
{
	struct group_waits *w = th->waits;
	const int64_t end = w && w->len ? w->wait[w->len - 1].to : from;
	while (w && w->len && w->wait[w->len - 1].to > from) {
		w->wait[w->len - 1].to = from;
		if (w->wait[w->len - 1].from < from)
			break;
		w->len--;
	}
	decide_waits(mc, th, UNDECIDED_WRITE);
	if (end > to)
		w->wait[w->len++] = (struct group_wait){ to, end, th->group, false };
}

void group_quota_sample(struct machine *mc, const struct event *ev)
{
	struct model *m = mc->model;
	const int64_t group = ev->group.group;
	uint64_t tid, p;
	if (mc != m->grouped || !m->growth || group < 0 || group >= (int64_t)m->control_groups->groups || ev->group.ns < 0)
		return;
	struct group_growth *g = &m->growth[group];
	if (ev->group.ns > g->ns && (g->ns >= 0 || ev->group.ns > 0))
		g->grew_at = m->sink.now;
	g->first_ns = g->ns < 0 ? ev->group.ns : g->first_ns;
	g->ns = ev->group.ns;
	g->at = m->sink.now;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		decide_waits(mc, (struct thread *)(uintptr_t)p, UNDECIDED_KEEP);
}

void group_quota_thread_end(struct machine *mc, struct thread *th, bool at_end)
{
	decide_waits(mc, th, UNDECIDED_IF_GROWN);
	free(th->waits);
	th->waits = NULL;
	const bool waits = th->status == THREAD_PREEMPTED && th->vcpu == NONE && !mc->has_throttled;
	if (!at_end || !waits || !group_has_quota(mc->model, th->group))
		return;
	/* It still waits: cpu.stat does not count an interval that has not ended. */
	thread_set_at(mc, th, wait_since(th), THREAD_OUT_BY, OUT_QUOTA_OR_OTHERS);
}

void group_quota_exact(struct machine *mc, const struct thread *th, int64_t ns)
{
	for (int32_t g = th->group; g >= 0 && mc->model->growth; g = mc->model->group_above[g])
		mc->model->growth[g].exact += ns;
}

void group_quota_add_notes(const struct machine *mc, struct notes *notes)
{
	const struct model *m = mc->model;
	char a[TIME_TEXT], b[TIME_TEXT];
	if (mc == m->grouped && !mc->has_throttled && m->unknown_limit_ns >= UNKNOWN_LIMIT_MIN)
		note_add(notes, GROUP_LIMIT_UNKNOWN, mc->name, m->seen_groups.groups, m->seen_groups.group[0].path,
		         time_duration(a, m->unknown_limit_ns));
	for (size_t i = 0; m->growth && mc == m->grouped && mc->has_throttled && i < m->control_groups->groups; i++) {
		const struct group_growth *g = &m->growth[i];
		const int64_t counted = g->ns - g->first_ns, missed = counted - g->exact;
		const int64_t begun = m->control_groups->group[i].period_ns;  /* an interval that began before the trace */
		if (g->ns >= 0 && missed > MISSED_MIN + begun && missed > counted / MISSED_SHARE)
			note_add(notes, THROTTLED_MISSED, mc->name, m->control_groups->group[i].name, time_duration(a, counted),
			         time_duration(b, g->exact));
	}
}

void group_quota_release(struct model *m)
{
	free(m->group_above);
	free(m->growth);
}
