/* The verdict on the window, above the overview: one sentence, and the requests in the window. */
#ifndef STEALSCOPE_UI_WIDGETS_VERDICT_LINE_H
#define STEALSCOPE_UI_WIDGETS_VERDICT_LINE_H

#include "ui/core/app.h"

void verdict_line_init(struct app *app);
void verdict_line_release(struct app *app);
void verdict_line_forget(struct app *app);
/* Number of screen lines: 0 without the overview, or on a small screen. */
int verdict_line_height(const struct app *app);
void verdict_line_draw(struct app *app, struct screen *s, int y);
/* Returns the verdict on the window, if it is known; NULL: not yet. */
const struct findings *verdict_line_get(struct app *app);

#endif
