/* Pattern of a CFS quota in the waits of a vCPU on a busy CPU, where the recording has no fact on quotas.
 *
 * A quota's timer expires with a constant period; the refill then lets the vCPU take its CPU back from a runnable thread.
 * So the pattern consists of waits, while other threads ran, that end with such a preemption soon after one periodic timer
 * expires. They make up much of the time that the vCPU waited, and are far more than chance gives. This is no proof: the
 * vCPU keeps its culprits, and a note bounds the answer.
 *
 * Periods below PATTERN_PERIOD_MIN are not found: waits for a fair share end at the tick, which has such a period.
 *
 * Cost: O(1) per expiry, O(PATTERN_RECENT) per wait of PATTERN_WAIT_MIN. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PATTERN_PERIOD_MIN 11000000  /* ns */
#define PATTERN_WAIT_MIN 2000000     /* shorter waits are not considered, ns */
enum { PATTERN_RECENT = 16, PATTERN_TIMERS = 6 };

/* Last expiries of a host's periodic timers. */
struct periodic_expiries {
	struct { int64_t timer, at, period; } recent[PATTERN_RECENT];
	unsigned next;
};

/* Waits of one vCPU. */
struct quota_pattern {
	int64_t ns;               /* time of its waits */
	int64_t delays;           /* for each wait, how long after an expiry it may end; summed, ns */
	struct pattern_timer {
		int64_t timer, period;
		int64_t ns;           /* time of the waits that end after its expiries; 0: unused */
		uint32_t waits;
	} timer[PATTERN_TIMERS];
};

/* Adds an expiry `interval` ns after the previous one; period: the shortest interval. */
void quota_pattern_expired(struct periodic_expiries *e, int64_t timer, int64_t at, int64_t interval, int64_t period);
/* Learns from a wait that ended at `to`. preempted: the CPU's thread was runnable. */
void quota_pattern_learn(struct quota_pattern *p, const struct periodic_expiries *e, int64_t from, int64_t to,
                         bool preempted);
