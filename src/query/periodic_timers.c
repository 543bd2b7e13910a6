/* Periodic timers of idle guests (paper, "Investigating a residual timer", Fig. 15).
 *
 * A burst is the time between two sleeps of a vCPU's host thread. It is attributed to the guest process that had most of
 * it, or to the bare idle task. Bursts of one process on one vCPU at a repeating distance are a timer; its cost is the
 * time that other vCPUs and host threads waited for a pCPU that a burst had.
 *
 * Cost: one walk over the status of the vCPU threads and the current threads of the guests, and if a timer was found,
 * over all other gaps. Memory: 24 bytes per burst, at most BURSTS_MAX. */
#include "base/base.h"
#include "query/query_internal.h"

#include "base/bisect.h"

#define BURSTS_MAX (8 << 20)
#define BURSTS_MIN 5             /* fewest bursts of a timer */
#define REGULAR_MIN 0.6          /* minimum share of distances that repeat */
#define BUSY_SHARE_MAX 0.25      /* maximum share of its time for which the process is busy while its guest counts as
                                  * idle */

struct vcpu_burst {
	int64_t start, end;
	uint32_t group : 31, hit : 1;
};

struct burst_group {
	struct periodic found;
	int64_t last;            /* start of its latest burst, ns */
	int64_t *distance;
	size_t distances, distance_cap;
	bool is_timer;
};

/* Bursts of one vCPU, in order of time. */
struct vcpu_bursts {
	uint32_t vcpu;
	int32_t host_thread;
	struct vcpu_burst *burst;
	size_t bursts, cap;
};

struct periodic_search {
	const struct catalog *catalog;
	int64_t from, to;
	struct resolver r;
	struct vcpu_bursts *lane;
	size_t lanes, lane_cap, bursts;
	struct burst_group *group;
	size_t groups, group_cap;
	struct map group_by_name;  /* (vcpu << 32 | name) -> index into group, for the current vCPU */
	struct error *err;
};

/* Finds the process that had most of [start, end] on the vCPU: its TID; 0: only the idle task; -1: the guest has no
 * trace. */
static int busiest_thread(struct periodic_search *s, uint32_t vcpu, int64_t start, int64_t end, int32_t *tid)
{
	struct { int64_t tid, ns; } seen[8];
	size_t n = 0, best = 0;
	bool traced = false;
	for (int64_t t = start; t <= end;) {
		int64_t value;
		s->r.until = end;
		if (track_at(&s->r, &resolver_cpu(&s->r, vcpu)->running, t, &value) < 0)
			return -1;
		traced = traced || value != HISTORY_NULL;
		size_t i = 0;
		while (i < n && seen[i].tid != value)
			i++;
		if (value > 0 && value <= INT32_MAX && i < sizeof seen / sizeof *seen) {
			if (i == n) {
				seen[n].tid = value;
				seen[n++].ns = 0;
			}
			seen[i].ns += s->r.until - t + 1;
		}
		if (s->r.until == INT64_MAX)
			break;
		t = s->r.until + 1;
	}
	for (size_t i = 1; i < n; i++)
		if (seen[i].ns > seen[best].ns)
			best = i;
	*tid = n ? (int32_t)seen[best].tid : traced ? 0 : -1;
	return 0;
}

static int burst_group_for(struct periodic_search *s, uint32_t vcpu, int32_t tid, int64_t t, uint32_t *index)
{
	uint32_t name = resolver_cpu(&s->r, vcpu)->name, machine = s->catalog->cpu[vcpu].machine;
	bool is_new;
	if (tid >= 0 && resolver_thread_name(&s->r, resolver_thread(&s->r, machine, tid), t, &name) < 0)
		return -1;
	uint64_t *at = map_put(&s->group_by_name, (uint64_t)vcpu << 32 | name, &is_new);
	if (is_new) {
		*at = s->groups;
		*ARRAY_PUSH(s->group, s->groups, s->group_cap) = (struct burst_group){ .found = {
			.machine = (int32_t)machine, .tid = tid, .name = name, .vcpu = vcpu } };
	}
	*index = (uint32_t)*at;
	if (s->group[*index].found.tid != tid)
		s->group[*index].found.tid = -1;  /* each burst may be a new process of the same name */
	return 0;
}

static int lane_add_burst(struct periodic_search *s, struct vcpu_bursts *lane, int64_t start, int64_t end, int64_t busy)
{
	int32_t tid;
	uint32_t index;
	if (busy == 0)
		return 0;
	if (++s->bursts > BURSTS_MAX)
		return error_set(s->err, STATUS_SYSTEM, "ask for a shorter window", "periodic wakeups: more than %d of them",
		                 BURSTS_MAX);
	if (busiest_thread(s, lane->vcpu, start, end, &tid) < 0 || burst_group_for(s, lane->vcpu, tid, end, &index) < 0)
		return -1;
	struct burst_group *g = &s->group[index];
	if (g->found.wakeups++)
		*ARRAY_PUSH(g->distance, g->distances, g->distance_cap) = start - g->last;
	g->last = start;
	g->found.busy += busy;
	*ARRAY_PUSH(lane->burst, lane->bursts, lane->cap) = (struct vcpu_burst){ start, end, index & 0x7fffffff, 0 };
	return 0;
}

