/* Cells: what one row shows in each column, exactly (never a sample).
 *
 * Column i of a row covers the closed interval [t0 + i*step, t0 + (i+1)*step - 1].  The history gives the ns in each
 * state within it.  A cell says how much: the share in which the row waited for a CPU stands from the bottom, whether it
 * is the largest or 1 ns; the rest shows the largest of the other states.
 * Windows whose t0 differ by k steps have pictures that differ by k columns.
 *
 * Cost of a row of n cells and one attribute: n sums and at most 2 n stabbing queries, each O(log intervals) whatever
 * the window. */
#ifndef STEALSCOPE_UI_WIDGETS_CELLS_H
#define STEALSCOPE_UI_WIDGETS_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "history/history.h"

#define SUFFERS 8     /* a state that severe, or more, waits for a CPU */
#define CELL_PARTS 16 /* shares are told in sixteenths */

enum cell_form {
	CELL_EMPTY,   /* outside the history */
	CELL_PURE,    /* one state: main */
	CELL_SPLIT,   /* one boundary, between states that do not suffer: main to the left for `part`, then other */
	CELL_MIXED,   /* the states that suffer have `part`: other has most of that.  Of the rest main has most.  When
	                 none suffers, or all do, main == other: the one with most time */
};

struct cell {
	uint8_t form, main, other;
	uint8_t part;  /* sixteenths, rounded down: 0 .. 16 */
};

/* What a row is made of.  Several attributes (a folded machine) are added up. */
struct cell_source {
	const struct history *h;
	const uint32_t *attr;
	unsigned attrs;
	const uint8_t *code;      /* state of the history (HISTORY_STATES of them) -> code of the row's vocabulary */
	const uint8_t *severity;  /* of each code; codes are < HISTORY_STATES */
	bool minority;            /* states are equals (owners of a pCPU): main is the largest, other the next, unless 0 */
};

/* Codes of the columns first .. first + n - 1 of the window that begins at t0. */
int cells_row(const struct cell_source *src, int64_t t0, int64_t step, int n, struct cell *out, struct error *err);

/* The time in each code during [from, to], over all attributes of the source. */
int cells_sums(const struct cell_source *src, int64_t from, int64_t to, int64_t sums[HISTORY_STATES],
               struct error *err);

/* Pure: the cell for given sums (form EMPTY when they are all 0). */
struct cell cell_of_sums(const int64_t sums[HISTORY_STATES], const uint8_t *severity, bool minority);
/* Pure: the cell of `step` ns whose first `left` ns (0 < left < step) are in code a, the rest in b. */
struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b);

#endif
