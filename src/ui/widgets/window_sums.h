/* The sums of the window, or of A..B, for the selected row, below the rows: time by culprit, lengths of waits, users of its
 * CPU. Refreshed while panning; dimmed until the answer for the new window is there. */
#pragma once

#include "ui/core/app.h"

struct window_sums;

struct window_sums *window_sums_new(void);
void window_sums_free(struct window_sums *w);
/* Asks for the sums if row or window changed, and takes answers. Call before each frame. */
void window_sums_refresh(struct app *app);
/* Draws into the lines [y, end), which no row uses. */
void window_sums_draw(struct app *app, struct screen *s, int y, int end);
/* Shows the next kind of sums (Tab). Returns false if there is no space for them. */
bool window_sums_next(struct app *app);
void window_sums_show(struct app *app, bool on);
void window_sums_drop(struct app *app);  /* another history will be shown */
