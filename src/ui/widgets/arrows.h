/* Arrows in the timeline: from each thread of a critical path to the thread that it woke. */
#pragma once

#include "ui/core/app.h"

struct arrows {
	struct arrow {
		struct row_id from, to;
		int64_t t;       /* the wakeup's time, ns */
		int64_t weight;  /* length of the shorter of the two steps, ns; the heaviest arrow of a column is drawn */
	} *arrow;            /* sorted by time */
	size_t arrows, cap;
};

void arrows_make(struct arrows *a, const struct app *app, const struct path *p);
void arrows_release(struct arrows *a);
/* Draws arrows over the rows of the last frame: at most one per column, and in total one per six columns, the heaviest
 * first. If an end's row is hidden, the arrow ends at its machine or at the rows' edge. */
void arrows_draw(const struct arrows *a, const struct app *app, struct screen *s);

/* Finds the row of an actor of a path; leaves *row unchanged if it has none. */
void arrows_row(const struct app *app, const struct path *p, const struct actor *actor, struct row_id *row);
