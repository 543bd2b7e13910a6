/* Chance that the slices of one recording do not show.
 *
 * Who wakes by the clock meets what else goes by clocks, ticks, quotas, other such threads, at one phase, which lasts as
 * long as the recording, and is another one in the next.  All slices have the same share of it, so that no resampling tells
 * how much it is.  Such a thread may have one wait more or less each time that it wakes: as much of a difference proves
 * nothing.  The same goes for the wait for a CPU with which a vCPU wakes, of the clocks of all threads of its guest.
 *
 * Phases also make waits come more regularly than by chance, and the slices alike: no loss is surer than if each of its
 * waits had come for itself.
 *
 * Two windows of one recording have the same phases: there it counts for nothing. */
#include <math.h>

#include "compare/diff/ledger.h"

#define WAKES_LEAST 20
#define ALIKE 0.1            /* of a distance between wakes */
#define CLOCK_TELLS 0.75     /* of the distances; where they are random a tenth is */

static void add(struct waits *w, int64_t ns)
{
	w->ns += (double)ns;
	w->squares += (double)ns * (double)ns;
}

void chance_wake(struct chance_walk *c, int64_t at)
{
	const int64_t apart = at - c->last;
	if (c->last && c->apart) {
		c->wakes++;
		c->alike += fabs((double)(apart - c->apart)) < ALIKE * (double)c->apart;
	}
	c->first = c->last ? c->first : at;
	c->apart = c->last ? apart : 0;
	c->last = at;
}

void chance_wait(struct chance_walk *c, int64_t ns, bool wakes)
{
	c->waking = c->wait ? c->waking : wakes;
	c->wait += ns;
}

void chance_runs(struct chance_walk *c)
{
	if (!c->wait)
		return;
	add(&c->all, c->wait);
	if (c->waking)
		add(&c->woken, c->wait);
	c->wait = 0;
}

double chance_clock(const struct chance_walk *c)
{
	if (c->wakes < WAKES_LEAST || (double)c->alike < CLOCK_TELLS * (double)c->wakes)
		return 0;
	return (double)(c->wakes + 1) / (double)(c->last - c->first);
}

/* A wait more at each wake, as long as they usually are; who waits longer than it sleeps does not wake at one phase. */
static double one_more(const struct chance *c)
{
	const double each = c->clocked.ns > 0 ? sqrt(c->rates) * c->clocked.squares / c->clocked.ns : 0;
	return each < 1 ? each : 0;
}

double chance_of_loss(const struct chance side[2], const double span[2])
{
	const double differ = fabs(side[0].clocked.ns / span[0] - side[1].clocked.ns / span[1]);
	return fmin(differ, fmax(one_more(&side[0]), one_more(&side[1])));
}

double chance_of_gaps(const struct chance side[2])
{
	return sqrt(fmax(side[0].rates, side[1].rates));
}
