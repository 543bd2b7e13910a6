/* The overview of the most delayed machines and threads. See overview.c. */
#pragma once

#include "ui/core/app.h"

/* Opens the overview as it was when it was closed; if it is open, shows the timeline. */
void overview_back(struct app *app);
/* Returns the target of line i of the overview. */
const struct target *overview_target(const struct pane *pane, size_t i);
/* Closes the overview and goes to the moment: cursor, row, and markers A and B. */
void overview_go_to_moment(struct app *app, const struct moment *m);

/* Returns the row of the timeline that shows a target. */
static inline struct row_id overview_row(const struct target *s)
{
	static const uint8_t kind[] = { [TARGET_MACHINE] = ROW_MACHINE, [TARGET_CPU] = ROW_CPU,
		[TARGET_THREAD] = ROW_THREAD };
	return (struct row_id){ kind[s->kind], s->index };
}
