/* Work budget of the search for a guest's clock in one VM (private to sync/).
 *
 * A guest chooses its events' times, so it could make a search as long as it likes. Work is counted in steps (an
 * event tested, a value of a transform), not in seconds: the result is the same on every machine. After the last step the
 * loops of the search end early, their results are discarded, and the clock is unknown (SYNC_REASON_SEARCH_LIMIT). */
#pragma once

#include "base/base.h"

struct work_budget { uint64_t left; };  /* steps */

/* Spends steps, one more than `steps`, so that a loop without any work ends too. Returns false if the budget is used up.
 * budget NULL: unlimited. */
static inline bool work_spend(struct work_budget *budget, uint64_t steps)
{
	if (!budget)
		return true;
	budget->left = budget->left > steps ? budget->left - steps - 1 : 0;
	return budget->left > 0;
}

static inline bool work_is_used_up(const struct work_budget *budget)
{
	return budget && budget->left == 0;
}
