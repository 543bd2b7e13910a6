#include "model/state/clock_error_bound.h"

void clock_error_attr_declare(struct clock_error_attr *b, struct model_sink *sink, const char *root,
                              const struct trace *trace, const struct clock_map *clock)
{
	const struct trace_info *info = trace_info(trace);
	*b = (struct clock_error_attr){ .clock = clock, .next = INT64_MIN, .edge = INT64_MAX,
		.attr = sink_attribute(sink, root, &machine_schema[MACHINE_CLOCK_ERROR], 0),
		.every = info->end > info->begin ? (info->end - info->begin) / CLOCK_BOUND_SAMPLES + 1 : 1 };
}

/* Raises *bound to the size of a step that may have happened at `now`, because its time is unknown. */
static void widen_at_jumps(struct clock_error_attr *b, int64_t now, int64_t *bound)
{
	b->edge = INT64_MAX;
	for (size_t i = 1; i < b->clock->segments; i++) {
		const struct clock_segment *p = &b->clock->segment[i];
		int64_t low, high, unused;
		if (p->placed || p->ambiguous_from >= p->ambiguous_to ||
		    !clock_map_bounds(b->clock, p->ambiguous_from, &low, &unused) ||
		    !clock_map_bounds(b->clock, p->ambiguous_to - 1, &unused, &high))
			continue;
		const int64_t jump = clock_map_error_width(b->clock, p->ambiguous_from), edge = now < low ? low : high + 1;
		if (now >= low && now <= high && jump > *bound)
			*bound = jump;
		if (now < edge && edge < b->edge)
			b->edge = edge;
	}
}

void clock_error_attr_write(struct clock_error_attr *b, struct model_sink *sink, int64_t guest_ns)
{
	int64_t bound = clock_map_error_width(b->clock, guest_ns);
	widen_at_jumps(b, sink->now, &bound);
	b->next = guest_ns + b->every;
	sink_set(sink, b->attr, bound < 0 ? HISTORY_NULL : bound);
}
