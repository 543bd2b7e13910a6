/* Threads that sleep through a loss of events, as far as looking ahead can prove it.
 *
 * While one CPU's events are lost, a thread that sleeps elsewhere may be woken there unseen, run, and sleep again.  What
 * tells is how it is woken later, seen: sched_waking names the CPU on which it fell asleep.  If that CPU's events were
 * all there since, and show that it fell asleep, or show nothing of the thread at all, then it has slept since.
 * Only sleeps that some loss meets are kept.  O(1) per event.  Memory: 25 to 50 bytes per TID while looking ahead, 32 per
 * sleep that is kept. */
#ifndef STEALSCOPE_MODEL_LOSS_SLEEP_ACROSS_LOSS_H
#define STEALSCOPE_MODEL_LOSS_SLEEP_ACROSS_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "trace/trace.h"

struct sleep {
	int64_t from, until;    /* ns, clock of the machine: it sleeps at `from`, no longer at `until` */
	int32_t tid, cpu;       /* the CPU on which it fell asleep */
	uint32_t comm;          /* string id, 0 unknown */
};

struct asleep {
	struct sleep *sleep;    /* in order of TID and time, once asleep_finish() was called */
	size_t sleeps, sleep_cap;
	struct map last;        /* TID -> index in turn */
	struct turn { int64_t since; int32_t cpu; } *turn;  /* it fell asleep on that CPU; -1: was woken */
	size_t turns, turn_cap;
	int64_t *lost_end;      /* by CPU: until when its events were lost, INT64_MIN = never */
	uint32_t cpus;
	int64_t any_lost_end;
};

#define ASLEEP_INIT { .any_lost_end = INT64_MIN }

void asleep_feed(struct asleep *a, const struct event *ev);
void asleep_finish(struct asleep *a);
void asleep_release(struct asleep *a);
/* The sleep that is proved of the thread at t, or NULL. */
const struct sleep *asleep_at(const struct asleep *a, int64_t tid, int64_t t);

#endif
