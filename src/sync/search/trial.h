/* One hypothesis of a guest's clock, tested on more and more of its trace (private to sync/). */
#ifndef STEALSCOPE_SYNC_TRIAL_H
#define STEALSCOPE_SYNC_TRIAL_H

#include "sync/search/lock.h"

#define EVIDENCE_MIN 40.0  /* nats; what chance alone does not give to any offset of any drift */

struct trial {
	struct clock_map clock;
	struct lock lock;
	uint64_t inside, outside;  /* times of the activity that it was tested on, by containment */
	double crowd;              /* of its guess */
};

void trial_begin(struct trial *t, const struct guess *g, struct segment seg);
/* In a corridor of `room` ns to both sides of another one's clock, moved by `shift` ns. */
void trial_near(struct trial *t, const struct trial *like, const struct activity *act, int64_t shift, int64_t room);
void trial_copy(struct trial *to, const struct trial *from);
void trial_release(struct trial *t);

/* Locks the clock on the activity, from where it is, and counts. */
void trial_lock(struct trial *t, const struct versus *v);
void trial_count(struct trial *t, const struct versus *v);
double trial_share(const struct trial *t);  /* contained, 0..1 */

/* Do the two differ by more than DISTINCT_NS somewhere in the segment? */
#define DISTINCT_NS 60000
bool trial_distinct(const struct trial *a, const struct trial *b, struct segment seg);

/* Does it jump from one piece to the next?  (A clock that only changes its rate does not.) */
bool trial_jumps(const struct trial *t);

/* Is there another clock within DOUBTED_NS that fits as well?  Then the corridor becomes as wide as it has to be,
 * and the quality APPROXIMATE. */
#define DOUBTED_NS 200000
void trial_doubt(struct trial *t, const struct versus *v);

#endif
