/* Random variation between recordings that the slices of one recording do not show.
 *
 * A thread that wakes by a timer meets other periodic events (ticks, quotas, other such threads) at one phase. The phase
 * is constant in a recording and differs in the next one. All slices share the phase, so resampling does not show its
 * effect. Such a thread may have one wait more or less at each wakeup: a difference of that size is not significant. The
 * same holds for a vCPU's wait for a CPU at its wakeup, with the timers of all threads of its guest.
 *
 * Phases also make waits more regular than chance, and slices more similar. So a loss's error is at least the error
 * that independent waits would have.
 *
 * Two windows of one recording have the same phases: their variation is 0. */
#include <math.h>

#include "compare/diff/ledger.h"

#define PERIODS_MIN 20
#define PERIOD_SIMILARITY 0.1            /* relative deviation of successive periods that counts as similar */
#define PERIODIC_MIN 0.75     /* fraction of similar periods; random wakeups have about 0.1 */

static void add_wait(struct waits *w, int64_t ns)
{
	w->ns += (double)ns;
	w->squares += (double)ns * (double)ns;
}

void variation_add_wakeup(struct wait_statistics *c, int64_t at)
{
	const int64_t distance = at - c->last_wakeup;
	if (c->last_wakeup && c->last_period) {
		c->periods++;
		c->similar_periods += fabs((double)(distance - c->last_period)) < PERIOD_SIMILARITY * (double)c->last_period;
	}
	c->first_wakeup = c->last_wakeup ? c->first_wakeup : at;
	c->last_period = c->last_wakeup ? distance : 0;
	c->last_wakeup = at;
}

void variation_add_wait(struct wait_statistics *c, int64_t ns, bool wakes)
{
	c->begins_with_wakeup = c->current_wait ? c->begins_with_wakeup : wakes;
	c->current_wait += ns;
}

void variation_end_wait(struct wait_statistics *c)
{
	if (!c->current_wait)
		return;
	add_wait(&c->all_waits, c->current_wait);
	if (c->begins_with_wakeup)
		add_wait(&c->wakeup_waits, c->current_wait);
	c->current_wait = 0;
}

double variation_timer_rate(const struct wait_statistics *c)
{
	if (c->periods < PERIODS_MIN || (double)c->similar_periods < PERIODIC_MIN * (double)c->periods)
		return 0;
	return (double)(c->periods + 1) / (double)(c->last_wakeup - c->first_wakeup);
}

/* Returns the loss of one more typical wait at each wakeup, in CPUs; 0: the thread waits longer than it sleeps, so it
 * does not wake at a constant phase. */
static double loss_per_extra_wait(const struct variation *c)
{
	const double each = c->timer_waits.ns > 0 ? sqrt(c->squared_rates) * c->timer_waits.squares / c->timer_waits.ns : 0;
	return each < 1 ? each : 0;
}

double variation_of_loss(const struct variation side[2], const double window[2])
{
	const double differ = fabs(side[0].timer_waits.ns / window[0] - side[1].timer_waits.ns / window[1]);
	return fmin(differ, fmax(loss_per_extra_wait(&side[0]), loss_per_extra_wait(&side[1])));
}

double variation_of_gaps(const struct variation side[2])
{
	return sqrt(fmax(side[0].squared_rates, side[1].squared_rates));
}
