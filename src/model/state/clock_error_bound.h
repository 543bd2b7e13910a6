/* Writes the error bound of each guest's clock as an attribute: "/Virtual Machines/<VM>/Clock Band", ns; null: unknown.
 *
 * The bound is sampled at about CLOCK_BOUND_SAMPLES events spread over the guest's trace. If the clock stepped at an
 * unknown time, the bound includes the step's size, written at the first event in the ambiguous interval and at the
 * first event after it. So a reader of the history has the error bound at any time without the clocks. */
#pragma once

#include "model/model_sink.h"
#include "sync/sync.h"

#define CLOCK_BOUND_SAMPLES 256

struct clock_error_attr {
	const struct clock_map *clock;
	uint32_t attr;
	int64_t next, every; /* time of the next sample, and time between samples, guest ns */
	int64_t edge;        /* next time at which an ambiguous interval of a step begins or ends, host ns */
};

/* Declares the attribute. root: the machine's path, "/Virtual Machines/Debian"; the clock is borrowed. */
void clock_error_attr_declare(struct clock_error_attr *b, struct model_sink *sink, const char *root,
                              const struct trace *trace, const struct clock_map *clock);
void clock_error_attr_write(struct clock_error_attr *b, struct model_sink *sink, int64_t guest_ns);
/* Called after an event of the machine: writes the bound if a sample is due. */
static inline void clock_error_attr_sample(struct clock_error_attr *b, struct model_sink *sink, int64_t guest_ns)
{
	if (guest_ns >= b->next || sink->now >= b->edge)
		clock_error_attr_write(b, sink, guest_ns);
}
