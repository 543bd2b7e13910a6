/* The view: window, cursor, selected row, markers, and their undo. Pure arithmetic, no drawing.
 *
 * The window is a whole number of ns per column, so that panning by k columns shifts the picture by exactly k columns. */
#pragma once

#include "base/base.h"

#define VIEW_NONE INT64_MIN  /* value of a marker that is not set */

/* Identifies a row independently of folding, sorting and filter. */
struct row_id {
	uint8_t kind;    /* value of enum row_kind (ui/core/rows.h) */
	uint32_t index;
};

struct view {
	int64_t t0;      /* time of the first column, ns */
	int64_t step;    /* ns per column, >= 1 */
	int64_t cursor;  /* time at the cursor, ns; always within the window and the trace */
	int64_t a, b;    /* markers A and B, ns; VIEW_NONE: not set */
	int64_t range;   /* a range selection's start, ns, which ends at the cursor; VIEW_NONE: none */
	struct row_id row;
	int cols;        /* number of columns that t0 and step were chosen for; 0: the current number */
};

/* Bounds within which a view can move. */
struct view_bounds {
	int64_t begin, end;  /* first and last ns of the history */
	int cols;            /* the time area's columns, >= 1 */
};

void view_whole(struct view *v, const struct view_bounds *g);
int64_t view_last(const struct view *v, const struct view_bounds *g);  /* last ns of the window, within the trace */
/* Column that contains t; < 0 or >= cols: t is outside the window. */
int view_column(const struct view *v, int64_t t);
/* Moves the window; the cursor keeps its column. */
void view_pan(struct view *v, const struct view_bounds *g, int64_t columns);
/* Multiplies step by num/den; keeps the cursor in its column. */
void view_zoom(struct view *v, const struct view_bounds *g, int64_t num, int64_t den);
void view_move(struct view *v, const struct view_bounds *g, int64_t columns);  /* moves the cursor; the window follows */
/* Moves the cursor to t; the window follows. */
void view_goto(struct view *v, const struct view_bounds *g, int64_t t);
void view_centre(struct view *v, const struct view_bounds *g, int64_t from, int64_t to);
/* Zooms so that [from, to] fills num/den of the window, centred. Moves the cursor to `from`. */
void view_fit(struct view *v, const struct view_bounds *g, int64_t from, int64_t to, int num, int den);
/* Fits a window that begins at t0 and has `cols` columns of step ns into the current column count. */
void view_refit(struct view *v, const struct view_bounds *g, int64_t t0, int64_t step, int cols);
void view_resize(struct view *v, const struct view_bounds *g);  /* call after the number of columns changed */

/* ---- Undo: the last UNDO_MAX views. */

#define UNDO_MAX 200

struct undo {
	struct view past[UNDO_MAX];
	size_t len, at;  /* entry count; entries with an index >= `at` can be redone */
};

void undo_push(struct undo *u, const struct view *before);
bool undo_back(struct undo *u, struct view *v);
bool undo_forward(struct undo *u, struct view *v);
