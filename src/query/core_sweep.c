#include "query/core_sweep.h"

#include "base/base.h"

#define SIBLINGS_MAX 8

void core_time_count_move(const struct catalog *catalog, struct core_time *time, int from, int to)
{
	if (from < 0 || to < 0 || from == to)
		return;
	const struct catalog_cpu *a = &catalog->cpu[from], *b = &catalog->cpu[to];
	time->moves++;
	time->llc_moves += a->llc_number >= 0 && b->llc_number >= 0 && a->llc_number != b->llc_number;
	time->node_moves += a->node_number >= 0 && b->node_number >= 0 && a->node_number != b->node_number;
}

int core_sweep_open(struct core_sweep *s, const struct catalog *catalog, const struct gap_rows *rows,
                    const int64_t *memory_node, int64_t from, int64_t to, struct error *err)
{
	sweep_init(&s->sweep, catalog, rows, from, to, err);
	s->sweep.r.vcpus_only = true;
	s->row = mem_new(rows->len, sizeof *s->row);
	for (size_t i = 0; i < rows->len; i++) {
		const struct target *target = &rows->row[i].target;
		struct core_sweep_row *row = &s->row[i];
		row->first_cpu = row->last_cpu = -1;
		row->part = (struct interval){ 1, 0, 0 };
		row->memory_node = memory_node[target_machine(catalog, target)];
		const uint64_t mask = target->kind == TARGET_CPU ? catalog->vcpu_ran : catalog->thread_ran;
		const int r = states_walk_start(&row->walk, catalog, target, mask, from, to, err);
		if (r < 0)
			return -1;
		row->done = r == 0;
	}
	return 0;
}

/* ---- Use of the other CPUs of the core */

struct siblings {
	const struct lane *lane[SIBLINGS_MAX];
	size_t at[SIBLINGS_MAX];   /* index of the lane's current interval */
	unsigned n;
};

static void find_siblings(const struct sweep *s, int cpu, int64_t t, struct siblings *out)
{
	out->n = 0;
	const struct catalog_cpu *all = s->catalog->cpu;
	for (int32_t i = all[cpu].sibling; i != cpu && out->n < SIBLINGS_MAX; i = all[i].sibling) {
		out->lane[out->n] = &s->lane[i];
		out->at[out->n++] = lane_find(&s->lane[i], SIZE_MAX, t);
	}
}

/* Adds [t, end], an interval of the row on the pCPU. */
static void add_shared(struct sweep *s, struct core_time *time, int cpu, int64_t t, int64_t end)
{
	struct siblings other;
	find_siblings(s, cpu, t, &other);
	while (t <= end) {
		int64_t next = end + 1;
		bool busy = false, unknown = false;
		for (unsigned i = 0; i < other.n; i++) {
			const struct lane *lane = other.lane[i];
			while (other.at[i] + 1 < lane->len && lane->interval[other.at[i] + 1].start <= t)
				other.at[i]++;
			if (other.at[i] + 1 < lane->len && lane->interval[other.at[i] + 1].start < next)
				next = lane->interval[other.at[i] + 1].start;
			const uint32_t kind = s->culprits.actor[lane->interval[other.at[i]].culprit].kind;
			busy = busy || (kind != FLOW_IDLE_CPU && kind != FLOW_UNKNOWN);
			unknown = unknown || kind == FLOW_UNKNOWN;
		}
		for (unsigned i = 0; busy && i < other.n; i++) {
			const uint32_t sharer = other.lane[i]->interval[other.at[i]].culprit;
			const uint32_t kind = s->culprits.actor[sharer].kind;
			if (kind != FLOW_IDLE_CPU && kind != FLOW_UNKNOWN)
				sweep_add(s, sharer, t, next - 1);
		}
		*(busy ? &time->shared : unknown ? &time->unknown : &time->alone) += next - t;
		t = next;
	}
}

/* ---- Frequency */

