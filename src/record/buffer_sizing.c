#include "record/buffer_sizing.h"

#define SECOND 1000000000
#define PAUSE (SECOND / 20)  /* for each MiB of a buffer */

/* Bytes that come in `ns` at so many a second. */
static uint64_t bytes_in(uint64_t rate, int64_t ns)
{
	const double bytes = (double)rate * (double)ns / SECOND;
	return bytes < 1e18 ? (uint64_t)bytes : (uint64_t)1e18;
}

static uint64_t within(uint64_t x, uint64_t low, uint64_t high)
{
	return x < low ? low : x > high ? high : x;
}

int64_t forecast_pause(uint64_t kilobytes)
{
	return (int64_t)within(PAUSE * kilobytes / 1024, PAUSE, FORECAST_CYCLE);
}

struct forecast forecast_make(const uint64_t *bytes, unsigned cpus, int64_t look, int64_t duration, bool turn,
                              uint64_t available)
{
	struct forecast f = { .cpus = cpus };
	for (unsigned i = 0; i < cpus; i++) {
		const uint64_t rate = (uint64_t)((double)bytes[i] * SECOND / (double)(look > 0 ? look : 1));
		f.rate += rate;
		f.busiest = rate > f.busiest ? rate : f.busiest;
	}
	uint64_t most = available ? available / 4 / 1024 / (cpus ? cpus : 1) : FORECAST_KB_MOST;
	most = within(most, FORECAST_KB_LEAST, FORECAST_KB_MOST);
	const uint64_t all = bytes_in(f.busiest, duration) * FORECAST_MARGIN / 1024;
	f.whole = turn || (duration > 0 && all <= most);
	const uint64_t least = most < FORECAST_KB_USUAL ? most : FORECAST_KB_USUAL;
	f.kilobytes = within(f.whole ? all : bytes_in(f.busiest, FORECAST_CYCLE) * FORECAST_MARGIN / 1024, least, most);
	f.bytes = bytes_in(f.rate, duration);
	return f;
}
