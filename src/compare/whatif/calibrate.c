/* Calibration: searches the scheduler parameters with which each task's replayed waits have the recorded lengths. The
 * total wait is not enough: very different slices may share a CPU equally. */
#include "compare/whatif/calibrate.h"

#include <math.h>

#include "base/base.h"

#define CALIBRATED 200000    /* most bursts used for calibration */

static const int64_t slices[] = { 1000000, 2000000, 3000000, 4000000, 6000000, 8000000, 12000000, 24000000 };
static const int64_t credits[] = { 0, 3000000, 6000000, 12000000 };
/* Not multiples of the slices, to avoid resonance between slices and moves. */
static const int64_t next_balance[] = { 7000000, 13000000, 29000000, 61000000, 127000000, 251000000 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

double demand_mismatch(const struct host_demand *d)
{
	double *more = mem_new(d->name_groups, sizeof *more), off = 0, all = 0;
	for (size_t i = 0; i < d->tasks; i++) {
		more[d->task[i].name_group] += task_waits(&d->task[i]) - (double)d->task[i].waited;
		all += (double)d->task[i].waited;
	}
	for (uint32_t i = 0; i < d->name_groups; i++)
		off += fabs(more[i]);
	free(more);
	return all > 0 ? off / all : 0;
}

/* Relative difference between the distributions of replayed and recorded wait lengths: mean distance per ns waited, in
 * half octaves. */
static double wait_mismatch(const struct host_demand *d)
{
	double off = 0, all = 0;
	for (size_t i = 0; i < d->tasks; i++) {
		double moved = 0;
		for (unsigned k = 0; k < WAIT_LENGTHS; k++) {
			moved += d->task[i].replayed_by_length[k] - d->task[i].wait_by_length[k];
			off += fabs(moved);
		}
		all += (double)d->task[i].waited;
	}
	return all > 0 ? off / all : 0;
}

/* Finds the best parameters, with ticks or without; *min is their wait_mismatch(). */
static struct sched_params best_rules(struct host_demand *d, bool ticks, double *min)
{
	struct sched_params best = { 0 };
	*min = INFINITY;
	for (size_t i = 0; i < COUNT(slices); i++)
		for (size_t k = 0; k < COUNT(credits); k++) {
			const struct sched_params params = {
				.slice = slices[i], .credit = credits[k], .tick = ticks ? d->tick : 0, .phase = d->phase
			};
			replay_run(d, &params);
			const double off = wait_mismatch(d);
			if (off < *min)
				best = params;
			*min = off < *min ? off : *min;
		}
	const struct sched_params alone = best;
	for (size_t i = 0; i < COUNT(next_balance) && d->cpus > 1; i++) {
		struct sched_params params = alone;
		params.balance = next_balance[i];
		replay_run(d, &params);
		const double off = wait_mismatch(d);
		if (off < *min)
			best = params;
		*min = off < *min ? off : *min;
	}
	return best;
}

/* Fills *m, best set first. If the recording has ticks, *m gets a set with ticks, in PHASES phases (the phase relative
 * to the threads is random in another run), and a set without ticks. */
static void find_models(struct host_demand *d, struct models *m)
{
	double min, with_ticks = INFINITY;
	const struct sched_params best = best_rules(d, false, &min);
	const struct sched_params ticking = d->tick ? best_rules(d, true, &with_ticks) : best;
	m->params[m->n++] = with_ticks < min ? ticking : best;
	m->length_mismatch = fmin(min, with_ticks);
	m->other_kind = !d->tick ? 0 : with_ticks < min ? PHASES : 1;
	for (unsigned i = with_ticks < min; d->tick && i < PHASES; i++) {
		m->params[m->n] = ticking;
		m->params[m->n++].phase += i * d->tick / PHASES;
	}
	if (with_ticks < min)
		m->params[m->n++] = best;
}

int models_find(const struct host_demand *d, struct models *models, struct error *err)
{
	size_t bursts = 0;
	struct host_demand part;
	for (size_t i = 0; i < d->tasks; i++)
		bursts += d->task[i].bursts;
	double share = bursts > CALIBRATED ? (double)CALIBRATED / (double)bursts : 1;
	int rc = demand_read(&part, d->catalog, d->from, d->from + (int64_t)(share * (double)(d->to - d->from)), err);
	if (rc == 0)
		find_models(&part, models);
	demand_release(&part);
	return rc;
}
