/* Incremental search and filter of rows by name. */
#pragma once

#include "ui/core/app.h"

void row_search_init(struct app *app);
void row_search_release(struct app *app);
void row_search_remap(struct app *app, const struct rows *old, const struct rows *new);
void row_search_begin(struct app *app);  /* call when a prompt for a search or filter opens */
void row_search_typed(struct app *app, const char *text);  /* call after each key; text: the prompt's content */
void row_search_cancelled(struct app *app);
void row_search_set(struct app *app, const char *text);  /* sets the text that row_search_next() searches */
void row_search_next(struct app *app, int direction);
void row_filter_typed(struct app *app, const char *text);
void row_filter_set(struct app *app, const char *text);  /* shows only rows with this text in their names */
