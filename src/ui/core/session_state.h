/* The saved view: window, rows and pane at the end of the last run, restored at the next start. */
#ifndef STEALSCOPE_UI_CORE_SESSION_STATE_H
#define STEALSCOPE_UI_CORE_SESSION_STATE_H

#include "ui/core/app.h"

void session_state_save(struct app *app, const char *file);
bool session_state_load(struct app *app, const char *file);  /* restores the view; false: there is no saved view */

#endif
