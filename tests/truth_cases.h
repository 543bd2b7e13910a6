/* The kinds of worlds that test_truth has the simulator draw, and what is asked of the analysis in each. */
#ifndef STEALSCOPE_TESTS_TRUTH_CASES_H
#define STEALSCOPE_TESTS_TRUTH_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/simulate.h"
#include "sync/sync.h"

struct test_case {
	const char *name;
	enum sync_method method;
	void (*options)(struct options *o);
	int64_t slack;       /* ns allowed beside the band; -1 = exact */
	bool true_sync;      /* give the model the true clocks instead of what sync found */
	bool only_long;      /* not in the quick set */
	bool only_named;     /* nor in any other unless asked for: see BUGS in stealscope(1), of a hundred seeds some disagree */
	bool finds_roles;    /* which trace is the host's, sync tells */
	bool may_not_know;   /* UNKNOWN and null of the analysis are no disagreement */
};

extern const struct test_case test_case[];
extern const size_t test_cases;

/* Seeds that were wrong once. */
struct pinned { const char *name; uint64_t seed; };
extern const struct pinned pinned[];
extern const size_t pinneds;
bool pinned_told(const char *name, uint64_t seed);  /* silence is no answer there */

#endif
