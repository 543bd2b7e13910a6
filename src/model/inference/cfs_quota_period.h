/* Identifies the hrtimer that refills the CFS quota of a vCPU's cgroup (cpu.max).
 *
 * No event contains a timer's owner. But a thread that is throttled on an idle CPU runs again right after an expiry
 * of its refill timer, every time, and that timer did not expire earlier during the wait.
 *
 * Learning on an idle CPU: a timer is accepted after QUOTA_LEARNED such waits in a row. In each of them it must expire
 * after all timers that expired twice or more during the wait, or in the same interrupt as the last of those: other
 * threads of the group may use up a refill, and then the refill timer is one of them. If several timers fit, the first
 * to expire counts. A quota that is also refilled in other ways, as for threads on several CPUs, has no such timer.
 *
 * Learning on a contested CPU: if other threads want the CPU, it is never idle, and the thread runs only after a tick. A
 * timer may be a refill timer if it expired once during a long wait, at most QUOTA_CONTESTED_NS before the thread ran,
 * in QUOTA_CONTESTED waits in a row, and never twice within QUOTA_PERIOD_MIN.
 *
 * Cost: O(1) per expiry; O(QUOTA_SLOTS) when a vCPU runs after a wait, until a timer is found. Memory: 16 KiB for a host
 * with such vCPUs. If several timers share a slot only the last one is stored, so a refill timer may be missed, but
 * never invented. */
#pragma once

#include "base/base.h"

#include "model/inference/quota_pattern.h"

#define QUOTA_LEARNED 4
#define QUOTA_CONTESTED 6
#define QUOTA_LATEST_NS 5000000  /* maximum time from the expiry until the thread runs, ns; includes delays of the host */
#define QUOTA_CONTESTED_NS 10000000  /* the same on a contested CPU: two slow ticks, ns */
#define QUOTA_PERIOD_MIN 20000000  /* shortest period of a quota that throttles a thread for long, ns */
enum { QUOTA_SLOTS = 512, QUOTA_TIMERS = 4 };

/* Recent expiries of the host's timers, by hash of the timer's address; times in host ns. */
struct timer_expiries {
	int64_t since;  /* time since which all expiries were recorded */
	/* before: time of the last expiry but one, or an earlier time; INT64_MAX: unknown. min_interval: shortest interval
	 * between two expiries, ns. */
	struct expiry { int64_t timer, last, before, min_interval; } slot[QUOTA_SLOTS];
	struct periodic_expiries periodic;
};

/* Candidates for the refill timer of one vCPU; learned: number of waits in a row that they fit. */
struct quota_timer {
	int64_t timer[QUOTA_TIMERS];
	int64_t latest; /* longest time from the expiry until the thread ran, ns */
	uint8_t n, learned;
	bool contested; /* learned on a contested CPU */
};

void timer_expiries_add(struct timer_expiries *r, int64_t timer, int64_t now);
/* Learns from a wait from `out` to `now`, on an idle CPU or, with f->contested, on a contested one. */
void quota_timer_learn(struct quota_timer *f, const struct timer_expiries *r, int64_t out, int64_t now);
/* Returns the time of the last expiry of any candidate; INT64_MAX: none. */
int64_t quota_timer_last(const struct quota_timer *f, const struct timer_expiries *r);
/* Returns the refill's time if the timer expired exactly once between `from` and `now`; INT64_MAX: unknown. */
int64_t quota_timer_refill(const struct quota_timer *f, const struct timer_expiries *r, int64_t from, int64_t now);
