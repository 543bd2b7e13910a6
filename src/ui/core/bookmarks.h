/* Bookmarks: places to come back to. */
#ifndef STEALSCOPE_UI_CORE_BOOKMARKS_H
#define STEALSCOPE_UI_CORE_BOOKMARKS_H

#include "ui/core/app.h"

void bookmarks_load(struct app *app, const char *file);  /* file NULL: they are not kept */
/* A view as a line of text, to be freed, and back: false: it is none of this history; *note is in the line. */
char *bookmark_line(const struct app *app, const struct view *v, const char *note);
bool bookmark_parse(const struct app *app, const char *line, struct view *v, const char **note);
#define BOOKMARK_NOTE 256
void bookmarks_add(struct app *app, const char *note);   /* where the cursor is */

#endif
