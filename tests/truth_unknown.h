/* Error bounds that the estimated clocks report, by part of the run: only within these may a history differ from the
 * truth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sync/sync.h"
#include "truth_file.h"

#define BOUND_PARTS 64   /* equal parts of the run, each with the largest error bound in it */
#define BOUND_GUESTS 16
#define BOUND_NONE (INT64_MAX / 4)  /* ns: the clock reports no error bound there */

struct clock_jump { int64_t from, to, tolerance; };  /* interval of a possible step and size of the step, as the clock
                                                      * reports them, host ns */

struct guest_bounds {
	char machine[32];
	bool known;                /* its clock has error bounds */
	int64_t part[BOUND_PARTS]; /* error bound by part of the run, ns */
	struct clock_jump jump[8];
	size_t jumps;
};

struct truth_unknown {
	int64_t begin, length; /* start of the run, and length of a part, host ns */
	int64_t least;         /* minimum tolerance, ns; 0: exact */
	bool nested;           /* a row of one guest may depend on the clock of another guest */
	struct guest_bounds guest[BOUND_GUESTS];
	size_t guests;
};

/* Called for a true host time outside the error bounds, which are [host + low, host + high]; low > high: the clock has
 * no bounds. */
typedef void bounds_outside_fn(void *arg, const char *machine, int64_t host, int64_t low, int64_t high);

void bounds_begin(struct truth_unknown *d, const struct truth_file *truth, int64_t slack);
/* Adds the error bounds of a clock; calls outside() at the first time at which they are wrong. */
void bounds_add(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm,
                bounds_outside_fn *outside, void *arg);
void bounds_add_unknown(struct truth_unknown *d, const struct sync_vm *vm);  /* Adds a clock that is reported as unknown. */
/* Returns true if there is any unknown clock. */
bool bounds_any_unknown(const struct truth_unknown *d);
/* Returns true if the attribute depends on known clocks only. */
bool bounds_known(const struct truth_unknown *d, const char *path);
/* Returns the possible error of a time of that attribute at t, ns. *until: last time for which this holds. */
int64_t bounds_at(const struct truth_unknown *d, const char *path, int64_t t, int64_t *until);
/* Cuts the window to the known times of the attribute. */
void bounds_window(const struct truth_unknown *d, const char *path, int64_t *from, int64_t *to);
/* Returns the share of all guests' time without error bounds, 0..1. */
double bounds_unknown_share(const struct truth_unknown *d);
/* Returns the largest error bound, except around possible steps. */
int64_t bounds_max(const struct truth_unknown *d);
