/* Search for scheduler parameters that reproduce a recording. Private to compare/. */
#pragma once

#include "compare/whatif/scheduler_replay.h"

#define PHASES 4             /* tick phases tried */
#define MODELS (PHASES + 1)

/* Parameter sets of the scheduler model, best first. */
struct models {
	struct sched_params params[MODELS];
	unsigned n;
	double length_mismatch;  /* wait length mismatch of the best set, in half octaves */
	unsigned other_kind;     /* index of the best set of the other kind (with or without ticks); 0: none */
};

/* Calibrates the model. Cost: some 70 replays of a part of the window with at most 200,000 bursts. */
int models_find(const struct host_demand *d, struct models *models, struct error *err);
/* Returns the error of the last replay relative to the recorded waits. Waits are summed by name, as in reports: among
 * short-lived threads of one name it is random which thread waits. */
double demand_mismatch(const struct host_demand *d);
