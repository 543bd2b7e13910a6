/* Episodes that begin with a halt, and the paths through the guest's idle code; private to idle_inference.c, which
 * learns the paths, and guest_idle_tracker.c, which uses them. */
#pragma once

#include "model/inference/idle_inference.h"

#define NO_LIMIT (INT64_MAX / 4)

/* Path numbers. A path is identified by the vector injected first after the halt (vector + 1), by a vector injected
 * later (PATH_LATER + vector), or by a write's address, separately for the first write and later writes. */
enum { SITE_BITS = 21, PATH_LATER = 512, PATH_HALT = 1024, PATH_WRITE = 1 << SITE_BITS, PATH_WRITES = 2 << SITE_BITS };

/* Kind of waker; replaces the vector if injections are not recorded. */
enum wake_source { WOKEN_BY_HANDLER = 256, WOKEN_BY_SIBLING, WOKEN_BY_THREAD };

extern const struct idle_episode episode_none;
/* Called when the vCPU's thread is woken; arguments as for idle_tracker_woken(). */
void episode_woken(struct idle_episode *s, bool by_handler, const struct idle_episode *sibling);
static inline void episode_entry(struct idle_episode *s, int64_t t)
{
	if (s->first || s->vector >= 0)
		s->writes = 0;
	s->since = t;
}
/* Returns the path that begins with this VM entry; -1: the current path continues. */
int64_t episode_path(const struct idle_episode *s);
/* Classifies the end of an interval in guest mode. flags: exit_flags() of the event. */
enum interval_end episode_interval_end(const struct idle_episode *s, const struct idle_stats *h, int32_t tid,
                                       const struct event *ev, unsigned flags);
static inline void episode_exit(struct idle_episode *s, enum interval_end end, bool quiet, const struct event *ev,
                                unsigned flags)
{
	s->idle = quiet || end == END_HALT || end == END_AT_HALT;
	s->first = end == END_HALT;
	s->wrote = end == END_WRITE;
	if (s->first)
		s->halt_ip = ev->vcpu_exit.ip;
	if (s->wrote) {
		s->writes = s->writes ? 2 : 1;
		s->site = (uint32_t)((uint64_t)ev->vcpu_exit.ip & (PATH_WRITE - 1));
	}
	s->calls = flags & EXIT_CALL;
	s->vector = -1;
	s->since = INT64_MIN;
}
/* Called when the vCPU sent an IPI to a sibling: that was its last write. Returns false if the last exit was not a
 * write. Usually it is threads that send IPIs. */
bool episode_ipi(struct idle_episode *s);

uint64_t idle_path_key(int64_t tid, int64_t path);
#define SITE_ALL INT64_C(-1)
/* Returns the key of a halt address in idle_stats.site; SITE_ALL: key for all halts of the TID. */
uint64_t idle_path_site(int64_t tid, int64_t ip);
/* Returns the path; NULL: not found in the prescan. */
const struct idle_path *idle_path_find(const struct idle_stats *h, int64_t tid, int64_t path);
/* Returns the shortest time from a switch to the idle thread to a halt, ns; 0: unknown. */
int64_t idle_path_min_halt(const struct idle_stats *h, int32_t tid);
/* Returns true if the time from a write to the halt fits a switch away from the thread that wrote: longer than from the
 * idle loop, which stops the tick and halts, but too short for anything else. */
bool idle_path_is_switch(int64_t rest, int64_t min_halt);
bool idle_path_is_short(int64_t rest, int64_t min_halt);  /* Returns true if that time is shorter than any such switch. */
