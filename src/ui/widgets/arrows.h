/* Arrows in the timeline: from each thread of a critical path to the one that it woke. */
#ifndef STEALSCOPE_UI_WIDGETS_ARROWS_H
#define STEALSCOPE_UI_WIDGETS_ARROWS_H

#include "ui/core/app.h"

struct arrows {
	struct arrow {
		struct row_id from, to;
		int64_t t;       /* ns */
		int64_t weight;  /* ns of the shorter one of the pieces that it joins: of one column the heaviest is drawn */
	} *arrow;            /* by time */
	size_t arrows, cap;
};

void arrows_make(struct arrows *a, const struct app *app, const struct path *p);
void arrows_release(struct arrows *a);
/* Over the rows of the last frame: one in a column, and the heaviest in a sixth of them; an end whose row is not shown is
 * at its machine, or at the edge. */
void arrows_draw(const struct arrows *a, const struct app *app, struct screen *s);

/* The row of whoever a path is about; left alone where it has none. */
void arrows_row(const struct app *app, const struct path *p, const struct party *who, struct row_id *row);

#endif
