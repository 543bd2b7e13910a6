/* CPU demand of a target, from the state sums alone: its running time, and the time in which it was runnable and did not
 * run. The tables of states below define lost time for all queries. */
#include "base/base.h"
#include "query/query_internal.h"

struct demand_sum {
	const struct catalog *catalog;
	int64_t t0, t1;
	struct demand *out;
	struct error *err;
};

const uint8_t vcpu_use[VCPU_STATE_COUNT] = {
	[VCPU_RUNNING] = USE_RAN, [VCPU_VMM] = USE_VMM, [VCPU_IDLE] = USE_SLEPT,
	[VCPU_PREEMPTED] = USE_LOST, [VCPU_HOST_BLOCKED] = USE_LOST, [VCPU_WAKING] = USE_LOST,
};
const uint8_t thread_use[THREAD_STATE_COUNT] = {
	[THREAD_RUNNING] = USE_RAN, [THREAD_BLOCKED] = USE_SLEPT,
	[THREAD_PREEMPTED] = USE_LOST, [THREAD_VIRT_PREEMPTED] = USE_LOST,
};

static enum use use_of_state(const struct catalog *catalog, const struct target *row, int state)
{
	return row->kind == TARGET_CPU ? vcpu_use[catalog->vcpu_state[state]] : thread_use[catalog->thread_state[state]];
}

static int demand_add_row(void *arg, const struct target *row)
{
	struct demand_sum *s = arg;
	int64_t sums[HISTORY_STATES];
	uint64_t mask;
	uint32_t attr = gap_attribute(s->catalog, row, &mask);
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(s->catalog->h, attr, s->t0, s->t1, sums, s->err) < 0)
		return -1;
	s->out->rows++;
	for (int i = 0; i < HISTORY_STATES - 1; i++) {
		enum use time_use = use_of_state(s->catalog, row, i);
		s->out->ran += time_use == USE_RAN ? sums[i] : 0;
		s->out->lost += use_is_lost(time_use) ? sums[i] : 0;
		s->out->vmm_ns += time_use == USE_VMM ? sums[i] : 0;
		s->out->slept += time_use == USE_SLEPT ? sums[i] : 0;
		s->out->alive += sums[i];
	}
	return 0;
}

int demand_of(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1, struct demand *out,
              struct error *err)
{
	struct demand_sum demand_sum = { catalog, t0, t1, out, err };
	*out = (struct demand){ 0 };
	return gap_each_row(catalog, target, demand_add_row, &demand_sum);
}

struct demand_cells_sum {
	const struct catalog *catalog;
	const int64_t *edge;
	unsigned n;
	int64_t (*sums)[HISTORY_STATES], *ran, *lost;
	struct error *err;
};

static int demand_cells_add_row(void *arg, const struct target *row)
{
	struct demand_cells_sum *c = arg;
	uint64_t mask;
	uint32_t attr = gap_attribute(c->catalog, row, &mask);
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums_cells(c->catalog->h, attr, c->edge, c->n, c->sums, c->err) < 0)
		return -1;
	for (int s = 0; s < HISTORY_STATES - 1; s++) {
		enum use time_use = use_of_state(c->catalog, row, s);
		int64_t *to = time_use == USE_RAN ? c->ran : use_is_lost(time_use) ? c->lost : NULL;
		for (unsigned i = 0; to && i < c->n; i++)
			to[i] += c->sums[i][s];
	}
	return 0;
}

int demand_cells(const struct catalog *catalog, const struct target *target, const int64_t *edge, unsigned n, int64_t *ran,
                 int64_t *lost, struct error *err)
{
	struct demand_cells_sum c = { catalog, edge, n, mem_new(n, sizeof *c.sums), ran, lost, err };
	int status = gap_each_row(catalog, target, demand_cells_add_row, &c);
	free(c.sums);
	return status;
}
