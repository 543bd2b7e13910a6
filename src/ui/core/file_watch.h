/* Is the file of the history still what was opened?  It is read through mmap: when somebody cuts it or writes to it, what
 * is read is nonsense, or is not there.  Then nothing more is read until :reload.  A file that was replaced by another of
 * the same name is safe: the old one stays until it is closed. */
#ifndef STEALSCOPE_UI_CORE_FILE_WATCH_H
#define STEALSCOPE_UI_CORE_FILE_WATCH_H

#include "ui/core/app.h"

void watch_init(struct app *app);
void watch_release(struct app *app);
void watch_begin(struct app *app);  /* the history that is shown now is what is watched */
void watch_look(struct app *app);   /* says what has happened to it */
bool watch_torn(const struct app *app);          /* it must not be read any more */
bool watch_replaced(const struct app *app);      /* another file has its name */
bool watch_is_open(const struct app *app, const char *file);  /* is that the file of the history that is shown? */

#endif
