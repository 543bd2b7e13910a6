/* A stretch in which a guest was let run and recorded nothing: perhaps its clock was set ahead and skipped it (private to
 * sync/).
 *
 * Then what came before it, or after it, was at another time than the clock that was found says: beside the host's trace
 * even, where nothing contradicts.  So the events on either side must have evidence of their own. */
#ifndef STEALSCOPE_SYNC_SILENCE_H
#define STEALSCOPE_SYNC_SILENCE_H

#include "sync/search/hypothesis.h"

/* The parts of the guest's trace before the first such stretch and after the last one; false: there is no such stretch.
 * A part without events ends before it begins.  Linear. */
bool silence_find(const struct seen *seen, const struct clock_map *clock, struct segment part[2]);

#endif
