/* Entry points of the viewer for a terminal, a script or a benchmark.
 *
 * viewer_key() changes the state and draws nothing; viewer_draw() draws the whole screen. The caller decides when to
 * draw: a terminal after all pending keys, a script after each line. */
#pragma once

#include "ui/core/app.h"

int viewer_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err);
void viewer_release(struct app *app);
void viewer_resize(struct app *app, int w, int h);
/* Handles a press or release of the first mouse button on cell x, y of the last frame. */
void viewer_mouse(struct app *app, int x, int y, int event);  /* MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE */
void viewer_key(struct app *app, uint32_t key);
/* Runs background work for about budget_ns. Returns true while there is more to do; sets *changed if the screen must be
 * redrawn. */
bool viewer_work(struct app *app, int64_t budget_ns, bool *changed);
void viewer_reload(struct app *app);  /* opens the history file again (:reload) */
void viewer_begin_frame(struct app *app);  /* sets the time until which the next frame may wait for answers */
/* Draws the whole screen. Stores errors while reading the history in app->message. */
void viewer_draw(struct app *app, struct screen *s);
