/* Finds the next or previous gap of the selected row (keys > < } {). */
#pragma once

#include "ui/core/app.h"

void gap_search_init(struct app *app);
void gap_search_release(struct app *app);
void gap_search_start(struct app *app, int direction, int64_t n, bool zoom);  /* searches the n-th gap from the cursor */
/* Continues the search; true: not finished yet. */
bool gap_search_work(struct app *app, int64_t budget_ns, bool *changed);
void gap_search_stop(struct app *app);
/* Sets the length of the shortest gap to stop at. Returns false if the text is not a duration. */
bool gap_search_set_min(struct app *app, const char *duration);
