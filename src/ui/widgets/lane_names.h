/* Names inside a lane's bars: the culprit inside a wait, the current thread inside a CPU's runs. */
#pragma once

#include "ui/core/app.h"

void lane_names_init(struct app *app);
void lane_names_release(struct app *app);
void lane_names_forget(struct app *app);  /* drops the names of the previous history */
void lane_names_begin_frame(struct app *app);  /* call before a frame's lanes are drawn */
/* Draws the names that fit into the n cells of a row on line y. A culprit that is not yet known appears in a later
 * frame. */
void lane_names_draw(struct app *app, struct screen *s, int y, struct row_id row, const struct cell *cell, int n);
/* Finds the culprits that the last frame lacked, for about budget_ns. Returns true while there are more. */
bool lane_names_work(struct app *app, int64_t budget_ns, bool *changed);
