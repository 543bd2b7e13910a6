/* When a guest has nothing to do, as far as its exits tell.
 *
 * A guest that has nothing to do halts.  An interrupt ends that; its idle thread takes it, and switches to the thread
 * that it wakes, if it wakes one.  Of all this the host sees the halt, the interrupt's injection, and the guest's exits.
 * But the ways repeat themselves: how long it takes from the injection of a vector, or from the programming of the
 * timer as a CPU leaves its idle thread, to what the guest does next, and from its last doing to the halt.  Looking
 * ahead learns these, by vCPU; then each stretch that begins with a halt is quiet at first, and for as long as its exits
 * come no later than usual.
 *
 * O(1) per event of kvm.  Memory: 4 KiB per vCPU's thread and vector, while looking ahead 1 KiB more per thread. */
#ifndef STEALSCOPE_MODEL_HALTS_H
#define STEALSCOPE_MODEL_HALTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/exit_reasons.h"

/* A way that is learned: one of these, or WAY_VECTOR + the vector (WAY_VECTOR - 1: of a stretch without injection). */
enum { WAY_HALT, WAY_TIMER, WAY_VECTOR = 3, WAYS = WAY_VECTOR + 256 };

struct way {
	int32_t *ns;            /* samples, in order once they are finished */
	size_t n, cap;
	uint32_t first, timer;  /* of stretches that began so; of these, whose first exit programmed the timer */
};

struct halts {
	struct map index;       /* TID * WAYS + way -> index in way */
	struct way *way;
	size_t ways, way_cap;
	struct map learner;     /* TID -> struct learner * */
	int32_t *current;       /* by CPU: TID, -1 unknown */
	uint32_t cpus;
};

#define HALTS_INIT { .way = NULL }

/* Looking ahead: all events of the host, in order. */
void halts_feed(struct halts *h, const struct event *ev);
void halts_finish(struct halts *h);
void halts_release(struct halts *h);

/* One vCPU while its events are replayed. */
struct quiet {
	bool known;             /* an exit told its reason */
	bool halted;            /* it left by a halt, and has not been entered since */
	bool quiet;             /* no thread of the guest has run since */
	bool first;             /* the next entry is the first one after it */
	bool timer;             /* the next exit is expected to program the timer, in the interrupt's handler */
	int16_t vector;         /* injected since the last exit, -1 none */
	int32_t tid;            /* of its thread */
	int64_t since;          /* ns: the last entry; INT64_MIN: it is not in guest mode, as far as is known */
	int64_t limit, head;    /* ns in guest mode: usual until the guest does something; until a thread runs */
	int64_t spent;          /* ns so far */
};

/* A part of the time in guest mode that has just ended: quiet for `head` ns, then busy, then quiet for `tail` ns. */
struct quiet_split { int64_t head, tail; };

void quiet_init(struct quiet *q, int32_t tid);
void quiet_lose(struct quiet *q);                            /* events of its CPU were lost */
void quiet_inject(struct quiet *q, int64_t vector);
void quiet_enter(struct quiet *q, const struct halts *h, int64_t t);
struct quiet_split quiet_exit(struct quiet *q, const struct halts *h, int64_t t, const struct event *ev);

#endif
