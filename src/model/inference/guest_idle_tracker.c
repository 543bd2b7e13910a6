#include "base/number.h"
#include "model/inference/idle_paths.h"

enum { TAIL = 14 };  /* idle time before a halt, in tenths of the shortest time from the switch to the idle thread to a
                      * halt */
enum { HELD_UP_FACTOR = 25 };  /* time before an interruption is ignored if longer than this multiple of the remaining
                                * time to the write */
enum { MEASURED_MAX = 25 };  /* paths longer than this multiple of the shortest time to a halt count as not measured */

void idle_tracker_init(struct idle_tracker *tracker, const struct idle_stats *h, int32_t tid)
{
	*tracker = (struct idle_tracker){
		.tid = tid, .at = episode_none, .idle_stats = h, .min_halt_ns = idle_path_min_halt(h, tid),
		.followups = h ? irq_followups_find(&h->followups, tid) : NULL,
	};
}

void idle_tracker_clear(struct idle_tracker *tracker)
{
	tracker->halted = false;
	tracker->lost = true;
	tracker->at = episode_none;
	tracker->typical = (struct typical_times){ 0 };
	tracker->path_ns = 0;
	tracker->may_poll = false;
}

void idle_tracker_inject(struct idle_tracker *tracker, int64_t vector)
{
	tracker->at.vector = (int16_t)(vector & 0xff);
}

void idle_tracker_woken(struct idle_tracker *tracker, bool by_handler, const struct idle_tracker *sibling)
{
	if (tracker->idle_stats && !tracker->idle_stats->has_injections)
		episode_woken(&tracker->at, by_handler, sibling ? &sibling->at : NULL);
}

/* Returns the times used for a path without samples, or on which a thread always ran for long before it halted: as short
 * as any path's. */
static struct typical_times unseen_path_times(int64_t min_halt)
{
	return (struct typical_times){ .head = min_halt,
	                       .limit = { [END_HALT] = 2 * min_halt, [END_WRITE] = 3 * min_halt, -1,
	                                  [END_INTERRUPT] = min_halt } };
}

void idle_tracker_entry(struct idle_tracker *tracker, int64_t t)
{
	episode_entry(&tracker->at, t);
	tracker->halted = tracker->lost = false;
	int64_t path = tracker->at.idle ? episode_path(&tracker->at) : -1;
	if (path < 0)
		return;
	const struct idle_path *w = idle_path_find(tracker->idle_stats, tracker->tid, path);
	const bool is_measured = w && (w->typical.head <= MEASURED_MAX * tracker->min_halt_ns || tracker->min_halt_ns == 0);
	tracker->typical = is_measured ? w->typical : unseen_path_times(tracker->min_halt_ns);
	tracker->path_ns = 0;
}

/* Recorded information about the time after an exit. */
struct next_action {
	const struct irq_followup *next;  /* the guest's next action; NULL: unknown */
	bool sends; /* the trace contains IPIs by this guest's threads */
};

static struct next_action find_next_action(const struct idle_tracker *tracker, int64_t t)
{
	struct irq_followups *p = tracker->followups;
	return p ? (struct next_action){ irq_followups_at(p, t), p->sends } : (struct next_action){ NULL, false };
}

/* Returns true if a thread set its timer or woke another thread, and then switched away: the time to the halt is longer
 * than in the idle loop, which stops the tick and halts, but too short for anything else. */
static bool goes_to_sleep(const struct idle_tracker *tracker, const struct irq_followup *next)
{
	const bool by_interrupt = tracker->at.writes == 0 && tracker->typical.limit[END_WRITE] == NO_LIMIT;
	return next && next->end == END_HALT && !by_interrupt && idle_path_is_switch(next->rest, tracker->min_halt_ns);
}

/* Returns the part of the time before an interruption that counts, ns. It is 0 before a write if much longer than the
 * time after the interruption: a thread rarely writes so soon afterwards, so the host's CPU itself was held up. */
static int64_t counted_ns(const struct irq_followup *next, int64_t ns)
{
	return next && next->end == END_WRITE && ns > (int64_t)next->rest * HELD_UP_FACTOR ? 0 : ns;
}

/* Returns true if an interrupted guest would have stayed idle. If threads send IPIs, a write without an IPI is hardly by
 * a thread: the idle loop stops its tick, and interrupts set timers. Without recorded injections an interrupt may have
 * been injected later and stopped a thread. */
