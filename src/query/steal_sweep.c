#include "query/steal_sweep.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

struct lane_interval {
	int64_t start;         /* ends at the start of the following interval */
	int32_t host_thread;   /* thread that has the pCPU: index into catalog->thread; -1: none */
	uint16_t culprit;
};

struct lane {
	struct lane_interval *interval;
	size_t len, cap;
};

struct sweep_row {
	struct target target;
	uint32_t victim;       /* machine */
	struct gap_walk walk;
	struct interval part;  /* interval that was read but not added yet; start > end: none */
	int lane;              /* lane at the end of the row's last gap ... */
	size_t at;             /* ... and index of its interval there: where the next search starts */
	bool done;
};

static uint16_t culprit_index(const struct resolver *r, const struct resolution *p)
{
	const struct catalog *catalog = r->catalog;
	int reason = 0;
	while (p->actor.kind == FLOW_LIMITED && reason < OUT_REASON_COUNT && r->limit[reason] != p->actor.name)
		reason++;
	if (p->actor.kind == FLOW_LIMITED)
		return (uint16_t)(catalog->machines + CULPRIT_LIMIT + (unsigned)reason);
	if (p->actor.kind == FLOW_WAITING)
		return (uint16_t)(catalog->machines + CULPRIT_WAITING);
	if (p->actor.machine >= 0)
		return (uint16_t)p->actor.machine;
	return (uint16_t)(catalog->machines + (p->actor.kind == FLOW_IDLE_CPU ? CULPRIT_IDLE : CULPRIT_UNKNOWN));
}

/* ---- Lanes */

static void lane_add(struct sweep *s, struct lane *lane, const struct resolution *p, int64_t t)
{
	uint16_t culprit = culprit_index(&s->r, p);
	if (lane->len && lane->interval[lane->len - 1].culprit == culprit &&
	    lane->interval[lane->len - 1].host_thread == p->host_thread)
		return;
	*ARRAY_PUSH(lane->interval, lane->len, lane->cap) = (struct lane_interval){ t, p->host_thread, culprit };
	s->lane_intervals++;
}

/* Fills the lanes with the culprits of each pCPU within [from, to]. Returns 1 = done, 0 = too many intervals, -1 =
 * error. */
static int sweep_fill_lanes(struct sweep *s, int64_t from, int64_t to)
{
	s->lane_intervals = 0;
	for (uint32_t i = 0; i < s->catalog->cpus; i++) {
		struct target cpu = { TARGET_CPU, i };
		struct lane *lane = &s->lane[i];
		lane->len = 0;
		if (s->catalog->machine[s->catalog->cpu[i].machine].kind != MACHINE_HOST)
			continue;
		for (int64_t t = from;; t = s->r.until + 1) {
			struct resolution p;
			s->r.until = to;
			if (resolve_target(&s->r, &cpu, t, &p) < 0)
				return -1;
			lane_add(s, lane, &p, t);
			if (s->lane_intervals > s->capacity)
				return 0;
			if (s->r.until >= to)
				break;
		}
	}
	return 1;
}

/* Returns the interval of the lane that contains t: searches near the hint, then by bisection. */
static size_t lane_find(const struct lane *lane, size_t hint, int64_t t)
{
	size_t at = hint;
	if (hint < lane->len && lane->interval[hint].start <= t)
		for (int i = 0; i < 16; i++, at++)
			if (at + 1 == lane->len || lane->interval[at + 1].start > t)
				return at;
	BISECT(at, lane->len, lane->interval[at].start <= t);
	return at > 0 ? at - 1 : 0;
}

/* Adds the culprits of [t, end], in which the row waited for the lane's pCPU. */
static void row_walk_lane(struct sweep *s, struct sweep_row *row, int cpu, int32_t self, int64_t t, int64_t end)
{
	const struct lane *lane = &s->lane[cpu];
	int64_t *ns = s->ns + row->victim * s->culprits;
	size_t i = lane_find(lane, row->lane == cpu ? row->at : SIZE_MAX, t);
	for (;; i++) {
		const struct lane_interval *p = &lane->interval[i];
		bool last = i + 1 == lane->len || p[1].start > end;
		int64_t next = last ? end + 1 : p[1].start;
		/* a row that waits for itself is a contradiction */
		ns[self >= 0 && p->host_thread == self ? s->catalog->machines + CULPRIT_UNKNOWN : p->culprit] += next - t;
		t = next;
		if (last)
			break;
	}
	row->lane = cpu;
	row->at = i;
}

