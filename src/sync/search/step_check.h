/* Checks whether a clock that fits a whole trace may have stepped unnoticed (private to sync/).
 *
 * After a step the guest has another clock. The estimated clock contains the events on both sides of the step, but on
 * one side perhaps by chance, or because the guest hardly left guest mode. So the first and the last third of the events
 * are tested on their own: a step lies after all events of the first third or before all events of the last third.
 * Shorter parts at both ends are tested as well; if the clock is APPROXIMATE already, parts anywhere. Outside the range
 * supported by the events alone (confidence_range.h), the clock is unverified. */
#pragma once

#include "sync/search/clock_candidate.h"

/* Checks a clock of one segment, or without steps. If other clocks within AMBIGUITY_NS fit one of the thirds as well,
 * widens the error bounds to include them and sets the quality to APPROXIMATE. If the clock stays ACCURATE, widens the
 * bounds towards each end to clocks of the same rate within END_SEARCH_MAX_NS. Where clocks farther away fit, or where
 * there are too few events, the clock has no bounds (clock.known_from and known_to). If no time with bounds remains,
 * sets h->unverified. */
void step_check_line(struct clock_candidate *h, const struct evidence *evidence);

/* Checks a clock with steps: widens the bounds of its APPROXIMATE segments to all clocks that fit their events at the
 * rate of any segment; where these clocks are unbounded, the clock has no error bounds. */
void step_check_segments(struct clock_candidate *h, const struct evidence *evidence);
