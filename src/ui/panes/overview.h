/* The overview of who suffers.  See overview.c. */
#ifndef STEALSCOPE_UI_PANES_OVERVIEW_H
#define STEALSCOPE_UI_PANES_OVERVIEW_H

#include "ui/core/app.h"

void overview_back(struct app *app);  /* as it was when it was left for a gap; where it is open, to the timeline */

#endif
