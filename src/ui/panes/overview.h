/* The overview of the most delayed machines and threads. See overview.c. */
#ifndef STEALSCOPE_UI_PANES_OVERVIEW_H
#define STEALSCOPE_UI_PANES_OVERVIEW_H

#include "ui/core/app.h"

/* Opens the overview as it was when it was closed; if it is open, shows the timeline. */
void overview_back(struct app *app);

#endif
