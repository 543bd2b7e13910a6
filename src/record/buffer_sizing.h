/* Computes buffer sizes and the expected size of a recording from event rates measured in a short test. No I/O. */
#pragma once

#include "base/base.h"

#define FORECAST_KB_MIN 1024   /* minimum of a CPU's buffer if memory is scarce, KiB */
#define FORECAST_KB_DEFAULT 4096  /* minimum if memory allows, KiB: a larger buffer needs fewer reads */
#define FORECAST_KB_MAX 65536  /* maximum of a CPU's buffer, KiB */
#define FORECAST_CYCLE 500000000  /* ns between two reads of buffers too small for the whole recording */
#define FORECAST_MARGIN 4        /* safety factor over the measured rate */

struct forecast {
	uint64_t rate;       /* bytes/s, all CPUs together */
	uint64_t busiest;    /* bytes/s of the busiest CPU */
	unsigned cpus;
	uint64_t kilobytes;  /* size of each CPU's buffer, KiB */
	bool complete;       /* the buffers can hold the whole recording and are read only at its end */
	uint64_t bytes;      /* expected size of the recording, bytes; 0: duration unknown */
};

/* Computes a forecast from bytes[cpus], the bytes that each CPU recorded in `probe` ns. duration: the recording's length,
 * ns (0: unknown); in overwrite mode: the time that the buffers shall hold. available: free memory, bytes (0: unknown); the
 * buffers use at most a quarter of it. */
struct forecast forecast_make(const uint64_t *bytes, unsigned cpus, int64_t probe, int64_t duration, bool overwrite,
                              uint64_t available);

/* Returns the ns until this size's buffers may be half full, if a CPU records at most 10 MiB/s. */
int64_t forecast_pause(uint64_t kilobytes);

#define FORECAST_DISK_FREE (256ULL << 20)  /* most bytes of the disk that a recording leaves free */

/* Returns the bytes of the disk that a recording leaves free: 1/8 of a file system of `size` bytes, or as much as the
 * recording is expected to need, if that is more (it may then become twice as large); at most FORECAST_DISK_FREE. */
uint64_t forecast_disk_reserve(uint64_t size, uint64_t expected);
