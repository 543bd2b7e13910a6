/* The saved view: window, cursor, markers, folding, pins, filter and pane, kept in a file that the caller of the viewer
 * names.
 *
 * Each line of the file is a keyword and its value; rows are given by name. Lines that cannot be parsed, or whose row is
 * not in this history, are ignored. The file is read when the viewer starts and written when it ends, unless it could not
 * be read. */
#include "ui/core/session_state.h"

#include <errno.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/atomic_file.h"
#include "ui/core/bookmarks.h"
#include "ui/panes/pane.h"
#include "ui/core/file_watch.h"

#define FILE_HEADER "# saved view of stealscope; the view is a line as in the bookmarks"
#define LINE_MAX_BYTES (ROW_KEY + 200)

#define PANE_NAME(id, table, action) [id] = #id,
static const char *const pane_name[PANE_COUNT] = { PANES(PANE_NAME) };
#undef PANE_NAME

static const char *const sort_name[SORT_COUNT] = { "lost", "window", "name", "id" };

/* ---- Writing */

static void write_folds(const struct app *app, FILE *f)
{
	const struct rows *r = &app->rows;
	char key[ROW_KEY];
	for (unsigned kind = 0; kind < ROW_KINDS; kind++)
		for (uint32_t i = 0; r->open[kind] && i < rows_of_kind(r, (enum row_kind)kind); i++)
			if (r->open[kind][i] != rows_default_open(r, (enum row_kind)kind, i))
				fprintf(f, "%s %s\n", r->open[kind][i] ? "open" : "fold",
				        row_key(r, (struct row_id){ (uint8_t)kind, i }, key));
}

static void write_all(const struct app *app, FILE *f)
{
	char key[ROW_KEY], *view = bookmark_line(app, &app->view, "");
	fprintf(f, FILE_HEADER "\nview %s\nsort %s\n", view, sort_name[app->rows.sort]);
	write_folds(app, f);
	for (size_t i = 0; i < app->pins; i++)
		fprintf(f, "pin %s\n", row_key(&app->rows, app->pin[i], key));
	if (app->rows.filter[0])
		fprintf(f, "filter %s\n", app->rows.filter);
	if (!app->rows.hide_idle)
		fprintf(f, "idle\n");
	if (app->rows.show_executors)
		fprintf(f, "hostthread\n");
	for (int i = 0; app->pane_below && i < PANE_COUNT; i++)
		if (app->pane[i] == app->pane_below)
			fprintf(f, "pane %s\n", pane_name[i]);
	free(view);
}

/* Writes the file. Errors are ignored: the viewer ends here and has no screen to show them. */
void session_state_save(struct app *app, const char *file)
{
	struct save save;
	struct error err = ERROR_INIT;
	if (file_watch_is_changed(app) || app->view_unreadable)
		return;
	make_parent_dirs(file);
	if (atomic_file_begin(&save, file, &err) < 0)
		return;
	write_all(app, save.f);
	atomic_file_end(&save, 0, &err);
}

/* ---- Reading */

static void parse_fold(struct app *app, const char *text, bool open)
{
	struct row_id id;
	if (row_of_key(&app->rows, text, &id) && app->rows.open[id.kind])
		app->rows.open[id.kind][id.index] = open;
}

static void parse_pin(struct app *app, const char *text)
{
	if (app->pins < MAX_PINS && row_of_key(&app->rows, text, &app->pin[app->pins]))
		app->pins++;
}

static void parse_sort(struct app *app, const char *text)
{
	for (int i = 0; i < SORT_COUNT; i++)
		if (strcmp(text, sort_name[i]) == 0)
			app->rows.sort = (enum row_sort)i;
}

static enum pane_id pane_of(const struct app *app, const char *text)
{
	int i = 0;
	while (i < PANE_COUNT && (app->pane[i]->ops->is_list || strcmp(text, pane_name[i]) != 0))
		i++;
	return (enum pane_id)i;
}

/* Parses one line. Stores view and pane in *view and *pane: the caller applies them after all lines, because a pane may
 * depend on the others. */
static void parse_line(struct app *app, const char *word, const char *text, struct view *view, enum pane_id *pane)
{
	struct rows *r = &app->rows;
	const char *note;
	if (strcmp(word, "view") == 0 && !bookmark_parse(app, text, view, &note))
		view->step = 0;
	else if (strcmp(word, "open") == 0 || strcmp(word, "fold") == 0)
		parse_fold(app, text, word[0] == 'o');
	else if (strcmp(word, "pin") == 0)
		parse_pin(app, text);
	else if (strcmp(word, "sort") == 0)
		parse_sort(app, text);
	else if (strcmp(word, "filter") == 0)
		rows_set_filter(r, text);
	else if (strcmp(word, "idle") == 0)
		r->hide_idle = false;
	else if (strcmp(word, "hostthread") == 0)
		r->show_executors = true;
	else if (strcmp(word, "pane") == 0)
		*pane = pane_of(app, text);
}

bool session_state_load(struct app *app, const char *file)
{
	errno = 0;
	FILE *f = file_open(file);
	char line[LINE_MAX_BYTES];
	char keys[32];
	struct view saved = { .step = 0 };
	enum pane_id pane = PANE_COUNT;
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		char *text = line + strcspn(line, " ");
		if (*text)
			*text++ = '\0';
		parse_line(app, line, text, &saved, &pane);
	}
	app->view_unreadable = f ? ferror(f) : errno != ENOENT;
	if (app->view_unreadable)
		app_message(app, "the saved view cannot be read; it will not be overwritten");
	if (f)
		fclose(f);
	if (saved.step == 0)
		return false;
	/* sets the columns into which the saved window is fitted */
	app_layout(app, panes_label_w(app, pane < PANE_COUNT ? app->pane[pane] : NULL));
	app->view = saved;
	app_refit(app);
	view_resize(&app->view, &app->bounds);
	app->view.cols = app->bounds.cols;
	app->row_chosen = true;
	if (app->rows.sort == SORT_WINDOW)
		rows_scan_start(&app->rows, app->view.t0, view_last(&app->view, &app->bounds));
	rows_sort(&app->rows, app->rows.sort);
	rows_build(&app->rows);
	if (pane < PANE_COUNT)
		pane_open(app, pane);
	if (!app->message[0])
		app_message(app, "restored last view (%s: overview)", keymap_text(&app->keymap, ACT_OVERVIEW, keys, sizeof keys));
	return true;
}
