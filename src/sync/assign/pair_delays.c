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

int64_t sync_delay_slice_ns(const struct trace_info *guest)
{
	const uint64_t length = (uint64_t)guest->end - (uint64_t)guest->begin;  /* unsigned, because implausible times may
	                                                                         * differ by more than int64_t */
	return guest->end > guest->begin ? (int64_t)(length / SYNC_DELAY_SLICES) + 1 : 1;
}

/* Records a pair in the histogram. distance: ns from the clock towards the side that the pair bounds; negative: the pair
 * contradicts the clock. */
static void record_pair(struct sync_delays *d, enum sync_side side, size_t span, int64_t distance, enum sync_pair_kind kind)
{
	if (span >= SYNC_DELAY_SLICES || distance == INT64_MIN)
		return;
	if (distance < 0) {
		side = side == SYNC_ABOVE ? SYNC_BELOW : SYNC_ABOVE;
		distance = -distance;
		kind = SYNC_PAIR_OUTLIER;
	}
	d->seen[side][sync_delay_step(distance)][span] |= (uint8_t)kind;
}

void delays_fill(struct sync_delays *d, const struct match *m, const struct trace *guest)
{
	const struct trace_info *info = trace_info(guest);
	const int64_t width = sync_delay_slice_ns(info);
	memset(d, 0, sizeof *d);
	if (m->candidate.clock.segments == 0)
		return;
	for (size_t i = 0; i < m->events.len; i++) {
		const struct pair *p = &m->events.pair[i];
		int64_t above;
		if (p->x >= info->begin && !__builtin_sub_overflow(p->y, clock_map_at(&m->candidate.clock, p->x), &above))
			record_pair(d, p->side == HULL_UPPER ? SYNC_ABOVE : SYNC_BELOW, (size_t)((p->x - info->begin) / width),
			          p->side == HULL_UPPER ? above : -above, p->rejected ? SYNC_PAIR_OUTLIER : SYNC_PAIR_EVENT);
	}
	const struct window_distances *nearest = m->inside_share >= 0 ? m->containment.nearest : NULL;
	for (int side = SYNC_ABOVE; side <= SYNC_BELOW && nearest; side++)
		for (size_t span = 0; span < SYNC_DELAY_SLICES; span++)
			if (nearest->ns[side][span] < INT64_MAX)
				record_pair(d, (enum sync_side)side, span, nearest->ns[side][span], SYNC_PAIR_CONTAINMENT);
}
