/* Lists: lines of text that cover the rows. See pane.h; pager.c scrolls and filters the lines. */
#include "base/base.h"
#include "ui/panes/pane.h"

void list_open(struct app *app, struct pane *p)
{
	struct list *l = (struct list *)p;
	pager_release(&l->pager);
	p->ops->arrange(app, p);
	l->w = app->w;
	app->list_over = p;
}

void list_arrange(struct app *app, struct pane *p)
{
	struct list *l = (struct list *)p;
	const size_t position = pager_position(&l->pager), top = l->pager.top;
	char filter[sizeof l->pager.filter];
	memcpy(filter, l->pager.filter, sizeof filter);
	p->ops->arrange(app, p);
	memcpy(l->pager.filter, filter, sizeof filter);
	l->pager.top = top;
	pager_set_position(&l->pager, position);
	l->w = app->w;
}

void list_close(struct app *app)
{
	struct pane *p = app->list_over;
	app->list_over = NULL;
	if (p->ops->closed)
		p->ops->closed(app, p);
}

void list_search(struct app *app, const char *text)
{
	struct list *l = (struct list *)app->list_over;
	snprintf(l->pager.filter, sizeof l->pager.filter, "%.63s", text);
}

void list_edit(struct app *app, const char *text)
{
	struct pane *p = app->list_over;
	int64_t tag = pager_tag(&((struct list *)p)->pager);
	if (tag >= 0)
		p->ops->edit(app, p, tag, text);
}

void list_key(struct app *app, uint32_t key)
{
	struct pane *p = app->list_over;
	struct pager *pager = &((struct list *)p)->pager;
	int64_t tag = -1;
	size_t n = app->count < pager->len ? app->count : pager->len;
	enum pager_result result;
	app->count = 0;
	do
		result = pager_key(pager, key, app->h_cells - 1, &tag);
	while (result == PAGER_MOVED && n-- > 1);
	switch (result) {
	case PAGER_CLOSED:
		list_close(app);
		break;
	case PAGER_PICKED:
		list_close(app);
		p->ops->pick(app, p, tag);
		break;
	case PAGER_DELETE:
		p->ops->drop(app, p, tag);
		break;
	case PAGER_EDIT:
		app_prompt(app, PROMPT_NOTE, p->ops->text(p, tag));
		break;
	case PAGER_MOVED:
		if (p->ops->move)
			p->ops->move(app, p, tag);
		break;
	case PAGER_SEARCH:
		app_prompt(app, PROMPT_PAGER, "");
		break;
	case PAGER_UNKNOWN:
		if (keymap_find(&app->keymap, key) == ACT_REDRAW)
			app->redraw = true;
		else
			app_message(app, "q closes this list, / searches it");
		break;
	default:
		break;
	}
}

void list_draw(struct app *app, struct screen *s, int y, int height)
{
	struct pane *p = app->list_over;
	if (p->ops->refresh)
		p->ops->refresh(app, p);
	if (((struct list *)p)->w != app->w)
		list_arrange(app, p);
	pager_draw(&((struct list *)p)->pager, s, y, height, &app->appearance.palette);
}

void list_release(struct pane *p)
{
	pager_release(&((struct list *)p)->pager);
}
