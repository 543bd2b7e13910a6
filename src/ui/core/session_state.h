/* How the viewer was left. */
#ifndef STEALSCOPE_UI_CORE_SESSION_STATE_H
#define STEALSCOPE_UI_CORE_SESSION_STATE_H

#include "ui/core/app.h"

void remember_save(struct app *app, const char *file);
bool remember_load(struct app *app, const char *file);  /* as it was left; false: nobody left it */

#endif
