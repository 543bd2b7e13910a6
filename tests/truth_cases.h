/* Kinds of simulated worlds of test_truth, and the properties checked in each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/simulate.h"
#include "sync/sync.h"

struct test_case {
	const char *name;
	enum sync_method method;
	void (*options)(struct options *o);
	int64_t slack;     /* tolerance in addition to the error bound, ns; -1: exact */
	bool true_sync;    /* the model uses the true clocks instead of the estimated clocks */
	bool only_long;    /* not in the quick set */
	bool only_named;   /* run only on request: some of a hundred seeds disagree, see BUGS in stealscope(1) */
	bool finds_roles;  /* sync must find the host trace */
	bool may_not_know; /* UNKNOWN and null in the analysis do not count as disagreement */
};

extern const struct test_case test_case[];
extern const size_t test_cases;

/* Seed that once disagreed with the truth. */
struct pinned { const char *name; uint64_t seed; };
extern const struct pinned pinned[];
extern const size_t pinneds;
/* Returns true if an unsynchronized clock counts as failure for this seed. */
bool pinned_needs_clock(const char *name, uint64_t seed);
