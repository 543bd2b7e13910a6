/* Bookmarks: rows and times that the user wants to return to. */
#pragma once

#include "ui/core/app.h"

/* Reads the bookmarks from the file. file NULL: bookmarks are not saved. */
void bookmarks_load(struct app *app, const char *file);
/* bookmark_line() converts a view to a line of text, which the caller frees; bookmark_parse() converts the line back. It
 * returns false if the line is damaged or refers to a row or time that this history lacks. *note points into the line. */
char *bookmark_line(const struct app *app, const struct view *v, const char *note);
bool bookmark_parse(const struct app *app, const char *line, struct view *v, const char **note);
#define BOOKMARK_NOTE 256
void bookmarks_add(struct app *app, const char *note);  /* bookmarks the selected row and the time at the cursor */
