#include "model/state/clock_error_bound.h"

void band_declare(struct band *b, struct model_sink *sink, const char *root, const struct trace *trace,
                  const struct clock_map *clock)
{
	const struct trace_info *info = trace_info(trace);
	*b = (struct band){ .clock = clock, .next = INT64_MIN, .edge = INT64_MAX,
		.attr = sink_attribute(sink, root, &machine_schema[MACHINE_BAND], 0),
		.every = info->end > info->begin ? (info->end - info->begin) / BAND_SAMPLES + 1 : 1 };
}

/* The clock may have jumped then, and nobody can tell when: rows of that time may be off by the jump. */
static void widen_at_jumps(struct band *b, int64_t now, int64_t *band)
{
	b->edge = INT64_MAX;
	for (size_t i = 1; i < b->clock->pieces; i++) {
		const struct clock_piece *p = &b->clock->piece[i];
		int64_t low, high, unused;
		if (p->placed || p->unsure_from >= p->unsure_to || !clock_map_bounds(b->clock, p->unsure_from, &low, &unused) ||
		    !clock_map_bounds(b->clock, p->unsure_to - 1, &unused, &high))
			continue;
		const int64_t jump = clock_map_band(b->clock, p->unsure_from), edge = now < low ? low : high + 1;
		if (now >= low && now <= high && jump > *band)
			*band = jump;
		if (now < edge && edge < b->edge)
			b->edge = edge;
	}
}

void band_take(struct band *b, struct model_sink *sink, int64_t guest_ns)
{
	int64_t band = clock_map_band(b->clock, guest_ns);
	widen_at_jumps(b, sink->now, &band);
	b->next = guest_ns + b->every;
	sink_set(sink, b->attr, band < 0 ? HISTORY_NULL : band);
}
