#include "record/buffer_sizing.h"

#define PAUSE (NS_PER_S / 20)  /* ns in which a CPU fills half a MiB at 10 MiB/s */

/* Returns the bytes recorded in `ns` at `rate` bytes/s; limited to 10^18. */
static uint64_t bytes_in(uint64_t rate, int64_t ns)
{
	const double bytes = (double)rate * (double)ns / NS_PER_S;
	return bytes < 1e18 ? (uint64_t)bytes : (uint64_t)1e18;
}

static uint64_t clamp_size(uint64_t x, uint64_t low, uint64_t high)
{
	return x < low ? low : x > high ? high : x;
}

int64_t forecast_pause(uint64_t kilobytes)
{
	return (int64_t)clamp_size(PAUSE * kilobytes / 1024, PAUSE, FORECAST_CYCLE);
}

uint64_t forecast_disk_reserve(uint64_t size, uint64_t expected)
{
	const uint64_t share = size / 8, wanted = expected > share ? expected : share;
	return wanted < FORECAST_DISK_FREE ? wanted : FORECAST_DISK_FREE;
}

struct forecast forecast_make(const uint64_t *bytes, unsigned cpus, int64_t probe, int64_t duration, bool overwrite,
                              uint64_t available)
{
	struct forecast f = { .cpus = cpus };
	for (unsigned i = 0; i < cpus; i++) {
		const uint64_t rate = (uint64_t)((double)bytes[i] * NS_PER_S / (double)(probe > 0 ? probe : 1));
		f.rate += rate;
		f.busiest = rate > f.busiest ? rate : f.busiest;
	}
	uint64_t max_kb = available ? available / 4 / 1024 / (cpus ? cpus : 1) : FORECAST_KB_MAX;
	max_kb = clamp_size(max_kb, FORECAST_KB_MIN, FORECAST_KB_MAX);
	const uint64_t needed_kb = bytes_in(f.busiest, duration) * FORECAST_MARGIN / 1024;
	f.complete = overwrite || (duration > 0 && needed_kb <= max_kb);
	const uint64_t min_kb = max_kb < FORECAST_KB_DEFAULT ? max_kb : FORECAST_KB_DEFAULT;
	f.kilobytes = clamp_size(f.complete ? needed_kb : bytes_in(f.busiest, FORECAST_CYCLE) * FORECAST_MARGIN / 1024, min_kb,
	                         max_kb);
	f.bytes = bytes_in(f.rate, duration);
	return f;
}
