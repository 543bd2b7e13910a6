#include "ui/core/view.h"

/* Returns the ns per column with which the whole trace just fits into the window. */
static int64_t max_step(const struct view_bounds *g)
{
	int128 duration = (int128)g->end - g->begin + 1;
	return clamp64((duration + g->cols - 1) / g->cols, 1, INT64_MAX);
}

/* Clamps the window to the trace, and the cursor to the window. */
static void clamp_view(struct view *v, const struct view_bounds *g)
{
	v->step = clamp64(v->step, 1, max_step(g));
	int128 last = (int128)g->end + 1 - (int128)v->step * g->cols;
	if (v->t0 > last)
		v->t0 = clamp64(last, g->begin, g->end);
	if (v->t0 < g->begin)
		v->t0 = g->begin;
	v->cursor = clamp64(v->cursor, v->t0, view_last(v, g));
}

int64_t view_last(const struct view *v, const struct view_bounds *g)
{
	return clamp64((int128)v->t0 + (int128)v->step * g->cols - 1, v->t0, g->end);
}

int view_column(const struct view *v, int64_t t)
{
	int128 d = (int128)t - v->t0;
	return (int)clamp64(d < 0 ? -1 : d / v->step, -1, 1 << 20);
}

void view_whole(struct view *v, const struct view_bounds *g)
{
	v->t0 = g->begin;
	v->step = max_step(g);
	clamp_view(v, g);
}

void view_pan(struct view *v, const struct view_bounds *g, int64_t columns)
{
	int64_t old = v->t0;
	v->t0 = clamp64((int128)v->t0 + (int128)columns * v->step, INT64_MIN, INT64_MAX);
	int64_t cursor = v->cursor;
	clamp_view(v, g);
	v->cursor = clamp64((int128)cursor + v->t0 - old, g->begin, g->end);
	if (v->t0 == old)  /* at the edge of the trace the cursor moves, not the window */
		v->cursor = clamp64((int128)cursor + (int128)columns * v->step, v->t0, view_last(v, g));
	clamp_view(v, g);
}

void view_zoom(struct view *v, const struct view_bounds *g, int64_t num, int64_t den)
{
	int col = view_column(v, v->cursor);
	int64_t step = clamp64((int128)v->step * num / den, 1, max_step(g));
	if (step == v->step && num > den)
		step = clamp64((int128)step + 1, 1, max_step(g));
	v->step = step;
	v->t0 = clamp64((int128)v->cursor - (int128)col * step - step / 2, INT64_MIN, INT64_MAX);
	clamp_view(v, g);
}

void view_move(struct view *v, const struct view_bounds *g, int64_t columns)
{
	view_goto(v, g, clamp64((int128)v->cursor + (int128)columns * v->step, g->begin, g->end));
}

void view_goto(struct view *v, const struct view_bounds *g, int64_t t)
{
	v->cursor = clamp64(t, g->begin, g->end);
	int128 col = ((int128)v->cursor - v->t0) / v->step;
	if (v->cursor < v->t0) {
		int128 by = ((int128)v->t0 - v->cursor + v->step - 1) / v->step;
		/* a small step moves the window by just enough columns; a larger step centres the cursor */
		v->t0 = clamp64((int128)v->t0 - (by > g->cols / 4 ? by + g->cols / 2 : by) * v->step, INT64_MIN, INT64_MAX);
	} else if (col >= g->cols) {
		int128 by = col - g->cols + 1;
		v->t0 = clamp64((int128)v->t0 + (by > g->cols / 4 ? by + g->cols / 2 : by) * v->step, INT64_MIN, INT64_MAX);
	}
	clamp_view(v, g);
}

void view_centre(struct view *v, const struct view_bounds *g, int64_t from, int64_t to)
{
	int128 middle = ((int128)from + to) / 2;
	v->t0 = clamp64(middle - (int128)v->step * g->cols / 2, INT64_MIN, INT64_MAX);
	clamp_view(v, g);
}

void view_fit(struct view *v, const struct view_bounds *g, int64_t from, int64_t to, int num, int den)
{
	int128 length = (int128)to - from + 1, fill = (int128)g->cols * num;
	v->step = clamp64((length * den + fill - 1) / fill, 1, max_step(g));
	v->cursor = from;
	view_centre(v, g, from, to);
	v->cursor = clamp64(from, v->t0, view_last(v, g));
}

void view_refit(struct view *v, const struct view_bounds *g, int64_t t0, int64_t step, int cols)
{
	v->t0 = t0;
	v->step = clamp64(((int128)step * cols + g->cols - 1) / g->cols, 1, INT64_MAX);
	clamp_view(v, g);
}

void view_resize(struct view *v, const struct view_bounds *g)
{
	if (view_column(v, v->cursor) >= g->cols)
		view_centre(v, g, v->cursor, v->cursor);
	clamp_view(v, g);
}

void undo_push(struct undo *u, const struct view *before)
{
	if (u->at == UNDO_MAX) {
		memmove(u->past, u->past + 1, (UNDO_MAX - 1) * sizeof *u->past);
		u->at--;
	}
	u->past[u->at++] = *before;
	u->len = u->at;
}

bool undo_back(struct undo *u, struct view *v)
{
	if (u->at == 0)
		return false;
	struct view now = *v;
	*v = u->past[--u->at];
	u->past[u->at] = now;
	return true;
}

bool undo_forward(struct undo *u, struct view *v)
{
	if (u->at == u->len)
		return false;
	struct view now = *v;
	*v = u->past[u->at];
	u->past[u->at++] = now;
	return true;
}
