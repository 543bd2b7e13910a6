/* Detects changes of the history file while the viewer shows it.
 *
 * The file is mapped: if another program truncates or overwrites it, reads return garbage or fail with SIGBUS. After
 * such a change the viewer reads nothing until :reload. Replacing the file by another file of the same name is harmless:
 * the old file stays mapped until it is closed. */
#pragma once

#include "ui/core/app.h"

void file_watch_init(struct app *app);
void file_watch_release(struct app *app);
void file_watch_begin(struct app *app);  /* starts to watch the file of the history shown */
void file_watch_check(struct app *app);  /* checks the file; shows a message after a change */
/* true: the file was changed in place and must not be read any more. */
bool file_watch_is_changed(const struct app *app);
bool file_watch_is_replaced(const struct app *app);  /* true: another file has the name of the history file now */
bool file_watch_is_open(const struct app *app, const char *file);  /* true: `file` is the file of the history shown */
