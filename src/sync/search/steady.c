#include "sync/search/steady.h"

#include "sync/estimate/corridor.h"

#define CHANCE_NATS 10.0  /* of evidence that a third must have of its own; its clock was found before it was asked */

static int64_t band_of(const struct clock_map *clock, const struct activity *act)
{
	return clock_map_band(clock, act->begin + (act->end - act->begin) / 2);
}

/* Asks one of the outer thirds.  A clock that suits it, too, held there and perhaps in the middle one. */
static void ask(const struct hypothesis *found, const struct seen *seen, bool last, struct hypothesis *h)
{
	const int64_t begin = seen->act->begin, end = seen->act->end, third = (end - begin) / 3;
	const struct segment asked = { last ? end - third : begin, last ? end : begin + third };
	const struct segment held = { last ? begin + third : begin, last ? end : end - third };
	struct activity act = activity_view(seen->act, asked);
	const struct seen part = { seen->host, seen->vm, &act };
	struct hypothesis own, wide;
	hypothesis_copy(&own, found);
	hypothesis_test(&own, &part);
	hypothesis_near(&wide, found, &act, 0, DOUBTED_NS);
	hypothesis_test(&wide, &part);
	const bool chance = found->clock.piece[0].quality == SYNC_ACCURATE && own.evidence < CHANCE_NATS;
	const bool breaks = wide.clock.pieces > found->clock.pieces;
	const bool open = breaks || (wide.ambiguous > 0 && band_of(&wide.clock, &act) > 11 * band_of(&own.clock, &act) / 10);
	const bool single = found->clock.pieces == 1 && !breaks;
	if (chance || (open && !(single && corridor_join(&h->clock.piece[0], &wide.clock, held, DOUBTED_NS))))
		h->adrift = true;
	for (size_t i = 0; i < h->clock.pieces && (open || h->adrift); i++)
		h->clock.piece[i].quality = SYNC_APPROXIMATE;
	hypothesis_release(&own);
	hypothesis_release(&wide);
	activity_view_end(&act);
}

void steady_doubt(struct hypothesis *h, const struct seen *seen)
{
	struct hypothesis found;
	if (h->clock.pieces == 0)
		return;
	hypothesis_copy(&found, h);
	ask(&found, seen, false, h);
	ask(&found, seen, true, h);
	hypothesis_release(&found);
}
