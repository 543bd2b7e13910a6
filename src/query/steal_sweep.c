#include "query/steal_sweep.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

struct sweep_row {
	struct target target;
	uint32_t index;        /* index of the row in rows->row */
	struct gap_walk walk;
	struct interval part;  /* interval that was read but not added yet; start > end: none */
	int lane;              /* lane at the end of the row's last gap ... */
	size_t at;             /* ... and index of its interval there: where the next search starts */
	bool done;
};

static uint32_t sweep_culprit(struct sweep *s, const struct actor *actor)
{
	struct actor culprit = *actor;
	/* By machine: handlers and VMM time count for the machine like its threads. */
	if (s->r.shallow) {
		culprit.tid = -1;
		if (culprit.kind == FLOW_IRQ || culprit.kind == FLOW_HYPERVISOR)
			culprit.kind = FLOW_PREEMPTING;
		culprit.name = culprit.kind == FLOW_LIMITED ? culprit.name : 0;
	}
	return actors_put(&s->culprits, &culprit);
}

static uint32_t sweep_unknown(struct sweep *s)
{
	return actors_put(&s->culprits, &(struct actor){ -1, -1, 0, FLOW_UNKNOWN });
}

/* ---- Sums */

void sweep_add(struct sweep *s, uint32_t culprit, int64_t ns)
{
	while (s->ns_len <= culprit)
		*ARRAY_PUSH(s->ns, s->ns_len, s->ns_cap) = 0;
	if (s->ns[culprit] == 0)
		*ARRAY_PUSH(s->found, s->found_len, s->found_cap) = culprit;
	s->ns[culprit] += ns;
}

/* A thread that waits for itself is a contradiction: unknown. */
static bool is_row_itself(const struct sweep *s, const struct target *row, uint32_t culprit)
{
	const struct actor *p = &s->culprits.actor[culprit];
	if (row->kind != TARGET_THREAD || p->kind != FLOW_PREEMPTING)
		return false;
	const struct catalog_thread *th = &s->catalog->thread[row->index];
	return p->machine == (int32_t)th->machine && p->tid == th->tid;
}

void sweep_end_row(struct sweep *s, const struct target *row, uint32_t index)
{
	struct sums_of_row *of = &s->sums_of[index];
	for (size_t i = 0; i < s->found_len; i++) {
		const uint32_t found = s->found[i];
		const uint32_t culprit = is_row_itself(s, row, found) ? sweep_unknown(s) : found;
		bool is_new;
		uint64_t *number = map_put(&s->sum_by_pair, (uint64_t)index << 32 | culprit, &is_new);
		if (is_new) {
			*ARRAY_PUSH(s->sum, s->sums, s->sum_cap) = (struct sweep_sum){ 0, culprit, 0 };
			*number = s->sums;
			if (of->last)
				s->sum[of->last - 1].next = (uint32_t)*number;
			else
				of->first = (uint32_t)*number;
			of->last = (uint32_t)*number;
		}
		s->sum[*number - 1].ns += s->ns[found];
		s->ns[found] = 0;
	}
	s->found_len = 0;
}

/* ---- Lanes */

static void lane_add(struct sweep *s, struct lane *lane, const struct resolution *p, int64_t t)
{
	uint32_t culprit = sweep_culprit(s, &p->actor);
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
			resolver_trim(&s->r);
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

size_t lane_find(const struct lane *lane, size_t hint, int64_t t)
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
	size_t i = lane_find(lane, row->lane == cpu ? row->at : SIZE_MAX, t);
	for (;; i++) {
		const struct lane_interval *p = &lane->interval[i];
		bool last = i + 1 == lane->len || p[1].start > end;
		int64_t next = last ? end + 1 : p[1].start;
		/* a row that waits for itself is a contradiction */
		sweep_add(s, self >= 0 && p->host_thread == self ? sweep_unknown(s) : p->culprit, next - t);
		t = next;
		if (last)
			break;
	}
	row->lane = cpu;
	row->at = i;
}

/* ---- Rows */

static int sweep_add_resolution(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct sweep *s = arg;
	sweep_add(s, sweep_culprit(s, &p->actor), end - start + 1);
	return 0;
}

/* Adds the part of a gap within the slice. */
static int sweep_add_part(struct sweep *s, struct sweep_row *row, int64_t t, int64_t end, int64_t state)
{
	while (t <= end) {
		int cpu;
		int32_t self;
		resolver_trim(&s->r);
		s->r.until = end;
		int simple = resolve_awaited_cpu(&s->r, &row->target, state, t, &cpu, &self);
		int64_t until = s->r.until;
		if (simple < 0)
			return -1;
		if (simple)
			row_walk_lane(s, row, cpu, self, t, until);
		else if (resolve_walk(&s->r, &row->target, t, until, sweep_add_resolution, s) < 0)
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
	sweep_end_row(s, &row->target, row->index);
	return 0;
}

static int sweep_find_rows(struct sweep *s)
{
	for (size_t i = 0; i < s->rows->len; i++) {
		const struct gap_row *is = &s->rows->row[i];
		struct sweep_row row = { .target = is->target, .index = (uint32_t)i, .part = { 1, 0, 0 }, .lane = -1 };
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

void sweep_init(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
                struct error *err)
{
	*s = (struct sweep){ .catalog = catalog, .rows = rows, .from = from, .to = to, .at = from, .length = to - from,
		.capacity = SWEEP_INTERVALS, .err = err };
	s->sums_of = mem_new(rows->len, sizeof *s->sums_of);
	s->lane = mem_new(catalog->cpus, sizeof *s->lane);
	resolver_init(&s->r, catalog, from, to, err);
}

int sweep_open(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, bool by_machine, int64_t from,
               int64_t to, struct error *err)
{
	sweep_init(s, catalog, rows, from, to, err);
	s->r.shallow = by_machine;
	return sweep_find_rows(s);
}

/* Each slice is as long as the capacity of the lanes allows. */
int sweep_begin_slice(struct sweep *s, bool fill, int64_t *end)
{
	for (;;) {
		*end = fill && s->length < s->to - s->at ? s->at + s->length : s->to;
		int full = fill ? sweep_fill_lanes(s, s->at, *end) : 1;
		if (full < 0)
			return -1;
		if (full || *end == s->at)
			return 0;
		s->length = (*end - s->at) / 2;
	}
}

int sweep_end_slice(struct sweep *s, int64_t end)
{
	if (end >= s->to)
		return 1;
	s->at = end + 1;
	if (s->lane_intervals < s->capacity / 4)
		s->length = s->length < INT64_MAX / 2 ? 2 * s->length + 1 : s->length;
	return 0;
}

int sweep_step(struct sweep *s)
{
	int64_t end;
	if (sweep_begin_slice(s, s->row_len > 0, &end) < 0)
		return -1;
	for (size_t i = 0; i < s->row_len; i++)
		if (sweep_add_row(s, &s->row[i], s->at, end) < 0)
			return -1;
	return sweep_end_slice(s, end);
}

void sweep_release(struct sweep *s)
{
	for (uint32_t i = 0; s->lane && i < s->catalog->cpus; i++)
		free(s->lane[i].interval);
	free(s->lane);
	free(s->row);
	free(s->ns);
	free(s->found);
	free(s->sum);
	free(s->sums_of);
	map_release(&s->sum_by_pair);
	actors_release(&s->culprits);
	if (s->catalog)
		resolver_release(&s->r);
	*s = (struct sweep){ 0 };
}
