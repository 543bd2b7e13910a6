/* The overview of the most delayed machines and threads. See overview.c. */
#ifndef STEALSCOPE_UI_PANES_OVERVIEW_H
#define STEALSCOPE_UI_PANES_OVERVIEW_H

#include "ui/core/app.h"

/* Opens the overview as it was when it was closed; if it is open, shows the timeline. */
void overview_back(struct app *app);
/* Returns the target of line i of the overview. */
const struct target *overview_target(const struct pane *pane, size_t i);
/* Closes the overview and goes to the moment: cursor, row, and markers A and B. */
void overview_go_to_moment(struct app *app, const struct moment *m);

#endif
