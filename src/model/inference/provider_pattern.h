/* Reasons for a steal clock's gaps, from their pattern. A gap keeps OUT_PROVIDER (reason unknown) unless a test
 * proves more:
 *
 *   pause       TSC minus CLOCK_MONOTONIC steps up by STEP_MIN or more between two timers, by the least of WATCH_SIDE
 *               timers on each side (a timer can be late, never early). Needs a trace clock that runs on in a pause.
 *   migration   TSC minus CLOCK_MONOTONIC steps down likewise, which no delay explains.
 *   quota       of QUOTA_GAPS successive gaps of a vCPU, all but QUOTA_OUTLIERS end on a grid of constant period within
 *               2 % of it, one in each period: a quota's refill is a timer. The period is a multiple of
 *               QUOTA_PERIOD_STEP, and both the median gap and the rest of the period are longer than SLICE_MAX. So it is
 *               no neighbour: the lighter of two tasks that share a CPU gets slices of one tick, and tasks of equal weight
 *               have a period of up to SLICES_PERIOD_MAX.
 *   neighbour   at least NEIGHBOUR_GAPS gaps with distances up to NEAR_NS. Their lengths are multiples of the tick of the
 *               host more often than by chance (p < 0.001, binomial), and do not all differ from a multiple by the same
 *               time: a neighbour is switched out at ticks. A quota looks the same if its refill happens to follow a
 *               tick, so windows of gaps with the pattern of a quota with a short period are left out, and so are longer
 *               gaps with another length than a multiple of the tick. */
#pragma once

#include "base/base.h"

struct steal_clock;

#define WATCH_SIDE 12  /* timers on each side of a step */

/* Step of TSC minus CLOCK_MONOTONIC between two timers. */
struct clock_step { int64_t after, before, ns; };  /* the timers' times; ns < 0: set back */

/* Step found, with the silence of one CPU that contains it. */
struct stopped_cpu { int64_t begin, end, ns; uint32_t cpu; };

/* Watches TSC minus CLOCK_MONOTONIC, and the CPUs' silences. Initialize with { 0 }. */
struct clock_watch {
	struct { int64_t t, ahead; } timer[2 * WATCH_SIDE];  /* the latest timers, oldest first */
	size_t timers;
	struct stopped_cpu *silence;  /* recent silences of 1 ms and more */
	size_t silences, silences_cap;
	struct clock_step *step;
	size_t steps, steps_cap;
	struct stopped_cpu *stopped;  /* silences that contain a step */
	size_t stoppeds, stopped_cap;
};

void clock_watch_timer(struct clock_watch *w, int64_t t, int64_t now);
void clock_watch_silence(struct clock_watch *w, uint32_t cpu, int64_t begin, int64_t end);
void clock_watch_release(struct clock_watch *w);

/* Sets the kinds of the gaps, which must be sorted by begin, and adds the pauses as gaps. */
void provider_pattern_find(struct steal_clock *s, struct clock_watch *w);
