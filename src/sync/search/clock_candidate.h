/* A hypothesis of a guest's clock: what it is if the guest runs in that VM (private to sync/).
 *
 * It begins as a wide corridor and is narrowed by containment: an event whose possible host times, given the corridor so
 * far, meet exactly one window of its vCPU lies in that window: its vm entry came before it, its vm exit after it.  Such
 * statements are pairs like those of synchronization events and go into the same hull, which narrows the corridor, which
 * decides more events, until nothing changes.  Events that could be in several windows say nothing; so a corridor that is
 * right at the start stays right.  Each round is linear in the number of events. */
#ifndef STEALSCOPE_SYNC_SEARCH_CLOCK_CANDIDATE_H
#define STEALSCOPE_SYNC_SEARCH_CLOCK_CANDIDATE_H

#include "sync/fit/piecewise_fit.h"
#include "sync/search/cross_correlation.h"

#define EVIDENCE_MIN 40.0  /* nats; what chance alone does not give to any offset of any drift */

struct hypothesis {
	struct clock_map clock;    /* no pieces: nothing that can be told apart from chance */
	uint64_t pairs, used;      /* that it was narrowed by, and those of them that the others do not contradict */
	uint64_t ambiguous;        /* events that may lie in several windows */
	double evidence;           /* how unlikely such a fit is by chance: sum of -ln(duty) over the windows that contain
	                              events, nats; of several pieces that of the one with least */
	double most;               /* of all pieces, if no event that lies out of them did */
	uint64_t inside, outside;  /* times of the activity that it was tested on, by containment */
	bool adrift;               /* it may have stepped by anything, unseen: its corridor is not to be believed */
	const char *doubt;         /* why it is not proved, NULL = it is */
	bool hopeless;             /* ... and to look at parts of the trace would not help */
};

/* Around a guess: what the sweep left open, and some more. */
void hypothesis_begin(struct hypothesis *h, const struct guess *g, struct segment seg);
/* In a corridor of `room` ns to both sides of another one's clock, moved by `shift` ns. */
void hypothesis_near(struct hypothesis *h, const struct hypothesis *like, const struct activity *act, int64_t shift,
                     int64_t room);
void hypothesis_copy(struct hypothesis *to, const struct hypothesis *from);
void hypothesis_release(struct hypothesis *h);

/* What comes of that beside a clock: the pairs that gave it, and those that its events make under it (none: not known). */
struct narrowed { struct pair_list fitted, walked; };
void narrowed_release(struct narrowed *n);

/* Narrows the clock in place.  extra: pairs to use besides, or NULL.  In *n may be what another one left: its room is used
 * again, and what it walked is not walked again; so that has to be of the clock that *h begins with, or have no pairs. */
void hypothesis_narrow(struct hypothesis *h, const struct seen *seen, const struct pair_list *extra, struct narrowed *n);
/* When all is decided: opens the corridor to what the pairs allow for a short time each that the events make under that
 * clock; see fit_open(), which does for a clock that is still the one that hypothesis_narrow() gave. */
void hypothesis_open(struct clock_map *clock, const struct seen *seen, const struct pair_list *extra);

/* Narrows by the activity alone, from where it is, and counts. */
void hypothesis_test(struct hypothesis *h, const struct seen *seen);
void hypothesis_count(struct hypothesis *h, const struct seen *seen);
double hypothesis_share(const struct hypothesis *h);  /* contained, 0..1 */
/* Another one with no more events outside is as good. */
static inline uint64_t hypothesis_may_miss(const struct hypothesis *h) { return 3 * h->outside + 10; }

/* Do the two differ by more than DISTINCT_NS somewhere in the segment? */
#define DISTINCT_NS 60000
bool hypothesis_distinct(const struct hypothesis *a, const struct hypothesis *b, struct segment seg);

/* How often it jumps from one piece to the next.  (A clock that only changes its rate does not.) */
size_t hypothesis_jumps(const struct hypothesis *h);

/* Is there another clock within DOUBTED_NS that fits as well?  Then the corridor becomes as wide as it has to be,
 * and the quality APPROXIMATE. */
#define DOUBTED_NS 200000
void hypothesis_doubt(struct hypothesis *h, const struct seen *seen);

#endif
