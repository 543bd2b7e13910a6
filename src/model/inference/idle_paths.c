#include "model/inference/idle_paths.h"

#define USER_SPACE (INT64_C(1) << 47)  /* of a guest, on all processors that run Linux with 4 levels of pages */
#define WAITS_LEAST 3
#define WAITS_MOST 3      /* times as many of all halts as are ended by an interrupt */
#define WAIT_MOSTLY 9     /* of ten halts there, more are not ended by an interrupt */

enum { HALT_BYTES = 4 };  /* an interrupt at a halt finds the guest at the instruction itself or the next one */
enum { SWITCH_LEAST = 19, SWITCH_MOST = 38 };  /* tenths of the least time to a halt */

/* ---- where it is */

const struct halt_stretch stretch_nowhere = STRETCH_NOWHERE;

int64_t stretch_way(const struct halt_stretch *s)
{
	if (s->first)
		return s->vector + 1;
	if (s->vector >= 0)
		return WAY_LATER + s->vector;
	return s->wrote ? (s->writes > 1 ? WAY_WRITES : WAY_WRITE) + (int64_t)s->site : -1;
}

static uint64_t ends_at(const struct halts *h, int64_t tid, int64_t ip)
{
	const uint64_t *ends = map_find(&h->site, way_site(tid, ip));
	return ends ? *ends : 0;
}

/* Is what halts there a thread that waits for a lock?  Where the processor itself injects interrupts, nobody sees them. */
static bool is_wait(const struct halts *h, int32_t tid, int64_t ip)
{
	if (!h || ip == EVENT_ABSENT)
		return false;
	const uint64_t here = ends_at(h, tid, ip), all = ends_at(h, tid, SITE_ALL), others = here & UINT32_MAX;
	return others >= WAITS_LEAST && others > (here >> 32) * WAIT_MOSTLY && (all & UINT32_MAX) <= (all >> 32) * WAITS_MOST;
}

enum part_end stretch_end(const struct halt_stretch *s, const struct halts *h, int32_t tid, const struct event *ev,
                          unsigned is)
{
	int64_t ip = ev->kvm.ip;
	switch ((enum exit_class)(is & EXIT_CLASS)) {
	case EXIT_HALT:
		return is_wait(h, tid, ip) ? END_THREAD : END_HALT;
	case EXIT_TIMER:
		return END_WRITE;
	case EXIT_INTERRUPT:
		if (ip >= 0 && ip < USER_SPACE)
			return END_THREAD;
		return ip != EVENT_ABSENT && s->halt_ip != EVENT_ABSENT && (uint64_t)ip - (uint64_t)s->halt_ip <= HALT_BYTES
		     ? END_AT_HALT : END_INTERRUPT;
	case EXIT_OTHER:
		break;
	}
	return END_THREAD;
}

void stretch_woken(struct halt_stretch *s, bool by_handler, const struct halt_stretch *sibling)
{
	if (s->since != INT64_MIN)
		return;
	if (by_handler || !sibling)
		s->vector = by_handler ? RAISED_BY_HANDLER : RAISED_BY_THREAD;
	else
		s->vector = sibling->calls ? -1 : RAISED_BY_SIBLING;  /* it calls: a lock is free */
}

bool stretch_sends(struct halt_stretch *s)
{
	if (!s->wrote || s->since != INT64_MIN)
		return false;
	s->quiet = s->wrote = false;
	return true;
}

/* ---- ways */

uint64_t way_key(int64_t tid, int64_t way)
{
	return (uint64_t)tid << 32 | (uint64_t)way;
}

uint64_t way_site(int64_t tid, int64_t ip)
{
	return way_key(tid, (int64_t)((uint64_t)ip & UINT32_MAX));
}

const struct way *way_find(const struct halts *h, int64_t tid, int64_t way)
{
	const uint64_t *slot = h && way >= 0 ? map_find(&h->index, way_key(tid, way)) : NULL;
	return slot ? &h->way[*slot] : NULL;
}

int64_t way_least(const struct halts *h, int32_t tid)
{
	const struct way *w = way_find(h, tid, WAY_HALT);
	return w ? w->usual.head : 0;
}

bool way_is_short(int64_t rest, int64_t least)
{
	return rest <= least * SWITCH_LEAST / 10;
}

bool way_is_switch(int64_t rest, int64_t least)
{
	return !way_is_short(rest, least) && rest <= least * SWITCH_MOST / 10;
}
