/* The help list: keys, commands, settings, states. */
#include <string.h>

#include "ui/input/command.h"
#include "ui/panes/pane.h"

static void help_make_lines(struct app *app, struct pane *pane)
{
	const char *section = "";
	char keys[128];
	struct pager *p = &((struct list *)pane)->pager;
	pager_open(p, false, "help");
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
		if (strcmp(section, action_info[a].section) != 0) {
			section = action_info[a].section;
			pager_add(p, -1, "%s", section)->heading = true;
		}
		pager_add(p, -1, "  %-16s %s", keymap_text(&app->keymap, (enum action)a, keys, sizeof keys),
		          action_info[a].help);
	}
	pager_add(p, -1, "  %-16s %s", "1 .. 9", "a count before a key, as in vi: 5>");
	pager_add(p, -1, "Commands, after :")->heading = true;
	command_help(p);
	keymap_text(&app->keymap, ACT_THEMES, keys, sizeof keys);
	pager_add(p, -1, "States (%s: their colours)", keys)->heading = true;
	for (int v = VIS_COUNT - 1; v > VIS_NONE; v--) {
		const struct theme_state *s = &app->appearance.theme.state[v];
		pager_add(p, -1, "  %c %-13s %s", s->letter, s->label, vis_description[v]);
	}
	pager_wrap(p, app->w);
}

const struct pane_ops help_list = {
	.size = sizeof(struct list), .is_list = true, .arrange = help_make_lines, .release = list_release,
};
