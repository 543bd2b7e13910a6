/* Threads that provably sleep through a loss of events, found by the prescan.
 *
 * During a loss on one CPU, a thread that sleeps on another CPU may be woken to run on the lossy CPU unrecorded, and
 * sleep again. The next recorded wakeup of the thread decides: sched_waking contains the CPU on which the thread
 * blocked. If no events of that CPU were lost since, and they show that the thread blocked there, or do not name it at
 * all, it slept all the time. Only sleeps that overlap a loss are stored. Cost: O(1) per event. Memory: 25 to 50 bytes
 * per TID during the prescan, 32 per stored sleep. */
#ifndef STEALSCOPE_MODEL_LOSS_SLEEP_ACROSS_LOSS_H
#define STEALSCOPE_MODEL_LOSS_SLEEP_ACROSS_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "trace/trace.h"

struct sleep {
	int64_t from, until; /* asleep since `from` (INT64_MIN: the beginning), woken at `until`; ns, clock of the machine */
	int32_t tid, cpu;    /* cpu: CPU on which it sleeps */
	uint32_t comm;       /* string id; 0: unknown */
};

struct proved_sleeps {
	struct sleep *sleep; /* sorted by TID and time, after proved_sleeps_finish() */
	size_t sleeps, sleep_cap;
	struct map last;     /* TID -> index in state */
	struct sleep_state { int64_t since; int32_t cpu; } *state;  /* last event of the thread: blocked on that CPU; -1: was
	                                                             * woken */
	size_t states, state_cap;
	int64_t *lost_end;   /* by CPU: end of its last loss, ns; INT64_MIN: none */
	uint32_t cpus;
	int64_t any_lost_end;
};

#define PROVED_SLEEPS_INIT { .any_lost_end = INT64_MIN }

void proved_sleeps_feed(struct proved_sleeps *a, const struct event *ev);
void proved_sleeps_finish(struct proved_sleeps *a);
void proved_sleeps_release(struct proved_sleeps *a);
/* Returns the proved sleep of the thread at t; NULL: none. */
const struct sleep *proved_sleep_at(const struct proved_sleeps *a, int64_t tid, int64_t t);

#endif
