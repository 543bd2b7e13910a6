/* Bookmarks: places to come back to. */
#ifndef STEALSCOPE_UI_BOOKMARKS_H
#define STEALSCOPE_UI_BOOKMARKS_H

#include "ui/app.h"

void bookmarks_load(struct app *app, const char *file);  /* file NULL: they are not kept */
#define BOOKMARK_NOTE 256
void bookmarks_add(struct app *app, const char *note);   /* where the cursor is */

#endif
