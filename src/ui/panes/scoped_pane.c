/* Operations of panes that keep the row and the window for which they were opened, and show a sorted list. */
#include <stdio.h>

#include "ui/panes/pane.h"

void scoped_pane_sort_next(struct app *app, struct pane *pane, int by)
{
	struct scoped_pane *p = (struct scoped_pane *)pane;
	p->order = (p->order + by + pane->ops->orders) % pane->ops->orders;
	pane->at = pane->top = 0;
	pane->ops->arrange(app, pane);
}

static void add_row_title(const struct app *app, const struct pane *pane, const char *prefix, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "%s%s", prefix, row_title(&app->rows, pane->scope.row, title, sizeof title));
}

void scoped_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->name_prefix, buf, size);
}

void scoped_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->file_prefix, buf, size);
}