/* Adds a vCPU's bursts, from a wakeup of its host thread to its next sleep. */
static int collect_bursts(struct periodic_search *s, uint32_t vcpu)
{
	const struct catalog_thread *th = &s->catalog->thread[s->catalog->cpu[vcpu].host];
	struct vcpu_bursts *lane = ARRAY_PUSH(s->lane, s->lanes, s->lane_cap);
	*lane = (struct vcpu_bursts){ .vcpu = vcpu, .host_thread = s->catalog->cpu[vcpu].host };
	struct history_cursor c;
	struct interval iv;
	int64_t start = 0, busy = 0;
	bool asleep = false, open = false;
	if (th->status == HISTORY_NONE)
		return 0;
	if (history_range(&c, s->catalog->h, th->status, s->from, s->to, s->err) < 0)
		return -1;
	int r;
	while ((r = history_range_next(&c, &iv, s->err)) > 0) {
		int state = iv.value < 0 || iv.value >= HISTORY_STATES ? THREAD_UNKNOWN : s->catalog->thread_state[iv.value];
		if (state == THREAD_BLOCKED && open && lane_add_burst(s, lane, start, iv.start - 1, busy) < 0)
			return -1;
		if (state == THREAD_BLOCKED || state == THREAD_UNKNOWN) {
			open = false;
			asleep = state == THREAD_BLOCKED;
			continue;
		}
		if (asleep) {
			open = true;
			asleep = false;
			start = iv.start;
			busy = 0;
		}
		if (state == THREAD_RUNNING)
			busy += iv.end - iv.start + 1;
	}
	return r;
}

static void group_judge(struct burst_group *g)
{
	size_t n = g->distances, matches = 0;
	int64_t span = 0;
	if (g->found.wakeups < BURSTS_MIN)
		return;
	qsort(g->distance, n, sizeof *g->distance, order_int64);
	int64_t p = g->found.period = g->distance[n / 2];
	for (size_t i = 0; i < n; i++) {
		int64_t off = g->distance[i] % p, distance = off < p - off ? off : p - off;
		span += g->distance[i];
		matches += g->distance[i] <= 2 * p + p / 10 && g->distance[i] >= p - p / 10 && distance <= p / 10;
	}
	g->found.regular = (double)matches / (double)n;
	g->is_timer = g->found.regular >= REGULAR_MIN && (double)g->found.busy <= BUSY_SHARE_MAX * (double)span;
}

static struct vcpu_burst *lane_burst_at(struct vcpu_bursts *lane, int64_t t)
{
	size_t at;
	BISECT(at, lane->bursts, lane->burst[at].end < t);
	return at < lane->bursts && lane->burst[at].start <= t ? &lane->burst[at] : NULL;
}

static int charge_interval(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct periodic_search *s = arg;
	for (size_t i = 0; i < s->lanes && p->host_thread >= 0; i++) {
		struct vcpu_burst *b = s->lane[i].host_thread == p->host_thread ? lane_burst_at(&s->lane[i], start) : NULL;
		if (!b || !s->group[b->group].is_timer)
			continue;
		struct periodic *found = &s->group[b->group].found;
		found->cost += end - start + 1;
		found->switches += !b->hit;
		b->hit = 1;
	}
	return 0;
}

static int charge_row(void *arg, const struct target *row)
{
	struct periodic_search *s = arg;
	struct gap_walk w;
	struct gap gap;
	int r = gap_walk_start(&w, s->catalog, row, s->from, s->to, s->err);
	if (r <= 0)
		return r;
	while ((r = gap_walk_next(&w, &gap, s->err)) > 0)
		if (resolve_walk(&s->r, row, gap.start, gap.end, charge_interval, s) < 0)
			return -1;
	return r;
}

static int charge_timers(struct periodic_search *s)
{
	bool any = false;
	for (size_t i = 0; i < s->groups; i++) {
		group_judge(&s->group[i]);
		any = any || s->group[i].is_timer;
	}
	s->r.shallow = true;
	for (uint32_t m = 0; any && m < s->catalog->machines; m++) {
		struct target machine = { TARGET_MACHINE, m };
		if (gap_each_row(s->catalog, &machine, charge_row, s) < 0)
			return -1;
	}
	return 0;
}

ORDER_BY(compare_timers, struct periodic, FALLING(cost) FALLING(wakeups) RISING(vcpu))

static void list_timers(struct periodic_search *s, struct periodic_list *out)
{
	size_t cap = 0;
	for (size_t i = 0; i < s->groups; i++)
		if (s->group[i].is_timer)
			*ARRAY_PUSH(out->item, out->items, cap) = s->group[i].found;
	ARRAY_SORT(out->item, out->items, compare_timers);
	names_move(&s->r.names, &out->name, &out->names);
}

int periodic_timers_of(const struct catalog *catalog, int64_t from, int64_t to, struct periodic_list *out,
                       struct error *err)
{
	struct periodic_search s = { .catalog = catalog, .err = err };
	int status = 0;
	*out = (struct periodic_list){ 0 };
	s.from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	s.to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	resolver_init(&s.r, catalog, s.from, s.to, err);
	for (uint32_t i = 0; i < catalog->cpus && status == 0 && s.from <= s.to; i++)
		if (catalog->cpu[i].host >= 0)
			status = collect_bursts(&s, i);
	if (status == 0)
		status = charge_timers(&s);
	if (status == 0)
		list_timers(&s, out);
	resolver_release(&s.r);
	for (size_t i = 0; i < s.lanes; i++)
		free(s.lane[i].burst);
	for (size_t i = 0; i < s.groups; i++)
		free(s.group[i].distance);
	free(s.lane);
	free(s.group);
	map_release(&s.group_by_name);
	return status;
}

void periodic_release(struct periodic_list *l)
{
	names_free(l->name, l->names);
	free(l->item);
	*l = (struct periodic_list){ 0 };
}