/* ---- Rows */

static int sweep_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct sweep *s = arg;
	s->ns[s->victim * s->culprits + culprit_index(&s->r, p)] += end - start + 1;
	return 0;
}

/* Adds the part of a gap within the slice. */
static int sweep_add_part(struct sweep *s, struct sweep_row *row, int64_t t, int64_t end, int64_t state)
{
	s->victim = row->victim;
	while (t <= end) {
		int cpu;
		int32_t self;
		s->r.until = end;
		int simple = resolve_awaited_cpu(&s->r, &row->target, state, t, &cpu, &self);
		int64_t until = s->r.until;
		if (simple < 0)
			return -1;
		if (simple)
			row_walk_lane(s, row, cpu, self, t, until);
		else if (resolve_walk(&s->r, &row->target, t, until, sweep_add, s) < 0)
			return -1;
		t = until + 1;
	}
	return 0;
}

static int sweep_add_row(struct sweep *s, struct sweep_row *row, int64_t from, int64_t to)
{
	while (!row->done) {
		if (row->part.start > row->part.end) {
			int r = gap_walk_next_state(&row->walk, &row->part, s->err);
			if (r < 0)
				return -1;
			if (r == 0) {
				row->done = true;
				break;
			}
		}
		int64_t start = row->part.start > from ? row->part.start : from;
		int64_t end = row->part.end < to ? row->part.end : to;
		if (start > to)
			break;
		if (sweep_add_part(s, row, start, end, row->part.value) < 0)
			return -1;
		if (row->part.end > to)
			break;
		row->part = (struct interval){ 1, 0, 0 };
	}
	row->lane = -1;
	return 0;
}

static int sweep_find_rows(struct sweep *s)
{
	for (size_t i = 0; i < s->rows->len; i++) {
		const struct gap_row *is = &s->rows->row[i];
		struct sweep_row row = { .target = is->target, .victim = is->victim, .part = { 1, 0, 0 }, .lane = -1 };
		int r = gap_walk_start(&row.walk, s->catalog, &is->target, s->from, s->to, s->err);
		if (r < 0)
			return -1;
		if (r == 0)
			continue;
		if (s->row_len == SWEEP_ROWS)
			return 0;
		*ARRAY_PUSH(s->row, s->row_len, s->row_cap) = row;
	}
	return 1;
}

int sweep_open(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err)
{
	*s = (struct sweep){ .catalog = catalog, .rows = rows, .from = from, .to = to, .at = from, .length = to - from,
		.culprits = catalog->machines + CULPRIT_OTHERS, .capacity = SWEEP_INTERVALS, .err = err };
	s->ns = mem_new(catalog->machines * s->culprits, sizeof *s->ns);
	s->lane = mem_new(catalog->cpus, sizeof *s->lane);
	resolver_init(&s->r, catalog, from, to, err);
	s->r.shallow = true;
	return sweep_find_rows(s);
}

/* Sweeps a slice; each slice is as long as the capacity of the lanes allows. */
int sweep_step(struct sweep *s)
{
	int64_t end;
	for (;;) {
		end = s->row_len && s->length < s->to - s->at ? s->at + s->length : s->to;
		int full = s->row_len ? sweep_fill_lanes(s, s->at, end) : 1;
		if (full < 0)
			return -1;
		if (full || end == s->at)
			break;
		s->length = (end - s->at) / 2;
	}
	for (size_t i = 0; i < s->row_len; i++)
		if (sweep_add_row(s, &s->row[i], s->at, end) < 0)
			return -1;
	if (end >= s->to)
		return 1;
	s->at = end + 1;
	if (s->lane_intervals < s->capacity / 4)
		s->length = s->length < INT64_MAX / 2 ? 2 * s->length + 1 : s->length;
	return 0;
}

void sweep_release(struct sweep *s)
{
	for (uint32_t i = 0; s->lane && i < s->catalog->cpus; i++)
		free(s->lane[i].interval);
	free(s->lane);
	free(s->row);
	free(s->ns);
	if (s->catalog)
		resolver_release(&s->r);
	*s = (struct sweep){ 0 };
}
