/* The status line: one sentence about the interval under the cursor, and the exact shares of the cell. */
#ifndef STEALSCOPE_UI_WIDGETS_STATUS_H
#define STEALSCOPE_UI_WIDGETS_STATUS_H

#include "ui/core/app.h"

void status_init(struct app *app);
void status_release(struct app *app);
void status_forget(struct app *app);                  /* what it says is of another look or history */
void status_draw(struct app *app, struct screen *s, int y);
const char *status_sentence(struct app *app);         /* brought up to date */
const char *status_shares(struct app *app);
/* How far the clock of a VM may be off at the cursor, ns; -1 = not known. */
int64_t status_clock_band(const struct app *app, uint32_t machine);

#endif
