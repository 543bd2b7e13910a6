#include "model/inference/quota_pattern.h"

#include "base/base.h"
#include "model/state/state.h"

#define PERIOD_ERROR 100      /* intervals between expiries differ by less than a period / n */
#define DELAY_MAX 5000000     /* maximum time from the expiry to the end of the wait, ns ... */
#define DELAY_SHARE 4         /* ... and part of the wait, 1 / n */
#define WAITS_MIN 8           /* minimum number of waits for a pattern ... */
#define NS_SHARE 0.4          /* ... their share in the time of all waits ... */
#define CHANCE 3              /* ... and their number, relative to that by chance */

void quota_pattern_expired(struct periodic_expiries *e, int64_t timer, int64_t at, int64_t interval, int64_t period)
{
	if (period < PATTERN_PERIOD_MIN || interval - period > period / PERIOD_ERROR)
		return;
	e->recent[e->next].timer = timer;
	e->recent[e->next].at = at;
	e->recent[e->next].period = period;
	e->next = (e->next + 1) % PATTERN_RECENT;
}

static void add_wait(struct quota_pattern *p, int64_t timer, int64_t period, int64_t ns)
{
	struct pattern_timer *least = &p->timer[0];
	for (int i = 0; i < PATTERN_TIMERS; i++) {
		struct pattern_timer *t = &p->timer[i];
		if (t->timer == timer && t->ns) {
			t->ns += ns;
			t->waits++;
			t->period = period < t->period ? period : t->period;
			return;
		}
		least = t->ns < least->ns ? t : least;
	}
	if (least->ns <= ns)
		*least = (struct pattern_timer){ timer, period, ns, 1 };
}

void quota_pattern_learn(struct quota_pattern *p, const struct periodic_expiries *e, int64_t from, int64_t to,
                         bool preempted)
{
	const int64_t ns = to - from, delay = ns / DELAY_SHARE < DELAY_MAX ? ns / DELAY_SHARE : DELAY_MAX;
	if (ns < PATTERN_WAIT_MIN)
		return;
	p->ns += ns;
	p->delays += delay;
	for (int i = 0; i < PATTERN_RECENT && preempted; i++)
		if (e->recent[i].period && to - e->recent[i].at <= delay)
			add_wait(p, e->recent[i].timer, e->recent[i].period, ns);
}

/* Returns the timer that explains most of the time; NULL: none. */
static const struct pattern_timer *find_timer(const struct quota_pattern *p)
{
	const struct pattern_timer *best = NULL;
	for (int i = 0; i < PATTERN_TIMERS; i++)
		if (p->timer[i].waits >= WAITS_MIN && (double)p->timer[i].ns >= NS_SHARE * (double)p->ns &&
		    p->timer[i].waits >= CHANCE * p->delays / p->timer[i].period &&
		    (!best || p->timer[i].ns > best->ns))
			best = &p->timer[i];
	return best;
}

void quota_pattern_add_notes(const struct model *m, const struct machine *vm, struct notes *notes)
{
	int64_t waited = 0, fits = 0, period = 0;
	char a[TIME_TEXT], b[TIME_TEXT], c[TIME_TEXT];
	const uint32_t vcpus = vm->parent && !vm->parent->parent ? vm->cpus : 0;
	for (uint32_t i = 0; i < vcpus; i++) {
		const struct quota_pattern *p = vm->cpu[i].vcpu == NONE ? NULL : &m->vcpu[vm->cpu[i].vcpu].throttling.pattern;
		const struct pattern_timer *t = p ? find_timer(p) : NULL;
		waited += p ? p->ns : 0;
		fits += t ? t->ns : 0;
		period = t ? t->period : period;
	}
	if (fits)
		note_add(notes, QUOTA_POSSIBLE, vm->name, time_duration(a, waited), time_duration(b, fits),
		         time_duration(c, period));
}
