/* Operations of panes that keep the row and the window for which they were opened, and show a sorted list. */
#include <stdio.h>

#include "ui/panes/pane.h"

static struct scoped_pane *scoped_pane_state(struct pane *pane)
{
	return (struct scoped_pane *)pane;
}

bool scoped_pane_open(struct app *app, struct pane *pane)
{
	return pane_scope_open(app, pane, &scoped_pane_state(pane)->scope);
}

void scoped_pane_make_question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct scoped_pane *)pane)->scope, q);
}

void scoped_pane_sort_next(struct app *app, struct pane *pane, int by)
{
	struct scoped_pane *p = scoped_pane_state(pane);
	p->order = (p->order + by + pane->ops->orders) % pane->ops->orders;
	pane->at = pane->top = 0;
	pane->ops->arrange(app, pane);
}

static void add_row_title(const struct app *app, const struct pane *pane, const char *prefix, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "%s%s", prefix,
	         row_title(&app->rows, ((const struct scoped_pane *)pane)->scope.row, title, sizeof title));
}

void scoped_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->name_prefix, buf, size);
}

void scoped_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->file_prefix, buf, size);
}

void scoped_pane_remap_rows(struct app *app, struct pane *pane, const struct rows *old, const struct rows *new)
{
	struct scoped_pane *p = scoped_pane_state(pane);
	(void)app;
	p->scope.row = row_remap(old, new, p->scope.row);
}