static bool stays_idle(const struct idle_tracker *tracker, int64_t ns, enum interval_end end,
                       const struct next_action *action)
{
	const struct irq_followup *next = action->next;
	if (!next)
		return false;
	if (end == END_WRITE)
		return action->sends && !next->sent;
	if (next->end == END_WRITE)
		return (action->sends && tracker->idle_stats->has_injections) ||
		       tracker->path_ns + counted_ns(next, ns) + next->rest <= tracker->typical.limit[END_WRITE];
	return next->end == END_AT_HALT;
}

/* Returns true if a thread set a timer that expired before the guest could halt, on a path where threads set timers. */
static bool is_short_sleep(const struct idle_tracker *tracker, const struct irq_followup *next)
{
	const struct idle_path *w = next && next->vector >= 0
	                            ? idle_path_find(tracker->idle_stats, tracker->tid, PATH_LATER + next->vector) : NULL;
	return tracker->typical.timers && w && w->typical.limit[END_WRITE] == NO_LIMIT && !next->sent &&
	       idle_path_is_short(next->rest, tracker->min_halt_ns);
}

static bool idle_has_ended(const struct idle_tracker *tracker, int64_t ns, enum interval_end end,
                         const struct next_action *action)
{
	if (!tracker->at.idle || (end == END_WRITE && goes_to_sleep(tracker, action->next)))
		return true;
	if (end == END_WRITE && tracker->path_ns + ns > tracker->typical.head && is_short_sleep(tracker, action->next))
		return true;
	return end != END_AT_HALT && tracker->path_ns + ns > tracker->typical.limit[end] &&
	       !stays_idle(tracker, ns, end, action);
}

/* Returns the time before the end of the interval during which the guest was idle, on its way to the halt, ns. */
static int64_t idle_tail(enum interval_end end, const struct next_action *action, int64_t min_halt)
{
	const struct irq_followup *next = end == END_INTERRUPT ? action->next : NULL;
	const int64_t tail = min_halt * TAIL / 10;
	if (next && (next->end == END_HALT || next->end == END_AT_HALT))
		return next->rest < tail ? tail - next->rest : 0;
	return end == END_HALT || end == END_AT_HALT ? tail : 0;
}

/* Returns true if it is unknown whether the guest was busy in the interval: it was interrupted at an idle poll site now
 * or before, and no action of a thread followed. */
static bool is_unsure(struct idle_tracker *tracker, enum interval_end end, const struct event *ev, unsigned flags)
{
	const bool was_unsure = tracker->may_poll, found = tracker->idle_stats &&
	                        poll_sites_match(&tracker->idle_stats->poll_sites, tracker->tid, ev, flags);
	tracker->may_poll = found || (was_unsure && (end == END_WRITE || end == END_INTERRUPT));
	return was_unsure || found;
}

struct idle_split idle_tracker_exit(struct idle_tracker *tracker, int64_t t, const struct event *ev, unsigned flags)
{
	const enum interval_end end = episode_interval_end(&tracker->at, tracker->idle_stats, tracker->tid, ev, flags);
	const int64_t ns = tracker->at.since == INT64_MIN ? 0 : t - tracker->at.since;
	const int64_t min_halt = tracker->min_halt_ns;
	struct idle_split split = { .unsure = is_unsure(tracker, end, ev, flags) };
	const struct next_action action = find_next_action(tracker, ev->ts);
	const bool stays = !idle_has_ended(tracker, ns, end, &action);
	if (stays)
		split.head = ns;
	else if (tracker->at.idle && tracker->typical.head > tracker->path_ns)
		split.head = min64(ns, tracker->typical.head - tracker->path_ns);
	if (!stays)
		split.tail = min64(ns - split.head, idle_tail(end, &action, min_halt));
	const bool idle = stays || split.tail > 0;
	if (!stays && idle)
		tracker->typical = unseen_path_times(min_halt);
	tracker->path_ns = stays && end == END_INTERRUPT ? tracker->path_ns + counted_ns(action.next, ns) : 0;
	tracker->exits_known = tracker->exits_known || exit_isa(ev) != ISA_UNKNOWN;
	tracker->halted = end == END_HALT;
	tracker->lost = false;
	episode_exit(&tracker->at, end, idle, ev, flags);
	return split;
}
