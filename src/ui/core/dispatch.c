/* Where keys go: to a line being written, to the list over the rows, or to the rows. */
#include <stdio.h>

#include "ui/input/command.h"
#include "ui/core/row_search.h"
#include "ui/core/follow_cause.h"
#include "ui/core/gap_search.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"
#include "ui/core/file_watch.h"

static void prompt_changed(struct app *app)
{
	switch (app->prompt.kind) {
	case PROMPT_SEARCH: find_typed(app, app->prompt.text); break;
	case PROMPT_FILTER: find_filter_typed(app, app->prompt.text); break;
	case PROMPT_PAGER: list_search(app, app->prompt.text); break;
	case PROMPT_PANE: pane_filter(app, app->prompt.text); break;
	default: break;
	}
}

static void prompt_done(struct app *app)
{
	char line[PROMPT_LONGEST];
	snprintf(line, sizeof line, "%s", app->prompt.text);
	app->prompting = false;
	if (app->prompt.kind == PROMPT_COMMAND)
		command_run(app, line);
	else if (app->prompt.kind == PROMPT_EXPORT && line[0])
		export_pane(app, line);
	else if (app->prompt.kind == PROMPT_NOTE)
		list_edit(app, line);
	else
		prompt_changed(app);  /* says it again when nothing was found */
}

static void prompt_cancelled(struct app *app)
{
	app->prompting = false;
	app->prompt.text[0] = '\0';
	if (app->prompt.kind == PROMPT_SEARCH)
		find_cancelled(app);
	else
		prompt_changed(app);
}

static void key_in_prompt(struct app *app, uint32_t key)
{
	if (key == KEY_CODE_TAB && app->prompt.kind == PROMPT_COMMAND) {
		command_complete(app);
		return;
	}
	switch (prompt_key(&app->prompt, key)) {
	case PROMPT_CHANGED: prompt_changed(app); break;
	case PROMPT_DONE: prompt_done(app); break;
	case PROMPT_CANCELLED: prompt_cancelled(app); break;
	default: break;
	}
}

static bool takes_digit(struct app *app, uint32_t key)
{
	if ((key < '1' || key > '9') && (key != '0' || app->count == 0))
		return false;
	app->count = app->count < 100000 ? app->count * 10 + (key - '0') : app->count;
	app_say(app, "%u", app->count);
	return true;
}

static bool opens(enum action action)
{
	return (action >= ACT_OVERVIEW && action <= ACT_DIFF) || action == ACT_DETAILS || action == ACT_BOOKMARKS ||
	       action == ACT_COMMAND;
}

/* Instead of what it was to open, there is a message.  below: what was there before. */
static bool is_unopened(const struct app *app, enum action action, const struct pane *below)
{
	return opens(action) && app->message[0] && !app->over && !app->prompting && !pane_is_beside(app) &&
	       (!app->below || app->below == below);
}

/* Would the key end the viewer? */
static bool leaves(const struct app *app, uint32_t key)
{
	return !app->over && !pane_is_beside(app) && (keymap_find(&app->keymap, key) == ACT_QUIT ||
	       (app->below && keymap_find_in_pane(&app->keymap, key) == ACT_IN_PANE_CLOSE));
}

static void key_in_rows(struct app *app, uint32_t key)
{
	const struct pane *const below = app->below;
	if (key == KEY_CODE_ESC || key == ('c' & 31)) {
		bool asked = panes_cancel(app), nudged = nudge_cancel(app);
		if (asked || nudged) {
			app_say(app, "cancelled");
			return;
		}
	}
	if (app->focused && !watch_torn(app) && pane_key(app, key)) {
		app->count = 0;
		return;
	}
	enum action action = keymap_find(&app->keymap, key);
	if (watch_torn(app) && action != ACT_COMMAND && action != ACT_QUIT && action != ACT_REDRAW) {
		app_say(app, "nothing more is read from a history that changed: :reload opens it again, q quits");
		return;
	}
	char text[32], help[64];
	if (action == ACT_NONE)
		app_say(app, "%s does nothing: %s is help", key_text(key, text, sizeof text),
		        keymap_text(&app->keymap, ACT_HELP, help, sizeof help));
	else
		action_do(app, action);
	app->count = 0;
	app->last = action;
	app->unopened = is_unopened(app, action, below);
}

void viewer_key(struct app *app, uint32_t key)
{
	const struct pane *const below = app->below;
	const bool unopened = app->unopened;
	char text[32];
	app->unopened = false;
	app->message[0] = '\0';
	app->message_is_error = false;
	hunt_stop(app);
	follow_drop(app);
	app->answer_by = 0;
	viewer_begin_frame(app);
	if (app->prompting) {
		key_in_prompt(app, key);
		app->unopened = app->message_is_error && app->last == ACT_COMMAND && is_unopened(app, ACT_COMMAND, below);
	} else if (takes_digit(app, key)) {
		return;
	} else if (unopened && leaves(app, key)) {
		app_say(app, "no pane was opened: %s again leaves", key_text(key, text, sizeof text));
	} else if (app->over) {
		list_key(app, key);
	} else {
		key_in_rows(app, key);
	}
}
