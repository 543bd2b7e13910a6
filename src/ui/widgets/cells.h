/* Cells: the exact content of a row in each column, computed from all intervals, not from samples.
 *
 * - Column i of a row covers the closed interval [t0 + i*step, t0 + (i+1)*step - 1]; the history returns the ns in each
 *   state within this interval.
 * - The share of time waiting for a CPU is drawn from the bottom, even if it is 1 ns; the rest shows the most frequent
 *   of the other states.
 * - Two windows whose t0 differ by k steps have pictures that differ by k columns.
 *
 * Cost of a row of n cells and one attribute: n sums and at most 2 n stabbing queries, each O(log intervals) for any
 * window. */
#pragma once

#include "base/base.h"
#include "history/history.h"

#define WAIT_SEVERITY 8     /* smallest severity of a state that is a wait for a CPU */
#define CELL_PARTS 16  /* shares are stored in sixteenths */

enum cell_form {
	CELL_EMPTY,   /* outside the history */
	CELL_PURE,    /* one state: main */
	CELL_SPLIT,   /* two states that are not waits, with one boundary: main in the left `part`, then other */
	/* several states. part: share of all waits; other: the longest wait; main: the longest other state. If all states
	 * are waits, or none is, main == other */
	CELL_MIXED,
};

struct cell {
	uint8_t form, main, other;
	uint8_t part;  /* share, sixteenths, rounded down: 0 .. 16 */
};

/* Source of the cells of a row. The sums of several attributes (a folded machine) are added. */
struct cell_source {
	const struct history *h;
	const uint32_t *attr;
	unsigned attrs;
	const uint8_t *code;      /* code of each state of the history, HISTORY_STATES entries */
	const uint8_t *severity;  /* each code's severity; codes are < HISTORY_STATES */
	/* all states are of equal rank (a pCPU's owners): main is the most frequent, other the next one with severity > 0 */
	bool equal_rank;
};

/* Computes the cells of n columns of step ns; the first one begins at t0. Returns 0, or -1. */
int cells_row(const struct cell_source *src, int64_t t0, int64_t step, int n, struct cell *out, struct error *err);

/* Sums the time in each code during [from, to], over all attributes of the source. Returns 0, or -1. */
int cells_sums(const struct cell_source *src, int64_t from, int64_t to, int64_t sums[HISTORY_STATES],
               struct error *err);

/* Makes the cell for given sums by code; CELL_EMPTY if they are all 0. */
struct cell cell_of_sums(const int64_t sums[HISTORY_STATES], const uint8_t *severity, bool equal_rank);
/* Makes the cell for a column of `step` ns with code a in the first `left` ns (0 < left < step) and code b after them. */
struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b);
