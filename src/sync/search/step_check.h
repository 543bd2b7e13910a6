/* Could a clock that fits a whole trace have stepped while it was traced, and nothing tell?  (Private to sync/.)
 *
 * After a step a clock is another one.  What was found contains the events on both sides, but those on one side perhaps by
 * chance, or because the guest was hardly ever left there.  So the events of the first third are asked without the others,
 * and those of the last: a step between is after all of the ones or before all of the others.  What comes before or after
 * some more places is asked, too: within the outer thirds, of a clock that is in doubt already anywhere.  Nearer to the
 * ends than what speaks for the clock on its own (confidence_range.h), nothing is known of it. */
#ifndef STEALSCOPE_SYNC_SEARCH_STEP_CHECK_H
#define STEALSCOPE_SYNC_SEARCH_STEP_CHECK_H

#include "sync/search/clock_candidate.h"

/* Opens the corridor to all clocks within DOUBTED_NS that suit one of the thirds as well, and calls the clock APPROXIMATE
 * then; of one that stays ACCURATE, towards each end, to those of its rate within 3.2 ms that suit what is there.  Where
 * clocks farther away do, none is known there (h->clock.known_from and known_to); nor where there is too little to tell.
 * Where nothing is left, it may be anywhere: h->adrift. */
void steady_doubt(struct hypothesis *h, const struct seen *seen);

/* The same of a clock that jumps: opens what is APPROXIMATE of it to all clocks that suit a piece's events, at any piece's
 * rate; where nothing bounds these, none is known. */
void steady_pieces(struct hypothesis *h, const struct seen *seen);

#endif
