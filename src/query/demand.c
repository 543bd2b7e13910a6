/* What a subject wanted of a CPU and what it got, from the state sums alone; and which states count as what, for all
 * who ask: the definition of lost time. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"

struct sum {
	const struct topo *topo;
	int64_t t0, t1;
	struct demand *out;
	struct error *err;
};

const uint8_t vcpu_use[VCPU_STATE_COUNT] = {
	[VCPU_RUNNING] = USE_RAN, [VCPU_VMM] = USE_SERVED, [VCPU_IDLE] = USE_SLEPT,
	[VCPU_PREEMPTED] = USE_LOST, [VCPU_HOST_BLOCKED] = USE_LOST, [VCPU_WAKING] = USE_LOST,
};
const uint8_t thread_use[THREAD_STATE_COUNT] = {
	[THREAD_RUNNING] = USE_RAN, [THREAD_BLOCKED] = USE_SLEPT,
	[THREAD_PREEMPTED] = USE_LOST, [THREAD_VIRT_PREEMPTED] = USE_LOST,
};

static enum use use_of(const struct topo *topo, const struct subject *row, int state)
{
	return row->kind == SUBJECT_CPU ? vcpu_use[topo->vcpu_state[state]] : thread_use[topo->thread_state[state]];
}

static int add_row(void *arg, const struct subject *row)
{
	struct sum *s = arg;
	int64_t sums[HISTORY_STATES];
	uint64_t mask;
	uint32_t attr = gap_attribute(s->topo, row, &mask);
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums(s->topo->h, attr, s->t0, s->t1, sums, s->err) < 0)
		return -1;
	s->out->rows++;
	for (int i = 0; i < HISTORY_STATES - 1; i++) {
		enum use use = use_of(s->topo, row, i);
		s->out->ran += use == USE_RAN ? sums[i] : 0;
		s->out->lost += is_lost(use) ? sums[i] : 0;
		s->out->served += use == USE_SERVED ? sums[i] : 0;
		s->out->slept += use == USE_SLEPT ? sums[i] : 0;
		s->out->alive += sums[i];
	}
	return 0;
}

int demand_of(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, struct demand *out,
              struct error *err)
{
	struct sum sum = { topo, t0, t1, out, err };
	*out = (struct demand){ 0 };
	return gap_each_row(topo, s, add_row, &sum);
}

struct cells {
	const struct topo *topo;
	const int64_t *edge;
	unsigned n;
	int64_t (*sums)[HISTORY_STATES], *ran, *lost;
	struct error *err;
};

static int add_row_cells(void *arg, const struct subject *row)
{
	struct cells *c = arg;
	uint64_t mask;
	uint32_t attr = gap_attribute(c->topo, row, &mask);
	if (attr == HISTORY_NONE)
		return 0;
	if (history_sums_cells(c->topo->h, attr, c->edge, c->n, c->sums, c->err) < 0)
		return -1;
	for (int s = 0; s < HISTORY_STATES - 1; s++) {
		enum use use = use_of(c->topo, row, s);
		int64_t *to = use == USE_RAN ? c->ran : is_lost(use) ? c->lost : NULL;
		for (unsigned i = 0; to && i < c->n; i++)
			to[i] += c->sums[i][s];
	}
	return 0;
}

int demand_cells(const struct topo *topo, const struct subject *s, const int64_t *edge, unsigned n, int64_t *ran,
                 int64_t *lost, struct error *err)
{
	struct cells c = { topo, edge, n, mem_new(n, sizeof *c.sums), ran, lost, err };
	int status = gap_each_row(topo, s, add_row_cells, &c);
	free(c.sums);
	return status;
}
