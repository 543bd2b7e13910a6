#include "model/band.h"

#include <stdio.h>

void band_declare(struct band *b, struct sink *sink, const char *root, const struct trace *trace,
                  const struct clock_map *clock)
{
	const struct trace_info *info = trace_info(trace);
	char path[1100];
	snprintf(path, sizeof path, "%s/Clock Band", root);
	*b = (struct band){ .clock = clock, .attr = sink_attribute(sink, path, HISTORY_INT, 0), .next = INT64_MIN,
		.every = info->end > info->begin ? (info->end - info->begin) / BAND_SAMPLES + 1 : 1 };
}

void band_sample(struct band *b, struct sink *sink, int64_t guest_ns)
{
	if (guest_ns < b->next)
		return;
	int64_t band = clock_map_band(b->clock, guest_ns);
	b->next = guest_ns + b->every;
	sink_set(sink, b->attr, band < 0 ? HISTORY_NULL : band);
}
