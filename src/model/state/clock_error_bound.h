/* How sure each guest's clock is, as an attribute: "/Virtual Machines/<VM>/Clock Band", ns, null when unknown.
 *
 * The width of the clock's corridor, sampled at some BAND_SAMPLES events spread over the guest's trace, and where it is
 * that of a jump that cannot be placed, at the first event there and after.  Whoever reads the history then knows the
 * error band of any moment without knowing anything of clocks. */
#ifndef STEALSCOPE_MODEL_STATE_CLOCK_ERROR_BOUND_H
#define STEALSCOPE_MODEL_STATE_CLOCK_ERROR_BOUND_H

#include "model/model_sink.h"
#include "sync/sync.h"

#define BAND_SAMPLES 256

struct band {
	const struct clock_map *clock;
	uint32_t attr;
	int64_t next, every;  /* guest ns */
	int64_t edge;         /* host ns: the next moment at which a jump that cannot be placed begins or ends to matter */
};

/* root: the machine's path, "/Virtual Machines/Debian".  The clock is the caller's. */
void band_declare(struct band *b, struct model_sink *sink, const char *root, const struct trace *trace,
                  const struct clock_map *clock);
void band_take(struct band *b, struct model_sink *sink, int64_t guest_ns);
/* After an event of that machine: takes a sample when one is due. */
static inline void band_sample(struct band *b, struct model_sink *sink, int64_t guest_ns)
{
	if (guest_ns >= b->next || sink->now >= b->edge)
		band_take(b, sink, guest_ns);
}

#endif
