/* How large the buffers should be and how much will be recorded, by what a short look saw.  Arithmetic alone. */
#ifndef STEALSCOPE_RECORD_BUFFER_SIZING_H
#define STEALSCOPE_RECORD_BUFFER_SIZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORECAST_KB_LEAST 1024   /* KiB of a CPU's buffer, where memory is scarce */
#define FORECAST_KB_USUAL 4096   /* else at least: the larger it is, the more seldom somebody must look at it */
#define FORECAST_KB_MOST 65536
#define FORECAST_CYCLE 500000000  /* ns between two readings of buffers that do not hold the whole time */
#define FORECAST_MARGIN 4        /* so much more than the look saw is provided for */

struct forecast {
	uint64_t rate;       /* bytes/s, all CPUs together */
	uint64_t busiest;    /* bytes/s of the busiest CPU */
	unsigned cpus;
	uint64_t kilobytes;  /* of each CPU's buffer */
	bool whole;          /* the buffers hold the whole time: nothing need be read while it is recorded */
	uint64_t bytes;      /* of the whole recording; 0: its time is not known */
};

/* bytes[cpus] in `look` ns; duration in ns, 0: not known; turn: the buffers turn over and hold `duration`; free: bytes of
 * memory that are available (0: not known), of which a quarter may be taken. */
struct forecast forecast_make(const uint64_t *bytes, unsigned cpus, int64_t look, int64_t duration, bool turn,
                              uint64_t available);

/* ns after which to look again whether buffers of that size are half full: 10 MiB/s of a CPU do not fill them meanwhile. */
int64_t forecast_pause(uint64_t kilobytes);

#define FORECAST_DISK_KEPT (256ULL << 20)  /* bytes of a disk that are left for others */

#endif
