/* Operations of the sink of a fuzz target that decodes events: coverage and progress are accepted, damage has a reason. */
#pragma once

#include "trace/trace.h"

static int add_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o, (void)cpu, (void)begin, (void)end;
	return 0;
}

static int report_damage(struct event_sink *o, const char *why, bool continues)
{
	(void)o, (void)continues;
	return why ? 0 : -1;
}

static int report_progress(struct event_sink *o, uint64_t bytes)
{
	(void)o, (void)bytes;
	return 0;
}
