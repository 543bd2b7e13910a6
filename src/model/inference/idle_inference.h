/* When a guest has nothing to do, as far as its exits tell.
 *
 * A guest that has nothing to do halts. An interrupt ends that; its idle thread takes it, and switches to the thread
 * that it wakes, if it wakes one. Of all this the host sees the halt, the interrupt's injection, and the guest's exits.
 * But the ways repeat themselves: how long it takes from the injection of a vector, or from a write to the timer or the
 * interrupt controller, until the guest halts, writes again, or does what only a thread does. Looking ahead learns
 * these, by vCPU; then each stretch that begins with a halt is quiet at first, and for as long as its exits come no
 * later than they do where no thread ran. Some exits tell for sure: interrupted at its halt, a guest is idle;
 * interrupted in user space, it is not. What it does next tells, too (post_irq_activity.h): who is interrupted and then
 * found at the halt has not left the way there; who writes to the timer and halts later than the idle loop would, which
 * stops its tick last of all, is a thread that goes to sleep; who writes and sends nothing, where threads send
 * interrupts to siblings, is none. Where nothing tells, the rule that is right more often decides (limit_tenths in
 * idle_inference.c; guest_idle_tracker.c).
 *
 * A thread halts, too, where it waits for a spinning lock for long; the holder's vCPU then wakes it with a hypercall.
 * Idle loops wait for interrupts: a place where these hardly ever ended a halt is none. A thread that sleeps for a time
 * sets a timer first: how long it takes from there to the halt is more than an idle loop needs.
 *
 * Where injections were not recorded, who woke the vCPU's thread tells nearly as much as a vector: a handler of the host
 * (the guest's timer), a sibling, another thread; and a sibling that calls the hypervisor ends the wait for a lock.
 *
 * O(1) per event of kvm. Memory: 20 KiB per way while looking ahead, then 136 bytes; at most WAYS_MOST ways; and
 * post_irq_activity.h. */
#ifndef STEALSCOPE_MODEL_INFERENCE_IDLE_INFERENCE_H
#define STEALSCOPE_MODEL_INFERENCE_IDLE_INFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/state/exit_reasons.h"
#include "model/inference/post_irq_activity.h"
#include "model/inference/idle_poll_sites.h"

/* How a part of the time in guest mode ends. */
enum part_end {
	END_HALT,
	END_WRITE,      /* to the timer or the interrupt controller, which the idle thread does, too */
	END_THREAD,     /* by what only a thread does, or interrupted in user space */
	END_INTERRUPT,  /* interrupted somewhere else */
	END_AT_HALT,    /* interrupted at the halt, which it has not left */
};
#define WAY_ENDS (END_THREAD + 1)  /* those of which samples are kept */

/* What is usual, in ns in guest mode. */
struct usual {
	int64_t head;               /* until a thread runs, if one does */
	int64_t limit[END_INTERRUPT + 1];  /* by its end: up to here, none did */
	bool timers;                /* it ends by threads setting their timers more often than by other writes */
};

struct way {
	int32_t *ns[WAY_ENDS];      /* samples, while looking ahead */
	int32_t *rest;              /* of each that ended by a write: ns in guest mode from there to its halt, 0 none */
	size_t n[WAY_ENDS], cap[WAY_ENDS], rest_cap;
	struct usual usual;         /* afterwards */
};

/* How far a vCPU is in a stretch that began with a halt. */
struct halt_stretch {
	bool quiet;             /* no thread of the guest has run since */
	bool first;             /* the next entry is the first one after the halt */
	uint8_t writes;         /* since the last interrupt came in; 2: or more */
	bool wrote;             /* it left guest mode last for a write */
	bool calls;             /* it left guest mode last to ask its hypervisor for something */
	int16_t vector;         /* injected since the last exit, or an enum raised; -1 none */
	uint32_t site;          /* of the last write: which code that was */
	int64_t halt_ip;        /* where it halts, EVENT_ABSENT unknown */
	int64_t since;          /* ns: the last entry; INT64_MIN: it is not in guest mode, as far as is known */
};

#define STRETCH_NOWHERE { .vector = -1, .halt_ip = EVENT_ABSENT, .since = INT64_MIN }

struct halts {
	struct map index;       /* TID and way -> index in way */
	struct way *way;
	size_t ways, way_cap;
	struct map learner;     /* TID -> struct learner * */
	struct map prospects;   /* TID -> struct prospects * */
	struct map site;        /* TID and where it halts (see way_site()) -> how often an interrupt ended that, << 32, and how
	                         * often something else */
	struct spots spots;
	bool injects;           /* which interrupts came in is recorded */
	struct halt_cpu {
		int32_t current;        /* TID, -1 unknown */
		struct learner *last;   /* that was met here, or NULL */
	} *cpu;
	uint32_t cpus;
};

#define HALTS_INIT { .way = NULL }

/* Looking ahead: all events of the host, in order. in_handler: its CPU is in an interrupt's handler. */
void halts_feed(struct halts *h, const struct event *ev, bool in_handler);
void halts_finish(struct halts *h);
void halts_release(struct halts *h);

/* One vCPU while its events are replayed. */
struct quiet {
	bool known;             /* an exit told its reason */
	bool halted;            /* it left by a halt, and has not been entered since */
	bool lost;              /* events were lost, and it has neither been entered nor left since */
	int32_t tid;            /* of its thread */
	const struct halts *halts;    /* what looking ahead has found, borrowed; or NULL */
	struct prospects *prospects;  /* of its thread, or NULL */
	int64_t least;          /* ns: the least time between a switch to its idle thread and a halt */
	struct halt_stretch at;
	struct usual usual;     /* of the way that it is on */
	int64_t spent;          /* ns on that way so far */
	bool doubt;             /* it was found where a guest may idle without halting (idle_poll_sites.h), and
	 * nothing tells more yet */
};

/* A part of the time in guest mode that has just ended: quiet for `head` ns, then busy, then quiet for `tail` ns.
 * doubt: whether it was busy is not known. */
struct quiet_split { int64_t head, tail; bool doubt; };

void quiet_init(struct quiet *q, const struct halts *h, int32_t tid);
void quiet_lose(struct quiet *q);                            /* events of its CPU were lost */
void quiet_inject(struct quiet *q, int64_t vector);
/* Its thread is woken, by a handler, by a sibling (that, or NULL), or by another thread. */
void quiet_woken(struct quiet *q, bool by_handler, const struct quiet *sibling);
void quiet_enter(struct quiet *q, int64_t t);
struct quiet_split quiet_exit(struct quiet *q, int64_t t, const struct event *ev, unsigned is);  /* is: exit_is() */

#endif
