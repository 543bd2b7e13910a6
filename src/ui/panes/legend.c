/* The legend, and the picker of themes: the one the cursor is on is shown at once. */
#include <string.h>

#include "base/text.h"
#include "ui/panes/pane.h"

static struct glyph pure(const struct app *app, unsigned code, bool owners)
{
	return look_glyph(app, (struct cell){ CELL_PURE, (uint8_t)code, (uint8_t)code, CELL_PARTS }, owners);
}

static void add_states(const struct app *app, struct pager *p)
{
	pager_add(p, -1, "States, worst first")->heading = true;
	for (int v = VIS_COUNT - 1; v > VIS_NONE; v--) {
		const struct theme_state *s = &app->look.theme.state[v];
		pager_add(p, -1, "%c %-13s %s", s->letter, s->label, vis_says[v])->sample = pure(app, (unsigned)v, false);
	}
	pager_add(p, -1, "A wait stands from the bottom of a cell, as high as its share (_: below 1/16).");
	pager_add(p, -1, "As letters: from 1/2 on, i: from 1/8 on.  The rest is what else it did most.");
}

static void add_owners(const struct app *app, struct pager *p)
{
	char letter, shown[128];
	struct style style;
	if (!look_owner(app, 1, &letter, &style))
		return;
	pager_add(p, -1, "Rows of the host's CPUs: who has them")->heading = true;
	for (unsigned code = 0; code <= OWNER_UNKNOWN; code++) {
		const char *name = look_owner(app, code, &letter, &style);
		const char *what = code == 0 ? "nobody: idle" : code == 1 ? "the host: its own tasks and interrupts"
		                   : code == OWNER_UNKNOWN ? vis_says[VIS_UNKNOWN] : NULL;
		if (what || name)
			pager_add(p, -1, "%c %s", letter, what ? what : text_escape(shown, sizeof shown, name))->sample =
				pure(app, code, true);
	}
}

static void arrange(struct app *app, struct pane *pane)
{
	struct pager *p = &((struct list *)pane)->pager;
	pager_open(p, true, "legend and themes");
	add_states(app, p);
	add_owners(app, p);
	pager_add(p, -1, "Themes (now: %s)", app->look.theme.name)->heading = true;
	for (unsigned i = 0; theme_shipped_name(i); i++) {
		struct theme t;
		struct error err = ERROR_INIT;
		if (theme_load(&t, theme_shipped_name(i), &err) == 0)
			pager_add(p, i, "  %-12s %s", t.name, t.about);
		if (strcmp(theme_shipped_name(i), app->look.theme.name) == 0)
			p->at = p->len - 1;
	}
	pager_wrap(p, app->w);
}

static void take(struct app *app, struct pane *pane, int64_t tag)
{
	struct error err = ERROR_INIT;
	struct theme theme;
	const char *name = tag >= 0 ? theme_shipped_name((unsigned)tag) : NULL;
	if (!name)
		return;
	if (theme_load(&theme, name, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	look_set_theme(app, &theme);
	list_arrange(app, pane);
}

const struct pane_ops themes_list = {
	.size = sizeof(struct list), .over = true, .arrange = arrange, .pick = take, .move = take, .release = list_release,
};
