/* Which life of a TID an event is of (private to sync/): TIDs are used again, and where events were lost, a life may end
 * and the next one begin unseen. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_THREAD_LIFETIMES_H
#define STEALSCOPE_SYNC_EVIDENCE_THREAD_LIFETIMES_H

#include "sync/evidence/host_timeline.h"

/* The live instance of a TID, made if need be; NULL when there are too many to be true. */
struct vthread *life_of(struct host_view *v, int32_t tid, int64_t ts);
/* The live instance of a TID, if all that an event says of it is known, and nothing was lost: the usual case, in which the
 * following change nothing. */
struct vthread *life_known_so(const struct host_view *v, int64_t tid, int64_t comm, int64_t pid);
/* What an event says of a thread.  Where events were lost, the same name and process are the same thread's. */
void life_sight(struct host_view *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid);
/* seen: its exit; else its TID is used again. */
void life_end(struct host_view *v, int64_t tid, int64_t ts, bool seen);
/* Its end and the next one's beginning were lost: a TID that comes back in another process, or as another vCPU than
 * it was, is another thread's. */
void lives_tell_apart(struct host_view *v, int64_t tid, int64_t ts, int64_t comm, int64_t pid);
/* An event names a thread: what is known of it, and an instance of it if that makes it a vCPU's. */
void life_name(struct host_view *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid);

#endif
