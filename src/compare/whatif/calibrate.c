/* Which rules reproduce a recording: those are the best whose waits are as long as the recorded ones, thread by thread.
 * How much was waited in all would not do: rules of quite other turns may share a CPU alike. */
#include "compare/whatif/calibrate.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define CALIBRATED 200000    /* bursts to calibrate on, at most */

static const int64_t slices[] = { 1000000, 2000000, 3000000, 4000000, 6000000, 8000000, 12000000, 24000000 };
static const int64_t credits[] = { 0, 3000000, 6000000, 12000000 };
/* No multiples of slices: turns and moves would go in step. */
static const int64_t balances[] = { 7000000, 13000000, 29000000, 61000000, 127000000, 251000000 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

double wants_missed(const struct wants *w)
{
	double *more = mem_new(w->kins, sizeof *more), off = 0, all = 0;
	for (size_t i = 0; i < w->tasks; i++) {
		more[w->task[i].kin] += task_waits(&w->task[i]) - (double)w->task[i].waited;
		all += (double)w->task[i].waited;
	}
	for (uint32_t i = 0; i < w->kins; i++)
		off += fabs(more[i]);
	free(more);
	return all > 0 ? off / all : 0;
}

/* The same, and how much longer or shorter the waits are: of each ns waited, by how many half octaves. */
static double unlike(const struct wants *w)
{
	double off = 0, all = 0;
	for (size_t i = 0; i < w->tasks; i++) {
		double moved = 0;
		for (unsigned k = 0; k < WAIT_LENGTHS; k++) {
			moved += w->task[i].lengths_again[k] - w->task[i].lengths[k];
			off += fabs(moved);
		}
		all += (double)w->task[i].waited;
	}
	return all > 0 ? off / all : 0;
}

/* The rules that reproduce it best; of all with ticks, or all without. */
static struct rules best_rules(struct wants *w, bool ticks, double *least)
{
	struct rules best = { 0 };
	*least = INFINITY;
	for (size_t i = 0; i < COUNT(slices); i++)
		for (size_t k = 0; k < COUNT(credits); k++) {
			const struct rules rules = {
				.slice = slices[i], .credit = credits[k], .tick = ticks ? w->tick : 0, .phase = w->phase
			};
			replay_run(w, &rules);
			const double off = unlike(w);
			if (off < *least)
				best = rules;
			*least = off < *least ? off : *least;
		}
	const struct rules alone = best;
	for (size_t i = 0; i < COUNT(balances) && w->cpus > 1; i++) {
		struct rules rules = alone;
		rules.balance = balances[i];
		replay_run(w, &rules);
		const double off = unlike(w);
		if (off < *least)
			best = rules;
		*least = off < *least ? off : *least;
	}
	return best;
}

/* Where the CPUs have a tick, it is not known how it would lie to what the threads do another time. */
static void find(struct wants *w, struct models *m)
{
	double least, with_ticks = INFINITY;
	const struct rules best = best_rules(w, false, &least);
	const struct rules ticking = w->tick ? best_rules(w, true, &with_ticks) : best;
	m->rules[m->n++] = with_ticks < least ? ticking : best;
	m->unlike = fmin(least, with_ticks);
	m->other = !w->tick ? 0 : with_ticks < least ? PHASES : 1;
	for (unsigned i = with_ticks < least; w->tick && i < PHASES; i++) {
		m->rules[m->n] = ticking;
		m->rules[m->n++].phase += i * w->tick / PHASES;
	}
	if (with_ticks < least)
		m->rules[m->n++] = best;
}

int models_find(const struct wants *w, struct models *models, struct error *err)
{
	size_t bursts = 0;
	struct wants part;
	for (size_t i = 0; i < w->tasks; i++)
		bursts += w->task[i].bursts;
	double share = bursts > CALIBRATED ? (double)CALIBRATED / (double)bursts : 1;
	int rc = wants_read(&part, w->topo, w->from, w->from + (int64_t)(share * (double)(w->to - w->from)), err);
	if (rc == 0)
		find(&part, models);
	wants_release(&part);
	return rc;
}
