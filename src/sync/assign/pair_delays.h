/* Fills the histogram of the distances between a guest's clock and its sync pairs (private to sync/; struct sync_delays
 * is public). */
#pragma once

#include "sync/assign/guest_vm_match.h"

/* Fills *d with the pairs by sync events of a match and its closest pairs by containment. */
void delays_fill(struct sync_delays *d, const struct match *m, const struct trace *guest);
