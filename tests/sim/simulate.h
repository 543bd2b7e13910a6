/* Interface of the simulator for main() and tests. */
#pragma once

#include "sim.h"

struct sim_result {
	uint64_t records;   /* records written */
	int64_t begin, end; /* host ns of the first and last record */
};

/* Runs the scenario and writes traces and truth below options->out. Returns 0, or -1 with *err set. */
int simulate(const struct options *options, struct sim_result *result, struct error *err);
