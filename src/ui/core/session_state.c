/* How the viewer was left: window, cursor, markers, what is folded, pinned, filtered and shown, kept in a file that whoever
 * starts the viewer names.
 *
 * A line of the file is a word and what it is about, rows by their names.  What cannot be read, or names no row of this
 * history, is passed over.  The file is written anew when the viewer is left, and read when it is opened; what the system
 * could not read then is not written over. */
#include "ui/core/session_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/atomic_file.h"
#include "ui/core/bookmarks.h"
#include "ui/panes/pane.h"
#include "ui/core/file_watch.h"

#define HEAD "# how the viewer was left; the view as in a line of the bookmarks"
#define LINE_LONGEST (ROW_KEY + 200)

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
			if (r->open[kind][i] != rows_open_at_first(r, (enum row_kind)kind, i))
				fprintf(f, "%s %s\n", r->open[kind][i] ? "open" : "fold",
				        row_key(r, (struct row_id){ (uint8_t)kind, i }, key));
}

static void write_all(const struct app *app, FILE *f)
{
	char key[ROW_KEY], *view = bookmark_line(app, &app->view, "");
	fprintf(f, HEAD "\nview %s\nsort %s\n", view, sort_name[app->rows.sort]);
	write_folds(app, f);
	for (size_t i = 0; i < app->pins; i++)
		fprintf(f, "pin %s\n", row_key(&app->rows, app->pin[i], key));
	if (app->rows.filter[0])
		fprintf(f, "filter %s\n", app->rows.filter);
	if (!app->rows.hide_idle)
		fprintf(f, "idle\n");
	if (app->rows.show_executors)
		fprintf(f, "hostthread\n");
	for (int i = 0; app->below && i < PANE_COUNT; i++)
		if (app->pane[i] == app->below)
			fprintf(f, "pane %s\n", pane_name[i]);
	free(view);
}

/* Where it cannot be kept there is nobody left to be told. */
void remember_save(struct app *app, const char *file)
{
	struct save save;
	struct error err = ERROR_INIT;
	if (watch_torn(app) || app->left_unread)
		return;
	save_folders(file);
	if (save_begin(&save, file, &err) < 0)
		return;
	write_all(app, save.f);
	save_end(&save, 0, &err);
}

/* ---- Reading */

static void take_fold(struct app *app, const char *text, bool open)
{
	struct row_id id;
	if (row_of_key(&app->rows, text, &id) && app->rows.open[id.kind])
		app->rows.open[id.kind][id.index] = open;
}

static void take_pin(struct app *app, const char *text)
{
	if (app->pins < MOST_PINS && row_of_key(&app->rows, text, &app->pin[app->pins]))
		app->pins++;
}

static void take_sort(struct app *app, const char *text)
{
	for (int i = 0; i < SORT_COUNT; i++)
		if (strcmp(text, sort_name[i]) == 0)
			app->rows.sort = (enum row_sort)i;
}

static enum pane_id pane_of(const struct app *app, const char *text)
{
	int i = 0;
	while (i < PANE_COUNT && (app->pane[i]->ops->over || strcmp(text, pane_name[i]) != 0))
		i++;
	return (enum pane_id)i;
}

/* View and pane are taken when all lines are read: a pane may ask for what the others say. */
static void take_line(struct app *app, const char *word, const char *text, struct view *view, enum pane_id *pane)
{
	struct rows *r = &app->rows;
	const char *note;
	if (strcmp(word, "view") == 0 && !bookmark_parse(app, text, view, &note))
		view->step = 0;
	else if (strcmp(word, "open") == 0 || strcmp(word, "fold") == 0)
		take_fold(app, text, word[0] == 'o');
	else if (strcmp(word, "pin") == 0)
		take_pin(app, text);
	else if (strcmp(word, "sort") == 0)
		take_sort(app, text);
	else if (strcmp(word, "filter") == 0)
		rows_set_filter(r, text);
	else if (strcmp(word, "idle") == 0)
		r->hide_idle = false;
	else if (strcmp(word, "hostthread") == 0)
		r->show_executors = true;
	else if (strcmp(word, "pane") == 0)
		*pane = pane_of(app, text);
}

bool remember_load(struct app *app, const char *file)
{
	errno = 0;
	FILE *f = fopen(file, "re");
	char line[LINE_LONGEST];
	char keys[32];
	struct view left = { .step = 0 };
	enum pane_id pane = PANE_COUNT;
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		char *text = line + strcspn(line, " ");
		if (*text)
			*text++ = '\0';
		take_line(app, line, text, &left, &pane);
	}
	app->left_unread = f ? ferror(f) : errno != ENOENT;
	if (app->left_unread)
		app_say(app, "how you left the viewer cannot be read; it is kept as it was");
	if (f)
		fclose(f);
	if (left.step == 0)
		return false;
	app_layout(app, panes_label_w(app, pane < PANE_COUNT ? app->pane[pane] : NULL));  /* what its window is of */
	app->view = left;
	app_refit(app);
	view_resize(&app->view, &app->ground);
	app->view.cols = app->ground.cols;
	app->moved = true;
	if (app->rows.sort == SORT_WINDOW)
		rows_survey_start(&app->rows, app->view.t0, view_last(&app->view, &app->ground));
	rows_sort(&app->rows, app->rows.sort);
	rows_build(&app->rows);
	if (pane < PANE_COUNT)
		pane_open(app, pane);
	if (!app->message[0])
		app_say(app, "as you left it; %s shows who suffers", keymap_text(&app->keymap, ACT_OVERVIEW, keys, sizeof keys));
	return true;
}
