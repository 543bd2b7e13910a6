/* Bookmarks: places to come back to, kept in a file that whoever starts the viewer names.
 *
 * A line of the file is a place: cursor, first cell, ns per cell, markers A and B ("-" = not set), the row by its name.
 * What cannot be read as that, or names no row of this history, is left out. */
#include "ui/app.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/save.h"

#define HEAD "# cursor, first cell, ns per cell, marker A, marker B, row"
#define MOST 1000

static struct bookmark *add(struct app *app)
{
	return ARRAY_PUSH(app->bookmark, app->bookmarks, app->bookmarks_cap);
}

/* One word of a line, "-" as VIEW_NONE; moves on.  False when it is neither that nor a number. */
static bool take_number(const char **at, int64_t *number)
{
	char *end = NULL;
	errno = 0;
	*number = VIEW_NONE;
	if (strncmp(*at, "- ", 2) == 0) {
		*at += 2;
		return true;
	}
	*number = strtoll(*at, &end, 10);
	if (end == *at || *end != ' ' || errno)
		return false;
	*at = end + 1;
	return true;
}

static bool within(const struct app *app, int64_t t)
{
	return t >= app->ground.begin && t <= app->ground.end;
}

static bool parse(const struct app *app, const char *line, struct view *v)
{
	*v = (struct view){ .range = VIEW_NONE };
	if (!take_number(&line, &v->cursor) || !take_number(&line, &v->t0) || !take_number(&line, &v->step) ||
	    !take_number(&line, &v->a) || !take_number(&line, &v->b) || !within(app, v->cursor) || v->step < 1 ||
	    (v->a != VIEW_NONE && !within(app, v->a)) || (v->b != VIEW_NONE && !within(app, v->b)))
		return false;
	return row_of_key(&app->rows, line, &v->row);
}

void bookmarks_load(struct app *app, const char *file)
{
	app->bookmark_file = mem_dup(file);
	FILE *f = file ? fopen(file, "re") : NULL;
	char line[ROW_KEY + 160];
	while (f && app->bookmarks < MOST && fgets(line, sizeof line, f)) {
		struct view v;
		line[strcspn(line, "\n")] = '\0';
		if (parse(app, line, &v))
			add(app)->view = v;
	}
	if (f)
		fclose(f);
}

static void put_marker(FILE *f, int64_t t)
{
	if (t == VIEW_NONE)
		fputs(" -", f);
	else
		fprintf(f, " %" PRId64, t);
}

int bookmarks_save(const struct app *app, struct error *err)
{
	struct save save;
	if (!app->bookmark_file)
		return 0;
	save_folders(app->bookmark_file);
	if (save_begin(&save, app->bookmark_file, err) < 0)
		return -1;
	fputs(HEAD "\n", save.f);
	for (size_t i = 0; i < app->bookmarks; i++) {
		const struct view *v = &app->bookmark[i].view;
		char key[ROW_KEY];
		fprintf(save.f, "%" PRId64 " %" PRId64 " %" PRId64, v->cursor, v->t0, v->step);
		put_marker(save.f, v->a);
		put_marker(save.f, v->b);
		fprintf(save.f, " %s\n", row_key(&app->rows, v->row, key));
	}
	return save_end(&save, 0, err);
}

static char *text_of(const struct app *app, size_t i, char *buf, size_t size)
{
	const struct view *v = &app->bookmark[i].view;
	char title[256], when[TIME_TEXT];
	ruler_time(when, &app->axis, v->cursor, v->step);
	snprintf(buf, size, "%s  %.60s", when, row_title(&app->rows, v->row, title, sizeof title));
	return buf;
}

static void say_kept(struct app *app, const char *what, const char *text)
{
	struct error err = ERROR_INIT;
	if (bookmarks_save(app, &err) == 0)
		app_say(app, "%s: %s", what, text);
	else
		app_say(app, "%s: %s; it is not kept: %s", what, text, err.text);
}

void bookmark_here(struct app *app)
{
	char what[40], text[128];
	if (app->bookmarks == MOST) {
		app_say(app, "there are %d bookmarks already: drop some in their list", MOST);
		return;
	}
	add(app)->view = app->view;
	snprintf(what, sizeof what, "bookmark %zu", app->bookmarks);
	say_kept(app, what, text_of(app, app->bookmarks - 1, text, sizeof text));
}

void bookmark_drop(struct app *app, size_t i)
{
	char text[128];
	text_of(app, i, text, sizeof text);
	memmove(app->bookmark + i, app->bookmark + i + 1, (--app->bookmarks - i) * sizeof *app->bookmark);
	say_kept(app, "dropped", text);
}

bool bookmarks_open(struct app *app)
{
	char text[128];
	pager_open(&app->pager, PAGER_BOOKMARKS, true, "bookmarks");
	for (size_t i = 0; i < app->bookmarks; i++)
		pager_add(&app->pager, (int64_t)i, "%s", text_of(app, i, text, sizeof text));
	return app->bookmarks > 0;
}
