/* A run of the simulator, and every interval of every row of its history held against the truth. */
#ifndef STEALSCOPE_TESTS_TRUTH_ROWS_H
#define STEALSCOPE_TESTS_TRUTH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"
#include "truth_cases.h"
#include "truth_unknown.h"
#include "truth_file.h"
#include "truth_records.h"

#define RUN_SHOWN 6  /* disagreements printed per run */

struct run {
	const struct test_case *test;
	uint64_t seed;
	struct truth_file truth;
	struct history *h;
	int64_t from, to;    /* what is compared of the attribute: what the traces cover that it depends on */
	const char *path;    /* of the attribute */
	struct truth_unknown doubt;
	struct truth_records records;
	int64_t unknown_ns, known_ns;
	int64_t missed_ns;   /* of the attribute: wrong where it is an estimate */
	unsigned wrong;
	size_t compared;     /* attributes */
	char unplaced[16][32];  /* guests of which it says that nobody can tell which VM they are */
	bool skipped;        /* so much was lost that there is nothing to compare */
};

void run_complain(struct run *r, const char *path, int64_t from, int64_t to, const char *found, const char *is);
int run_compare(struct run *r, struct error *err);
bool estimates_hold(void);  /* those of all runs; if not, so much is printed */

#endif
