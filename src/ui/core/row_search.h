/* Finding rows: search as you type, filter. */
#ifndef STEALSCOPE_UI_CORE_ROW_SEARCH_H
#define STEALSCOPE_UI_CORE_ROW_SEARCH_H

#include "ui/core/app.h"

void find_init(struct app *app);
void find_release(struct app *app);
void find_carry(struct app *app, const struct rows *was, const struct rows *is);
void find_begin(struct app *app);                       /* a search or filter begins to be typed: from here */
void find_typed(struct app *app, const char *text);     /* so far */
void find_cancelled(struct app *app);
void find_set(struct app *app, const char *text);       /* what find_again() looks for */
void find_again(struct app *app, int direction);
void find_filter_typed(struct app *app, const char *text);
void find_filter(struct app *app, const char *text);    /* only such threads are shown */

#endif
