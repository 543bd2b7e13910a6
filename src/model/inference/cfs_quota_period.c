#include "model/inference/cfs_quota_period.h"

#define SAME_INTERRUPT 20000  /* ns within which expiries belong to one interrupt, in any order */

static uint32_t expiry_slot(int64_t timer)
{
	return (uint32_t)((uint64_t)timer * UINT64_C(0x9e3779b97f4a7c15) >> 55) % QUOTA_SLOTS;
}

void timer_expiries_add(struct timer_expiries *r, int64_t timer, int64_t now)
{
	struct expiry *e = &r->slot[expiry_slot(timer)];
	const int64_t interval = e->timer == timer ? now - e->last : INT64_MAX;
	*e = (struct expiry){
		.timer = timer, .last = now, .before = e->timer == timer ? e->last : e->timer == 0 ? r->since : INT64_MAX,
		.min_interval = e->timer == timer && e->min_interval < interval ? e->min_interval : interval,
	};
	if (interval != INT64_MAX)
		quota_pattern_expired(&r->periodic, timer, now, interval, e->min_interval);
}

/* Returns true if the timer expired exactly once between `from` and `now`. */
static bool expired_once(const struct expiry *e, int64_t from, int64_t now)
{
	return e->last > from && e->last <= now && e->before <= from;
}

static bool timer_fits(const struct quota_timer *f, const struct expiry *e, int64_t out, int64_t now)
{
	if (f->contested && e->min_interval < QUOTA_PERIOD_MIN)
		return false;
	return expired_once(e, out, now) && now - e->last <= (f->contested ? QUOTA_CONTESTED_NS : QUOTA_LATEST_NS);
}

static uint8_t lessons_needed(const struct quota_timer *f)
{
	return f->contested ? QUOTA_CONTESTED : QUOTA_LEARNED;
}

static const struct expiry *find_expiry(const struct timer_expiries *r, int64_t timer)
{
	const struct expiry *e = &r->slot[expiry_slot(timer)];
	return e->timer == timer ? e : NULL;
}

/* Returns false if the timer expired in an earlier interrupt than the last repeated expiry (of any timer). */
static bool expired_after(const struct expiry *e, int64_t again)
{
	return e->last + SAME_INTERRUPT > again;
}

/* Returns the last expiry among the timers that expired more than once since `out`; INT64_MIN: none, or contested. Each
 * of these may be the refill timer, if other threads of the group used up the first refill. */
static int64_t last_repeated_expiry(const struct quota_timer *f, const struct timer_expiries *r, int64_t out)
{
	int64_t last = INT64_MIN;
	for (int i = 0; i < QUOTA_SLOTS && !f->contested; i++) {
		const struct expiry *e = &r->slot[i];
		if (e->before != INT64_MAX && e->before > out && e->last > last)
			last = e->last;
	}
	return last;
}

/* Collects the candidates that fit the first wait; none if there are more than QUOTA_TIMERS. */
static void collect_candidates(struct quota_timer *f, const struct timer_expiries *r, int64_t out, int64_t now)
{
	const int64_t again = last_repeated_expiry(f, r, out);
	*f = (struct quota_timer){ .contested = f->contested };
	for (int i = 0; i < QUOTA_SLOTS; i++) {
		if (!timer_fits(f, &r->slot[i], out, now) || !expired_after(&r->slot[i], again))
			continue;
		if (f->n == QUOTA_TIMERS) {
			f->n = 0;
			return;
		}
		f->timer[f->n++] = r->slot[i].timer;
	}
}

/* Returns true if a candidate expired more than once: then it is not certain that one expiry refills the quota
 * completely. */
static bool is_ambiguous(const struct quota_timer *f, const struct timer_expiries *r, int64_t out)
{
	bool again = false;
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find_expiry(r, f->timer[i]);
		again |= e && e->last > out && e->before > out;
	}
	return again;
}

void quota_timer_learn(struct quota_timer *f, const struct timer_expiries *r, int64_t out, int64_t now)
{
	uint8_t n = 0;
	const int64_t again = f->n && f->learned < lessons_needed(f) ? last_repeated_expiry(f, r, out) : INT64_MIN;
	if (is_ambiguous(f, r, out)) {
		*f = (struct quota_timer){ .contested = f->contested };
		return;
	}
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find_expiry(r, f->timer[i]);
		if (e && timer_fits(f, e, out, now) && expired_after(e, again))
			f->timer[n++] = f->timer[i];
	}
	f->n = n;
	if (!n)
		collect_candidates(f, r, out, now);
	f->learned = f->n == 0 ? 0 : f->learned < lessons_needed(f) ? f->learned + 1 : lessons_needed(f);
	for (uint8_t i = 0; i < f->n; i++) {
		const int64_t delay = now - find_expiry(r, f->timer[i])->last;
		f->latest = delay > f->latest ? delay : f->latest;
	}
}

int64_t quota_timer_last(const struct quota_timer *f, const struct timer_expiries *r)
{
	int64_t last = INT64_MIN;
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find_expiry(r, f->timer[i]);
		last = e && e->last > last ? e->last : last;
	}
	return last == INT64_MIN ? INT64_MAX : last;
}

int64_t quota_timer_refill(const struct quota_timer *f, const struct timer_expiries *r, int64_t from, int64_t now)
{
	int64_t at = INT64_MAX;
	for (uint8_t i = 0; i < f->n && f->learned == lessons_needed(f); i++) {
		const struct expiry *e = find_expiry(r, f->timer[i]);
		if (!e || !expired_once(e, from, now))
			return INT64_MAX;
		at = e->last < at ? e->last : at;
	}
	return at;
}
