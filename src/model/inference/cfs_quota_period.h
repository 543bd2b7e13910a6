/* Which of the host's timers gives the cgroup of a vCPU its quota anew.
 *
 * No event tells whose a timer is.  But a thread that a quota kept from a CPU which was idle gets that right behind one
 * expiry of this timer, every time, and it has not expired before while the thread waited.  A timer of which that was so
 * REFILLS_LEARNED times in a row, each time behind all timers that expired again while it waited, or in one interrupt with
 * the last of them, is taken for it (others may use up a quota that is given anew, and then its own timer is one of
 * those); where it was so of several, the first to expire counts.  A quota that comes back in other ways, too, as it does
 * for threads on several CPUs, has none.
 *
 * Where others want the CPU, too, nobody sees that it would have been idle, and the thread goes on only when the tick asks
 * for it.  A timer that expired once while it waited for long, no longer than REFILL_CONTESTED before it went on,
 * REFILLS_CONTESTED times in a row, and never twice within REFILL_PERIOD, may be one that gives a quota anew.
 *
 * O(1) per expiry; when a vCPU that was held back, or waited for long, goes on, REFILL_SLOTS until something was found.
 * Memory: 16 KiB for a host with such vCPUs.  Timers that share a slot are forgotten, which may cost a name, but makes
 * none. */
#ifndef STEALSCOPE_MODEL_INFERENCE_CFS_QUOTA_PERIOD_H
#define STEALSCOPE_MODEL_INFERENCE_CFS_QUOTA_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#define REFILLS_LEARNED 4
#define REFILLS_CONTESTED 6
#define REFILL_LATEST 5000000  /* ns from the expiry until the thread goes on, at most: the host itself may be held up */
#define REFILL_CONTESTED 10000000  /* ns: two ticks, slow ones */
#define REFILL_PERIOD 20000000  /* ns: of a quota that keeps a thread out for long, at the least */
enum { REFILL_SLOTS = 512, REFILL_TIMERS = 4 };

/* Times are ns host time. */
struct refills {
	int64_t since;  /* it is told of all expiries */
	/* before: since or earlier; INT64_MAX unknown.  least: ns between two of them, so far. */
	struct expiry { int64_t timer, last, before, least; } slot[REFILL_SLOTS];
};

/* Of one vCPU. */
struct refill {
	int64_t timer[REFILL_TIMERS];
	int64_t latest;         /* ns from the expiry until the thread went on, so far */
	uint8_t n, learned;
	bool contested;         /* others had the CPU */
};

void refills_expire(struct refills *r, int64_t timer, int64_t now);
/* Its thread was kept from an idle CPU, or from a contested one, since `out`, and gets it now. */
void refill_learn(struct refill *f, const struct refills *r, int64_t out, int64_t now);
/* When the last one expired of those that it may be; INT64_MAX: there is none. */
int64_t refill_last(const struct refill *f, const struct refills *r);
/* When the quota was given anew: the only time between `from` and now; INT64_MAX unknown. */
int64_t refill_at(const struct refill *f, const struct refills *r, int64_t from, int64_t now);

#endif
