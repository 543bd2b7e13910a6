/* How the viewer was left. */
#ifndef STEALSCOPE_UI_REMEMBER_H
#define STEALSCOPE_UI_REMEMBER_H

#include "ui/app.h"

void remember_save(struct app *app, const char *file);
bool remember_load(struct app *app, const char *file);  /* as it was left; false: nobody left it */

#endif
