/* Lifetimes of host threads (private to sync/). TIDs are reused; where events were lost, one lifetime may have ended and
 * the next one started unrecorded.
 *
 * Parameters comm (string id) and pid are fields of an event; <= 0 or EVENT_ABSENT: unknown. */
#pragma once

#include "sync/evidence/host_timeline.h"

/* Returns the live vCPU thread with the TID, created if necessary; NULL: limit THREADS_MAX reached. */
struct vthread *lifetime_get(struct host_timeline *v, int32_t tid, int64_t ts);
/* Returns the live vCPU thread with the TID if the event adds no information about it and no events were lost (the
 * common case); otherwise NULL. */
struct vthread *lifetime_find_unchanged(const struct host_timeline *v, int64_t tid, int64_t comm, int64_t pid);
/* Records the name and process of a thread. After a loss, a different name or process indicates another thread. */
void lifetime_record_sighting(struct host_timeline *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid);
/* Ends a TID's lifetime. exit_seen: the thread's exit was recorded; false: the TID was reused. */
void lifetime_end(struct host_timeline *v, int64_t tid, int64_t ts, bool exit_seen);
/* Ends the lifetime after a loss if the TID appears in another process or as another vCPU. */
void lifetime_end_if_other_thread(struct host_timeline *v, int64_t tid, int64_t ts, int64_t comm, int64_t pid);
/* Records an event that names the thread, and creates a vCPU thread if its name or the user identifies it as one. */
void lifetime_observe(struct host_timeline *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid);
