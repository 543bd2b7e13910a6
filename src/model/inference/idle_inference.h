/* Infers from the host's events when an untraced guest is idle.
 *
 * A guest with nothing to run halts (HLT, WFI). An interrupt ends the halt; the idle thread handles it, and switches to
 * the thread that the interrupt wakes, if any. The host records the halt, the interrupt's injection, and the exits.
 *
 * Paths: the guest's code between these events repeats, so its durations do: from a vector's injection until the
 * guest halts, writes to the timer or interrupt controller, or does something that only a thread does. The prescan
 * measures these durations for each vCPU. An episode that begins with a halt then counts as idle while its exits come no
 * later than they do when no thread ran.
 *
 * Other evidence:
 *   - a guest interrupted at its halt instruction is idle; one interrupted in user space is not;
 *   - the next action after an interruption (post_irq_activity.h): an immediate halt means that the guest was still
 *     idle;
 *   - a write to the timer that is followed by a halt later than in the idle loop
 *     (which stops its tick last) is by a thread that goes to sleep;
 *   - a write without an IPI is not by a thread, if threads of this guest send IPIs;
 *   - a thread that sleeps for a time sets a timer first: from that write to the halt takes longer than in an idle loop.
 *
 * Without evidence, the rule that is right more often decides (limit_tenths in idle_inference.c; guest_idle_tracker.c).
 *
 * Locks: a thread that waits long for a spinlock also halts (paravirtual spinlocks), and the holder's vCPU wakes it with
 * a hypercall. A halt site where interrupts hardly ever end the halt is not the idle loop. Without recorded injections,
 * the waker of the vCPU's thread replaces the vector: a handler of the host (the guest's timer), a sibling vCPU, another
 * thread. A sibling that made a hypercall ends the wait for a lock.
 *
 * Cost: O(1) per event of a vCPU. Memory: 20 KiB per path during the prescan, then 136 bytes; at most PATHS_MAX paths; in
 * addition post_irq_activity.h. */
#pragma once

#include "base/base.h"
#include "model/state/exit_reasons.h"
#include "model/inference/post_irq_activity.h"
#include "model/inference/idle_poll_sites.h"

/* How an interval in guest mode ended. */
enum interval_end {
	END_HALT,
	END_WRITE,     /* write to the timer or interrupt controller; both threads and the idle thread do that */
	END_THREAD,    /* action that only a thread does, or interrupted in user space */
	END_INTERRUPT, /* interrupted elsewhere */
	END_AT_HALT,   /* interrupted at the halt instruction */
};
#define PATH_ENDS (END_THREAD + 1)  /* ends with stored samples */

/* A path's typical durations; in guest mode, ns. */
struct typical_times {
	int64_t head; /* until a thread runs, if one is woken */
	int64_t limit[END_INTERRUPT + 1];  /* by end: longest duration without a thread */
	bool timers;  /* writes are more often by threads that set timers than by the idle loop */
};

struct idle_path {
	int32_t *ns[PATH_ENDS];       /* samples during the prescan, ns */
	int32_t *rest;                /* for each sample of END_WRITE: time in guest mode from the write to the halt, ns; 0:
	                               * no halt followed */
	size_t n[PATH_ENDS], cap[PATH_ENDS], rest_cap;
	struct typical_times typical; /* the prescan's result */
};

/* State of a vCPU within an episode, which begins with a halt. */
struct idle_episode {
	bool idle;       /* no thread of the guest ran since the halt */
	bool first;      /* the next VM entry is the first after the halt */
	uint8_t writes;  /* VM exits by a write since the last interrupt; saturates at 2 */
	bool wrote;      /* the last VM exit was a write */
	bool calls;      /* the last VM exit was a hypercall */
	int16_t vector;  /* interrupt injected since the last VM exit, or enum wake_source; -1: none */
	uint32_t site;   /* code address of the last write */
	int64_t halt_ip; /* the halt instruction's address; EVENT_ABSENT: unknown */
	int64_t since;   /* last VM entry, ns; INT64_MIN: not in guest mode, or unknown */
};

#define EPISODE_INIT { .vector = -1, .halt_ip = EVENT_ABSENT, .since = INT64_MIN }

struct idle_stats {
	struct map index;     /* TID and path -> index in path */
	struct idle_path *path;
	size_t paths, path_cap;
	struct map vcpu_by_tid;   /* TID -> struct prescan_vcpu * */
	struct map followups; /* TID -> struct irq_followups * */
	struct map site;      /* TID and halt address (see idle_path_site()) -> number of halts ended by an interrupt << 32 |
	                       * number of other halts */
	struct poll_sites poll_sites;
	bool has_injections;  /* the trace contains interrupt injections */
	struct idle_stats_cpu {
		int32_t current;      /* TID of the current thread; -1: unknown */
		struct prescan_vcpu *last; /* vCPU used last on this CPU; NULL: none */
	} *cpu;
	uint32_t cpus;
};

#define IDLE_STATS_INIT { .path = NULL }

/* Prescan: processes an event; to be called with all events of the host in order. in_handler: the CPU is in an interrupt
 * handler. */
void idle_stats_feed(struct idle_stats *h, const struct event *ev, bool in_handler);
void idle_stats_finish(struct idle_stats *h);
void idle_stats_release(struct idle_stats *h);

/* Tracks one vCPU while its events are replayed. */
struct idle_tracker {
	bool exits_known;             /* the trace contains exit reasons */
	bool halted;                  /* the last VM exit was a halt, and no entry followed */
	bool lost;                    /* events were lost, and no entry or exit followed */
	int32_t tid;                  /* TID of the vCPU's thread */
	const struct idle_stats *idle_stats;  /* the prescan's result, borrowed; NULL: none */
	struct irq_followups *followups;  /* interruptions of the vCPU's thread; NULL: none */
	int64_t min_halt_ns;          /* shortest time from a switch to the idle thread to a halt, ns; 0: unknown */
	struct idle_episode at;
	struct typical_times typical; /* times of the current path */
	int64_t path_ns;              /* time spent on that path, ns */
	bool may_poll;                /* last interrupted at a site where a guest may idle without halting
	                               * (idle_poll_sites.h) */
};

/* Activity in an interval of guest mode that has just ended: idle for `head` ns, then busy, then idle for `tail` ns.
 * unsure: it is unknown whether the busy part was busy. */
struct idle_split { int64_t head, tail; bool unsure; };

void idle_tracker_init(struct idle_tracker *q, const struct idle_stats *stats, int32_t tid);
/* Called when events of the vCPU's CPU were lost. */
void idle_tracker_clear(struct idle_tracker *q);
void idle_tracker_inject(struct idle_tracker *q, int64_t vector);
/* Called when the vCPU's thread is woken by a handler, by a sibling vCPU (its tracker), or by another thread (NULL). */
void idle_tracker_woken(struct idle_tracker *q, bool by_handler, const struct idle_tracker *sibling);
void idle_tracker_entry(struct idle_tracker *q, int64_t t);
/* Ends an interval in guest mode and returns its activity. flags: exit_flags() of the event. */
struct idle_split idle_tracker_exit(struct idle_tracker *q, int64_t t, const struct event *ev, unsigned flags);
