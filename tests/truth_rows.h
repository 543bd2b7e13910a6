/* Runs the simulator and compares every interval of every attribute of the history with the truth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"
#include "truth_cases.h"
#include "truth_unknown.h"
#include "truth_file.h"
#include "truth_records.h"

#define RUN_SHOWN 6  /* disagreements printed per run */

struct truth_run {
	const struct test_case *test;
	uint64_t seed;
	struct truth_file truth;
	struct history *h;
	int64_t from, to;      /* compared window: times covered by the traces on which the attribute depends */
	const char *path;      /* path of the attribute */
	struct truth_unknown bounds;
	struct truth_records records;
	int64_t unknown_ns, known_ns;
	int64_t wrong_ns;      /* wrong time of an estimated attribute, ns */
	unsigned wrong;
	size_t compared;       /* number of attributes compared */
	char unplaced[16][32]; /* guests that the analysis reports as not matched to a VM */
	bool skipped;          /* most events were lost: nothing to compare */
};

void run_report(struct truth_run *r, const char *path, int64_t from, int64_t to, const char *found, const char *is);
int run_compare(struct truth_run *r, struct error *err);
bool estimates_hold(void);  /* Returns true if the estimates of all runs are good enough; otherwise prints their error. */
