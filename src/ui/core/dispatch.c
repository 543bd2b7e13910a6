/* Routes each key to the prompt, to the list over the rows, or to the rows and the pane below them. */
#include <stdio.h>

#include "ui/input/command.h"
#include "ui/core/row_search.h"
#include "ui/core/follow_cause.h"
#include "ui/core/gap_search.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"
#include "ui/core/file_watch.h"

static void apply_prompt_text(struct app *app)
{
	switch (app->prompt.kind) {
	case PROMPT_SEARCH: row_search_typed(app, app->prompt.text); break;
	case PROMPT_FILTER: row_filter_typed(app, app->prompt.text); break;
	case PROMPT_PAGER: list_search(app, app->prompt.text); break;
	case PROMPT_PANE: pane_filter(app, app->prompt.text); break;
	default: break;
	}
}

static void accept_prompt(struct app *app)
{
	char line[PROMPT_MAX_BYTES];
	snprintf(line, sizeof line, "%s", app->prompt.text);
	app->prompting = false;
	if (app->prompt.kind == PROMPT_COMMAND)
		command_run(app, line);
	else if (app->prompt.kind == PROMPT_EXPORT && line[0])
		export_pane(app, line);
	else if (app->prompt.kind == PROMPT_NOTE)
		list_edit(app, line);
	else
		apply_prompt_text(app);  /* repeats the search, for its message if nothing was found */
}

static void cancel_prompt(struct app *app)
{
	app->prompting = false;
	app->prompt.text[0] = '\0';
	if (app->prompt.kind == PROMPT_SEARCH)
		row_search_cancelled(app);
	else
		apply_prompt_text(app);
}

static void key_in_prompt(struct app *app, uint32_t key)
{
	if (key == KEY_CODE_TAB && app->prompt.kind == PROMPT_COMMAND) {
		command_complete(app);
		return;
	}
	switch (prompt_key(&app->prompt, key)) {
	case PROMPT_CHANGED: apply_prompt_text(app); break;
	case PROMPT_DONE: accept_prompt(app); break;
	case PROMPT_CANCELLED: cancel_prompt(app); break;
	default: break;
	}
}

/* A count begins with a digit that is bound to no action; in a list with any digit but 0. */
static bool take_count_digit(struct app *app, uint32_t key)
{
	const bool is_bound = key == '0' || (!app->list_over && keymap_find(&app->keymap, key) != ACT_NONE);
	if (key < '0' || key > '9' || (app->count == 0 && is_bound))
		return false;
	app->count = app->count < 100000 ? app->count * 10 + (key - '0') : app->count;
	app_message(app, "%u", app->count);
	return true;
}

static bool opens_pane(enum action action)
{
	return (action >= ACT_OVERVIEW && action <= ACT_DIFF) || action == ACT_DETAILS || action == ACT_BOOKMARKS ||
	       action == ACT_COMMAND;
}

/* Returns true if the action should have opened a pane, list or prompt but showed a message instead. below: pane that
 * was open before the action. */
static bool failed_to_open(const struct app *app, enum action action, const struct pane *below)
{
	return opens_pane(action) && app->message[0] && !app->list_over && !app->prompting && !pane_is_below(app) &&
	       (!app->pane_below || app->pane_below == below);
}

/* Returns true if the key would quit the overview. */
static bool would_quit(const struct app *app, uint32_t key)
{
	return !app->list_over && app->pane_below && app->pane_below->ops->replaces_rows &&
	       keymap_find(&app->keymap, key) == ACT_QUIT;
}

static void key_in_rows(struct app *app, uint32_t key)
{
	const struct pane *const below = app->pane_below;
	if (key == KEY_CODE_ESC || key == ('c' & 31)) {
		bool query_cancelled = panes_cancel(app), offset_cancelled = manual_offset_cancel(app);
		if (query_cancelled || offset_cancelled) {
			app_message(app, "cancelled");
			return;
		}
	}
	if (app->focused && !file_watch_is_changed(app) && pane_key(app, key)) {
		app->count = 0;
		return;
	}
	enum action action = keymap_find(&app->keymap, key);
	if (file_watch_is_changed(app) && action != ACT_COMMAND && action != ACT_QUIT && action != ACT_EXIT &&
	    action != ACT_REDRAW) {
		app_message(app, "the history file changed and is no longer read: :reload opens it again, q quits");
		return;
	}
	if (file_watch_is_changed(app) && action == ACT_QUIT)  /* the overview cannot be read any more */
		action = ACT_EXIT;
	char text[32], help[64];
	if (action == ACT_NONE)
		app_message(app, "%s is not bound (%s: help)", key_text(key, text, sizeof text),
		        keymap_text(&app->keymap, ACT_HELP, help, sizeof help));
	else
		action_do(app, action);
	app->count = 0;
	app->last = action;
	app->open_failed = failed_to_open(app, action, below);
}

void viewer_key(struct app *app, uint32_t key)
{
	const struct pane *const below = app->pane_below;
	const bool open_failed = app->open_failed;
	char text[32];
	app->open_failed = false;
	app->message[0] = '\0';
	app->message_is_error = false;
	gap_search_stop(app);
	follow_drop(app);
	app->answer_deadline = 0;
	viewer_begin_frame(app);
	if (app->prompting) {
		key_in_prompt(app, key);
		app->open_failed = app->message_is_error && app->last == ACT_COMMAND && failed_to_open(app, ACT_COMMAND, below);
	} else if (take_count_digit(app, key)) {
		return;
	} else if (open_failed && would_quit(app, key)) {
		app_message(app, "no pane was opened; %s again quits", key_text(key, text, sizeof text));
	} else if (app->list_over) {
		list_key(app, key);
	} else {
		key_in_rows(app, key);
	}
}