static int add_frequency(struct sweep *s, struct core_time *time, int cpu, int64_t t, int64_t end)
{
	const int64_t base = s->catalog->cpu[cpu].base_frequency;
	if (!base || s->catalog->cpu[cpu].khz == HISTORY_NONE)
		return 0;
	while (t <= end) {
		int64_t khz;
		s->r.until = end;
		if (track_at(&s->r, &resolver_cpu(&s->r, (uint32_t)cpu)->khz, t, &khz) < 0)
			return -1;
		if (khz > 0) {
			time->clocked += s->r.until - t + 1;
			if (khz / SLOW_PERCENT < base / 100 || (khz <= INT64_MAX / 100 && base <= INT64_MAX / 100 &&
			                                        khz * 100 < base * SLOW_PERCENT))
				time->slow += s->r.until - t + 1;
		}
		t = s->r.until + 1;
	}
	return 0;
}

/* ---- Rows */

static int add_on_cpu(struct sweep *s, struct core_sweep_row *row, int cpu, int64_t t, int64_t end)
{
	struct core_time *time = &row->time;
	const int64_t ns = end - t + 1;
	time->ran += ns;
	if (cpu < 0) {
		time->unknown += ns;
		return 0;
	}
	core_time_count_move(s->catalog, time, row->last_cpu, cpu);
	row->last_cpu = cpu;
	row->first_cpu = row->first_cpu < 0 ? cpu : row->first_cpu;
	const int32_t node = s->catalog->cpu[cpu].node_number;
	if (node >= 0 && row->memory_node >= 0) {
		time->placed += ns;
		time->remote += node != row->memory_node ? ns : 0;
	}
	if (s->catalog->cpu[cpu].sibling < 0)
		time->unknown += ns;
	else if (s->catalog->cpu[cpu].sibling == cpu)
		time->alone += ns;
	else
		add_shared(s, time, cpu, t, end);
	return add_frequency(s, time, cpu, t, end);
}

/* Adds [t, end], a running interval of the row. */
static int add_interval(struct sweep *s, struct core_sweep_row *row, const struct target *target, int64_t t, int64_t end)
{
	while (t <= end) {
		int cpu;
		resolver_trim(&s->r);
		s->r.until = end;
		if (resolve_occupied_cpu(&s->r, target, t, &cpu) < 0)
			return -1;
		const int64_t until = s->r.until;
		if (add_on_cpu(s, row, cpu, t, until) < 0)
			return -1;
		t = until + 1;
	}
	return 0;
}

/* Adds the part of a row within the slice. */
static int add_row(struct core_sweep *s, size_t i, int64_t from, int64_t to)
{
	struct core_sweep_row *row = &s->row[i];
	const struct target *target = &s->sweep.rows->row[i].target;
	sweep_begin_row(&s->sweep, target, (uint32_t)i);
	while (!row->done) {
		if (row->part.start > row->part.end) {
			const int r = gap_walk_next_state(&row->walk, &row->part, s->sweep.err);
			if (r < 0)
				return -1;
			if (r == 0) {
				row->done = true;
				break;
			}
		}
		const int64_t start = row->part.start > from ? row->part.start : from;
		const int64_t end = row->part.end < to ? row->part.end : to;
		if (start > to)
			break;
		if (add_interval(&s->sweep, row, target, start, end) < 0)
			return -1;
		if (row->part.end > to)
			break;
		row->part = (struct interval){ 1, 0, 0 };
	}
	sweep_end_row(&s->sweep);
	return 0;
}

int core_sweep_step(struct core_sweep *s)
{
	int64_t end;
	if (sweep_begin_slice(&s->sweep, s->sweep.catalog->has_siblings, &end) < 0)
		return -1;
	for (size_t i = 0; i < s->sweep.rows->len; i++)
		if (add_row(s, i, s->sweep.at, end) < 0)
			return -1;
	return sweep_end_slice(&s->sweep, end);
}

void core_sweep_release(struct core_sweep *s)
{
	free(s->row);
	sweep_release(&s->sweep);
	*s = (struct core_sweep){ 0 };
}
