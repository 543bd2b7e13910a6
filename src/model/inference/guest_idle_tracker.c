#include "model/inference/idle_paths.h"

enum { TAIL = 14 };  /* tenths of the least time to a halt: from a switch to the idle thread */
enum { HELD_UP = 25 };
enum { LONGEST = 25 };  /* times the least time to a halt: so far it may be to a thread, or back to a halt without one */

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void quiet_init(struct quiet *q, const struct halts *h, int32_t tid)
{
	*q = (struct quiet){
		.tid = tid, .at = stretch_nowhere, .halts = h, .least = way_least(h, tid),
		.prospects = h ? prospects_of(&h->prospects, tid) : NULL,
	};
}

void quiet_lose(struct quiet *q)
{
	q->halted = false;
	q->lost = true;
	q->at = stretch_nowhere;
	q->usual = (struct usual){ 0 };
	q->spent = 0;
	q->doubt = false;
}

void quiet_inject(struct quiet *q, int64_t vector)
{
	q->at.vector = (int16_t)(vector & 0xff);
}

void quiet_woken(struct quiet *q, bool by_handler, const struct quiet *sibling)
{
	if (q->halts && !q->halts->injects)
		stretch_woken(&q->at, by_handler, sibling ? &sibling->at : NULL);
}

/* On a way that nobody has seen, or on which a thread has always run for long before it halted: as short as any. */
static struct usual unseen(int64_t least)
{
	return (struct usual){ .head = least,
	                       .limit = { [END_HALT] = 2 * least, [END_WRITE] = 3 * least, -1, [END_INTERRUPT] = least } };
}

void quiet_enter(struct quiet *q, int64_t t)
{
	stretch_enter(&q->at, t);
	q->halted = q->lost = false;
	int64_t way = q->at.quiet ? stretch_way(&q->at) : -1;
	if (way < 0)
		return;
	const struct way *w = way_find(q->halts, q->tid, way);
	const bool is_told = w && (w->usual.head <= LONGEST * q->least || q->least == 0);
	q->usual = is_told ? w->usual : unseen(q->least);
	q->spent = 0;
}

/* As far as anybody knows what a thread's exit leads to. */
struct foresight {
	const struct prospect *next;  /* NULL unknown */
	bool sends;                   /* its guest's threads send interrupts, and that is recorded */
};

static struct foresight foresee(const struct quiet *q, int64_t t)
{
	struct prospects *p = q->prospects;
	return p ? (struct foresight){ prospects_at(p, t), p->sends } : (struct foresight){ NULL, false };
}

/* A thread sets its timer, or wakes another one, and has yet to be switched away from: that takes longer than the way from
 * the idle loop, which stops the tick and halts, but is over long before anything else could have happened. */
static bool goes_to_sleep(const struct quiet *q, const struct prospect *next)
{
	const bool by_interrupt = q->at.writes == 0 && q->usual.limit[END_WRITE] == NO_LIMIT;
	return next && next->end == END_HALT && !by_interrupt && way_is_switch(next->rest, q->least);
}

/* How much of the time before an interruption counts.  On its way to a write: a thread that ran for so long would hardly
 * have come to one so soon afterwards, so the host's CPU itself was held up. */
static int64_t counts(const struct prospect *next, int64_t ns)
{
	return next && next->end == END_WRITE && ns > (int64_t)next->rest * HELD_UP ? 0 : ns;
}

/* Interrupted: would it have stayed idle for so long, had it not been?  And what writes without sending anything is hardly
 * a thread where those send: the idle loop stops its tick, and interrupts set their timers.  Where injections are not
 * recorded such an interrupt may have come in later, and stopped a thread. */
static bool stays_until(const struct quiet *q, int64_t ns, enum part_end end, const struct foresight *to)
{
	const struct prospect *next = to->next;
	if (!next)
		return false;
	if (end == END_WRITE)
		return to->sends && !next->sent;
	if (next->end == END_WRITE)
		return (to->sends && q->halts->injects) || q->spent + counts(next, ns) + next->rest <= q->usual.limit[END_WRITE];
	return next->end == END_AT_HALT;
}

/* A timer for so soon that it expired before the guest could halt, where it is threads that set timers. */
static bool is_short_sleep(const struct quiet *q, const struct prospect *next)
{
	const struct way *w = next && next->vector >= 0 ? way_find(q->halts, q->tid, WAY_LATER + next->vector) : NULL;
	return q->usual.timers && w && w->usual.limit[END_WRITE] == NO_LIMIT && !next->sent &&
	       way_is_short(next->rest, q->least);
}

static bool is_over(const struct quiet *q, int64_t ns, enum part_end end, const struct foresight *to)
{
	if (!q->at.quiet || (end == END_WRITE && goes_to_sleep(q, to->next)))
		return true;
	if (end == END_WRITE && q->spent + ns > q->usual.head && is_short_sleep(q, to->next))
		return true;
	return end != END_AT_HALT && q->spent + ns > q->usual.limit[end] && !stays_until(q, ns, end, to);
}

/* How long it is idle before the end of its time in guest mode, which it spends on the way to its halt. */
static int64_t tail_of(enum part_end end, const struct foresight *to, int64_t least)
{
	const struct prospect *next = end == END_INTERRUPT ? to->next : NULL;
	const int64_t tail = least * TAIL / 10;
	if (next && (next->end == END_HALT || next->end == END_AT_HALT))
		return next->rest < tail ? tail - next->rest : 0;
	return end == END_HALT || end == END_AT_HALT ? tail : 0;
}

/* Whether it was busy until now is in doubt: it is found where it may have waited, or was, and nothing told more since. */
static bool doubts(struct quiet *q, enum part_end end, const struct event *ev, unsigned is)
{
	const bool was = q->doubt, found = q->halts && spots_doubt(&q->halts->spots, q->tid, ev, is);
	q->doubt = found || (was && (end == END_WRITE || end == END_INTERRUPT));
	return was || found;
}

struct quiet_split quiet_exit(struct quiet *q, int64_t t, const struct event *ev, unsigned is)
{
	const enum part_end end = stretch_end(&q->at, q->halts, q->tid, ev, is);
	const int64_t ns = q->at.since == INT64_MIN ? 0 : t - q->at.since;
	const int64_t least = q->least;
	struct quiet_split split = { .doubt = doubts(q, end, ev, is) };
	const struct foresight to = foresee(q, ev->ts);
	const bool stays = !is_over(q, ns, end, &to);
	if (stays)
		split.head = ns;
	else if (q->at.quiet && q->usual.head > q->spent)
		split.head = least_of(ns, q->usual.head - q->spent);
	if (!stays)
		split.tail = least_of(ns - split.head, tail_of(end, &to, least));
	const bool idle = stays || split.tail > 0;
	if (!stays && idle)
		q->usual = unseen(least);
	q->spent = stays && end == END_INTERRUPT ? q->spent + counts(to.next, ns) : 0;
	q->known = q->known || exit_isa(ev) != ISA_UNKNOWN;
	q->halted = end == END_HALT;
	q->lost = false;
	stretch_exit(&q->at, end, idle, ev, is);
	return split;
}
