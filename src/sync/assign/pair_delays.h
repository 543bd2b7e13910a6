/* How far the pairs of messages lie from a guest's clock (private to sync/; the result is public, see sync.h). */
#ifndef STEALSCOPE_SYNC_ASSIGN_PAIR_DELAYS_H
#define STEALSCOPE_SYNC_ASSIGN_PAIR_DELAYS_H

#include "sync/assign/guest_vm_match.h"

/* Of a match's pairs by sync events, and of the nearest by containment. */
void delays_fill(struct sync_delays *d, const struct match *m, const struct trace *guest);

#endif
