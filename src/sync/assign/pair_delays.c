#include "sync/assign/pair_delays.h"

#include <string.h>

int64_t sync_delay_bound(unsigned step)
{
	static const int64_t first[] = { 1, 2, 5 };
	int64_t bound = first[step % 3];
	for (unsigned decade = 0; decade < step / 3; decade++)
		bound *= 10;
	return bound;
}

unsigned sync_delay_step(int64_t ns)
{
	unsigned step = 0;
	while (step + 1 < SYNC_DELAY_STEPS && sync_delay_bound(step) < ns)
		step++;
	return step;
}

int64_t sync_span_ns(const struct trace_info *guest)
{
	const uint64_t length = (uint64_t)guest->end - (uint64_t)guest->begin;  /* of absurd times, beyond int64_t */
	return guest->end > guest->begin ? (int64_t)(length / SYNC_SPANS) + 1 : 1;
}

/* distance: ns from the clock, towards what the pair bounds; a pair on the wrong side contradicts it. */
static void note(struct sync_delays *d, enum sync_side side, size_t span, int64_t distance, enum sync_seen what)
{
	if (span >= SYNC_SPANS || distance == INT64_MIN)
		return;
	if (distance < 0) {
		side = side == SYNC_ABOVE ? SYNC_BELOW : SYNC_ABOVE;
		distance = -distance;
		what = SYNC_SEEN_OUTLIER;
	}
	d->seen[side][sync_delay_step(distance)][span] |= (uint8_t)what;
}

void delays_fill(struct sync_delays *d, const struct match *m, const struct trace *guest)
{
	const struct trace_info *info = trace_info(guest);
	const int64_t width = sync_span_ns(info);
	memset(d, 0, sizeof *d);
	if (m->h.clock.pieces == 0)
		return;
	for (size_t i = 0; i < m->events.len; i++) {
		const struct pair *p = &m->events.pair[i];
		int64_t above;
		if (p->x >= info->begin && !__builtin_sub_overflow(p->y, clock_map_at(&m->h.clock, p->x), &above))
			note(d, p->side == HULL_UPPER ? SYNC_ABOVE : SYNC_BELOW, (size_t)((p->x - info->begin) / width),
			     p->side == HULL_UPPER ? above : -above, p->rejected ? SYNC_SEEN_OUTLIER : SYNC_SEEN_EVENT);
	}
	const struct nearness *nearest = m->share >= 0 ? m->proof.nearest : NULL;
	for (int side = SYNC_ABOVE; side <= SYNC_BELOW && nearest; side++)
		for (size_t span = 0; span < SYNC_SPANS; span++)
			if (nearest->ns[side][span] < INT64_MAX)
				note(d, (enum sync_side)side, span, nearest->ns[side][span], SYNC_SEEN_CONTAINMENT);
}
