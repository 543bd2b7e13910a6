#include "model/band.h"

#include <stdio.h>

void band_declare(struct band *b, struct sink *sink, const char *root)
{
	char path[1100];
	snprintf(path, sizeof path, "%s/Clock Band", root);
	*b = (struct band){ sink_attribute(sink, path, HISTORY_INT, 0), INT64_MIN };
}

void band_sample(struct band *b, struct sink *sink, const struct merge_stream *s)
{
	if (s->ev.ts < b->next)
		return;
	const struct trace_info *info = trace_info(s->trace);
	int64_t band = clock_map_band(s->clock, s->ev.ts);
	b->next = s->ev.ts + (info->end - info->begin) / BAND_SAMPLES + 1;
	sink_set(sink, b->attr, band < 0 ? HISTORY_NULL : band);
}
