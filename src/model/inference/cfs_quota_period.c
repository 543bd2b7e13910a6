#include "model/inference/cfs_quota_period.h"

#include <stddef.h>

#define TOGETHER 20000  /* ns: timers that expire in one interrupt, in whatever order */

static uint32_t slot_of(int64_t timer)
{
	return (uint32_t)((uint64_t)timer * UINT64_C(0x9e3779b97f4a7c15) >> 55) % REFILL_SLOTS;
}

void refills_expire(struct refills *r, int64_t timer, int64_t now)
{
	struct expiry *e = &r->slot[slot_of(timer)];
	const int64_t apart = e->timer == timer ? now - e->last : INT64_MAX;
	*e = (struct expiry){
		.timer = timer, .last = now, .before = e->timer == timer ? e->last : e->timer == 0 ? r->since : INT64_MAX,
		.least = e->timer == timer && e->least < apart ? e->least : apart,
	};
}

/* It expired once between `from` and now. */
static bool once(const struct expiry *e, int64_t from, int64_t now)
{
	return e->last > from && e->last <= now && e->before <= from;
}

static bool fits(const struct refill *f, const struct expiry *e, int64_t out, int64_t now)
{
	if (f->contested && e->least < REFILL_PERIOD)
		return false;
	return once(e, out, now) && now - e->last <= (f->contested ? REFILL_CONTESTED : REFILL_LATEST);
}

static uint8_t enough(const struct refill *f)
{
	return f->contested ? REFILLS_CONTESTED : REFILLS_LEARNED;
}

static const struct expiry *find(const struct refills *r, int64_t timer)
{
	const struct expiry *e = &r->slot[slot_of(timer)];
	return e->timer == timer ? e : NULL;
}

/* What the timers tell that expired again, the last one of them at `again`, does not make another one of it. */
static bool behind(const struct expiry *e, int64_t again)
{
	return e->last + TOGETHER > again;
}

/* When the last one expired of those that did so again since `out`.  It may have been any of these, if others of its group
 * have used up what was given first; and then what expired before it only seems to be it. */
static int64_t expired_again(const struct refill *f, const struct refills *r, int64_t out)
{
	int64_t last = INT64_MIN;
	for (int i = 0; i < REFILL_SLOTS && !f->contested; i++) {
		const struct expiry *e = &r->slot[i];
		if (e->before != INT64_MAX && e->before > out && e->last > last)
			last = e->last;
	}
	return last;
}

/* Too many: nothing tells them apart. */
static void begin(struct refill *f, const struct refills *r, int64_t out, int64_t now)
{
	const int64_t again = expired_again(f, r, out);
	*f = (struct refill){ .contested = f->contested };
	for (int i = 0; i < REFILL_SLOTS; i++) {
		if (!fits(f, &r->slot[i], out, now) || !behind(&r->slot[i], again))
			continue;
		if (f->n == REFILL_TIMERS) {
			f->n = 0;
			return;
		}
		f->timer[f->n++] = r->slot[i].timer;
	}
}

/* More than once: if it was that one, not all was given, or not at once, and others may only seem to be it. */
static bool doubtful(const struct refill *f, const struct refills *r, int64_t out)
{
	bool again = false;
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find(r, f->timer[i]);
		again |= e && e->last > out && e->before > out;
	}
	return again;
}

void refill_learn(struct refill *f, const struct refills *r, int64_t out, int64_t now)
{
	uint8_t n = 0;
	const int64_t again = f->n && f->learned < enough(f) ? expired_again(f, r, out) : INT64_MIN;
	if (doubtful(f, r, out)) {
		*f = (struct refill){ .contested = f->contested };
		return;
	}
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find(r, f->timer[i]);
		if (e && fits(f, e, out, now) && behind(e, again))
			f->timer[n++] = f->timer[i];
	}
	f->n = n;
	if (!n)
		begin(f, r, out, now);
	f->learned = f->n == 0 ? 0 : f->learned < enough(f) ? f->learned + 1 : enough(f);
	for (uint8_t i = 0; i < f->n; i++) {
		const int64_t took = now - find(r, f->timer[i])->last;
		f->latest = took > f->latest ? took : f->latest;
	}
}

int64_t refill_last(const struct refill *f, const struct refills *r)
{
	int64_t last = INT64_MIN;
	for (uint8_t i = 0; i < f->n; i++) {
		const struct expiry *e = find(r, f->timer[i]);
		last = e && e->last > last ? e->last : last;
	}
	return last == INT64_MIN ? INT64_MAX : last;
}

int64_t refill_at(const struct refill *f, const struct refills *r, int64_t from, int64_t now)
{
	int64_t at = INT64_MAX;
	for (uint8_t i = 0; i < f->n && f->learned == enough(f); i++) {
		const struct expiry *e = find(r, f->timer[i]);
		if (!e || !once(e, from, now))
			return INT64_MAX;
		at = e->last < at ? e->last : at;
	}
	return at;
}
