/* The stretches that begin with a halt, and the ways through them. Private to idle_inference.c, which learns them, and
 * guest_idle_tracker.c, which asks. */
#ifndef STEALSCOPE_MODEL_INFERENCE_IDLE_PATHS_H
#define STEALSCOPE_MODEL_INFERENCE_IDLE_PATHS_H

#include "model/inference/idle_inference.h"

#define NO_LIMIT (INT64_MAX / 4)

/* Ways are numbered: by the vector that came in first, or later, by the site of a write and whether it was the first. */
enum { SITE_BITS = 21, WAY_LATER = 512, WAY_HALT = 1024, WAY_WRITE = 1 << SITE_BITS, WAY_WRITES = 2 << SITE_BITS };

/* Instead of vectors, where these were not recorded: who raised the interrupt. */
enum raised { RAISED_BY_HANDLER = 256, RAISED_BY_SIBLING, RAISED_BY_THREAD };

extern const struct halt_stretch stretch_nowhere;
/* Its thread is woken; as quiet_woken(). */
void stretch_woken(struct halt_stretch *s, bool by_handler, const struct halt_stretch *sibling);
static inline void stretch_enter(struct halt_stretch *s, int64_t t)
{
	if (s->first || s->vector >= 0)
		s->writes = 0;
	s->since = t;
}
/* The way that an entry has begun; -1: it goes on where it was. */
int64_t stretch_way(const struct halt_stretch *s);
/* is: exit_is() of the event. */
enum part_end stretch_end(const struct halt_stretch *s, const struct halts *h, int32_t tid, const struct event *ev,
                          unsigned is);
static inline void stretch_exit(struct halt_stretch *s, enum part_end end, bool quiet, const struct event *ev, unsigned is)
{
	s->quiet = quiet || end == END_HALT || end == END_AT_HALT;
	s->first = end == END_HALT;
	s->wrote = end == END_WRITE;
	if (s->first)
		s->halt_ip = ev->kvm.ip;
	if (s->wrote) {
		s->writes = s->writes ? 2 : 1;
		s->site = (uint32_t)((uint64_t)ev->kvm.ip & (WAY_WRITE - 1));
	}
	s->calls = is & EXIT_CALL;
	s->vector = -1;
	s->since = INT64_MIN;
}
/* Its last write was an interrupt to a sibling, which mostly a thread sends. */
bool stretch_sends(struct halt_stretch *s);

uint64_t way_key(int64_t tid, int64_t way);
#define SITE_ALL INT64_C(-1)
uint64_t way_site(int64_t tid, int64_t ip);  /* SITE_ALL: of all its halts */
const struct way *way_find(const struct halts *h, int64_t tid, int64_t way);  /* NULL: nobody has seen it */
/* The least time between a switch to the idle thread and a halt. */
int64_t way_least(const struct halts *h, int32_t tid);
/* From a write to the halt: longer than the way from the idle loop, which stops the tick and halts, but over long before
 * anything else than a switch away from the thread that wrote could have happened. */
bool way_is_switch(int64_t rest, int64_t least);
bool way_is_short(int64_t rest, int64_t least);  /* shorter than any such switch */

#endif
