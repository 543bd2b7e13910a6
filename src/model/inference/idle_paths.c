#include "model/inference/idle_paths.h"

#define USER_SPACE (INT64_C(1) << 47)  /* end of user space in a guest with 4 levels of page tables, on all CPUs that run
                                        * Linux */
#define LOCK_WAITS_MIN 3
#define LOCK_WAITS_MAX 3      /* maximum ratio of the halts not ended by an interrupt to those ended by one */
#define LOCK_WAIT_SHARE 9     /* minimum ratio of these halts at a site of lock waits */

enum { HALT_BYTES = 4 };  /* an interrupt at a halt finds the guest at the halt instruction or the next instruction */
enum { SWITCH_MIN = 19, SWITCH_MAX = 38 };  /* limits of the time from a write to a halt, in tenths of the shortest time
                                             * to a halt */

/* ---- episodes */

const struct idle_episode episode_none = EPISODE_INIT;

int64_t episode_path(const struct idle_episode *s)
{
	if (s->first)
		return s->vector + 1;
	if (s->vector >= 0)
		return PATH_LATER + s->vector;
	return s->wrote ? (s->writes > 1 ? PATH_WRITES : PATH_WRITE) + (int64_t)s->site : -1;
}

static uint64_t halt_ends(const struct idle_stats *h, int64_t tid, int64_t ip)
{
	const uint64_t *ends = map_find(&h->site, idle_path_site(tid, ip));
	return ends ? *ends : 0;
}

/* Returns true if the halt at that address is by a thread that waits for a lock. False if most halts end without a
 * recorded injection: then the CPU injects interrupts itself, unrecorded. */
static bool is_lock_wait(const struct idle_stats *h, int32_t tid, int64_t ip)
{
	if (!h || ip == EVENT_ABSENT)
		return false;
	const uint64_t here = halt_ends(h, tid, ip), all = halt_ends(h, tid, SITE_ALL), others = here & UINT32_MAX;
	return others >= LOCK_WAITS_MIN && others > (here >> 32) * LOCK_WAIT_SHARE &&
	       (all & UINT32_MAX) <= (all >> 32) * LOCK_WAITS_MAX;
}

enum interval_end episode_interval_end(const struct idle_episode *s, const struct idle_stats *h, int32_t tid,
                                       const struct event *ev, unsigned flags)
{
	int64_t ip = ev->vcpu_exit.ip;
	switch ((enum exit_class)(flags & EXIT_CLASS)) {
	case EXIT_HALT:
		return is_lock_wait(h, tid, ip) ? END_THREAD : END_HALT;
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

void episode_woken(struct idle_episode *s, bool by_handler, const struct idle_episode *sibling)
{
	if (s->since != INT64_MIN)
		return;
	if (by_handler || !sibling)
		s->vector = by_handler ? WOKEN_BY_HANDLER : WOKEN_BY_THREAD;
	else
		s->vector = sibling->calls ? -1 : WOKEN_BY_SIBLING;  /* sibling made a hypercall: it released the lock */
}

bool episode_ipi(struct idle_episode *s)
{
	if (!s->wrote || s->since != INT64_MIN)
		return false;
	s->idle = s->wrote = false;
	return true;
}

/* ---- paths */

uint64_t idle_path_key(int64_t tid, int64_t path)
{
	return (uint64_t)tid << 32 | (uint64_t)path;
}

uint64_t idle_path_site(int64_t tid, int64_t ip)
{
	return idle_path_key(tid, (int64_t)((uint64_t)ip & UINT32_MAX));
}

const struct idle_path *idle_path_find(const struct idle_stats *h, int64_t tid, int64_t path)
{
	const uint64_t *slot = h && path >= 0 ? map_find(&h->index, idle_path_key(tid, path)) : NULL;
	return slot ? &h->path[*slot] : NULL;
}

int64_t idle_path_min_halt(const struct idle_stats *h, int32_t tid)
{
	const struct idle_path *w = idle_path_find(h, tid, PATH_HALT);
	return w ? w->typical.head : 0;
}

bool idle_path_is_short(int64_t rest, int64_t min_halt)
{
	return rest <= min_halt * SWITCH_MIN / 10;
}

bool idle_path_is_switch(int64_t rest, int64_t min_halt)
{
	return !idle_path_is_short(rest, min_halt) && rest <= min_halt * SWITCH_MAX / 10;
}
