/* The saved view: window, rows and pane at the end of the last run, restored at the next start. */
#pragma once

#include "ui/core/app.h"

void session_state_save(struct app *app, const char *file);
bool session_state_load(struct app *app, const char *file);  /* restores the view; false: there is no saved view */
