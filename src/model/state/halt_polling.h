/* Halt polling: after a vCPU halts, KVM polls for a wakeup for a while before it blocks the thread.
 *
 * At a halt's end, kvm_vcpu_wakeup contains its length and whether the thread slept. kvm_halt_poll_ns contains the
 * polling limit for later halts, and the previous limit. Therefore:
 *   - a halt without a sleep was polled through;
 *   - a halt with a sleep was polled from its beginning until the thread left its CPU, but no longer than the limit;
 *   - before the first event with a limit, it is unknown whether the host polled.
 *
 * All intervals are written when the halt has ended. O(1) per event. */
#pragma once

#include "base/base.h"

struct halt_polling {
	int64_t limit;      /* polling limit, ns; -1: unknown */
	int64_t next_limit; /* limit for the next halts, ns */
	int64_t earliest;   /* earliest possible start of the current halt, ns; INT64_MIN, INT64_MAX: unknown */
	int64_t blocked_at; /* start of the thread's sleep, ns; INT64_MAX: has not slept in this halt */
	bool unknown;       /* POLL_UNKNOWN was written last */
	uint32_t attr;      /* attribute CPU_POLLING; HISTORY_NONE: not declared */
};

#define HALT_POLLING_INIT { .limit = -1, .next_limit = -1, .earliest = INT64_MIN, .blocked_at = INT64_MAX, \
	.attr = HISTORY_NONE }

void halt_polling_exit(struct halt_polling *p, int64_t now);
void halt_polling_block(struct halt_polling *p, int64_t now);  /* Called when the vCPU's thread blocks. */
void halt_polling_clear(struct halt_polling *p);  /* Called when events were lost. */
