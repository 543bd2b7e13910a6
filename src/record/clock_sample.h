/* One moment, on the clocks of a machine. */
#ifndef STEALSCOPE_RECORD_CLOCK_SAMPLE_H
#define STEALSCOPE_RECORD_CLOCK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct moment {
	bool known;
	uint64_t clock;     /* the clock of its trace: cycles of x86-tsc, else ns */
	int64_t monotonic;  /* ns; 0: not known */
	int64_t realtime;   /* ns since the epoch */
};

/* Now, on this machine; of many tries the one that took least time.  tsc: the trace's clock is x86-tsc, else mono. */
struct moment moment_now(bool tsc);

/* What `stats` of a CPU's buffer says, and a line "realtime NS" (or "realtime SECONDS") before it, as guests send it. */
struct moment moment_parse(const char *text);

/* Cycles per 1000 s of a TSC that went from one moment to the other; 0: not known. */
uint64_t moment_frequency(const struct moment *a, const struct moment *b);

#endif
