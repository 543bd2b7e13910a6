/* The whole viewer, as a terminal, a script or a benchmark moves it.
 *
 * A key goes through viewer_key(), which changes the state and nothing else; viewer_draw() draws all of it.  The caller
 * decides when: a terminal drains all pending keys and draws once, a script draws when it wants to look. */
#ifndef STEALSCOPE_UI_CORE_VIEWER_H
#define STEALSCOPE_UI_CORE_VIEWER_H

#include "ui/core/app.h"

int viewer_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err);
void viewer_release(struct app *app);
void viewer_resize(struct app *app, int w, int h);
/* Its first button, on a cell of the last frame: pressed, or let go. */
void viewer_mouse(struct app *app, int x, int y, bool press);
void viewer_key(struct app *app, uint32_t key);
/* Long work in small steps: true while there is more to do.  The caller draws when *changed. */
bool viewer_work(struct app *app, int64_t budget_ns, bool *changed);
void viewer_reload(struct app *app);       /* :reload: the file of the history, as it is now */
void viewer_begin_frame(struct app *app);  /* allows a frame its time to wait for answers */
/* Draws everything.  Errors of reading the history end up in app->message. */
void viewer_draw(struct app *app, struct screen *s);

#endif
