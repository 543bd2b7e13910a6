/* The verdict, above the overview: the first finding on its window, and the requests in it. */
#pragma once

#include "ui/core/app.h"

void verdict_line_init(struct app *app);
void verdict_line_release(struct app *app);
void verdict_line_forget(struct app *app);
/* Screen line count: 0 without the overview, or on a small screen; 2 for a long verdict or a second finding. */
int verdict_line_height(const struct app *app);
void verdict_line_draw(struct app *app, struct screen *s, int y);
/* Returns the findings on the window, if they are known; NULL: not yet. */
const struct findings *verdict_line_get(struct app *app);
/* Returns true if nothing can be said on the window. */
bool verdict_line_is_nothing(const struct app *app);
/* Goes to the moment of finding n (0: the first): cursor, row, and markers A and B. */
void verdict_line_go(struct app *app, size_t n);
#define VERDICT_LINE_KEYS 3  /* findings with keys of their own */
/* Returns the finding on this target, if it is one of the first ones, and its number; NULL: none. */
const struct finding *verdict_line_find(struct app *app, const struct target *target, size_t *number);
/* Returns a text for the clipboard, owned by the line: the finding on the target (NULL: none), otherwise the status; with
 * date, recording, and the command that shows it. */
const char *verdict_line_sentence(struct app *app, const struct target *target, const char *status);
