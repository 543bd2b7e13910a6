/* What is looked at: window, cursor, selected row, markers; with undo.  Pure arithmetic, no drawing.
 *
 * The window is a whole number of ns per column, so that panning by k columns shifts the picture by exactly k. */
#ifndef STEALSCOPE_UI_CORE_VIEW_H
#define STEALSCOPE_UI_CORE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_NONE INT64_MIN  /* a marker that is not set */

/* A row, however the tree is folded, sorted or filtered. */
struct row_id {
	uint8_t kind;    /* enum row_kind, ui/core/rows.h */
	uint32_t index;
};

struct view {
	int64_t t0;      /* ns, time of the first column */
	int64_t step;    /* ns per column, >= 1 */
	int64_t cursor;  /* ns; always within the window and the span */
	int64_t a, b;    /* markers, or VIEW_NONE */
	int64_t range;   /* where a range selection began, or VIEW_NONE; it ends at the cursor */
	struct row_id row;
	int cols;        /* that t0 and step were of; 0: those there are */
};

/* The ground on which a view moves. */
struct ground {
	int64_t begin, end;  /* ns, the span of the history */
	int cols;            /* columns of the time area, >= 1 */
};

void view_whole(struct view *v, const struct ground *g);
int64_t view_last(const struct view *v, const struct ground *g);  /* last ns of the window, cut to the span */
int view_column(const struct view *v, int64_t t);                 /* column of t; < 0 or >= cols when outside */
void view_pan(struct view *v, const struct ground *g, int64_t columns);     /* the cursor keeps its column */
void view_zoom(struct view *v, const struct ground *g, int64_t num, int64_t den);  /* step *= num/den, around the cursor */
void view_move(struct view *v, const struct ground *g, int64_t columns);    /* cursor by columns; the view follows */
void view_goto(struct view *v, const struct ground *g, int64_t t);          /* cursor to t; the view follows */
void view_centre(struct view *v, const struct ground *g, int64_t from, int64_t to);
/* Zooms so that [from, to] fills num/den of the window, centred; the cursor goes to `from`. */
void view_fit(struct view *v, const struct ground *g, int64_t from, int64_t to, int num, int den);
/* The window of `cols` columns from t0 on, each of step ns, in the columns that there are now. */
void view_refit(struct view *v, const struct ground *g, int64_t t0, int64_t step, int cols);
void view_resize(struct view *v, const struct ground *g);  /* after the number of columns changed */

/* ---- Undo: whole views, the last UNDO of them. */

#define UNDO 200

struct undo {
	struct view past[UNDO];
	size_t len, at;  /* entries; those from `at` on can be redone */
};

void undo_push(struct undo *u, const struct view *before);
bool undo_back(struct undo *u, struct view *v);
bool undo_forward(struct undo *u, struct view *v);

#endif
