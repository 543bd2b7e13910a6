/* Looking for the next gap of the row that is worth seeing: > < } {. */
#ifndef STEALSCOPE_UI_CORE_GAP_SEARCH_H
#define STEALSCOPE_UI_CORE_GAP_SEARCH_H

#include "ui/core/app.h"

void hunt_init(struct app *app);
void hunt_release(struct app *app);
void hunt_start(struct app *app, int direction, int64_t n, bool zoom);  /* to the n-th gap */
bool hunt_work(struct app *app, int64_t budget_ns, bool *changed);      /* true while there is more to do */
void hunt_stop(struct app *app);
bool hunt_set_least(struct app *app, const char *duration);  /* shorter gaps are passed over; false: no duration */

#endif
