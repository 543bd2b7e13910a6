/* Bookmarks: places to come back to, kept in a file that whoever starts the viewer names.
 *
 * A line of the file is a place: cursor, first cell, ns per cell and how many cells there were, markers A and B ("-" =
 * not set), the row by its name, and behind a tab a note.  What cannot be read as that, or names no row of this history,
 * is left out of the list, and left in the file.  Several viewers may share it: each change is made to the file as it is
 * then, under a lock, and the list is read again before it is shown. */
#include "ui/core/bookmarks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "ui/panes/pane.h"

#define HEAD "# cursor, first cell, ns per cell x cells, marker A, marker B, row, note"
#define MOST 1000
#define MOST_CELLS 10000
#define LINE_LONGEST (ROW_KEY + BOOKMARK_NOTE + 160)

struct bookmark {
	struct view view;
	char *line;      /* in the file; NULL: it is not kept */
	char *note;      /* escaped, or "" */
};

struct bookmarks {
	struct list list;
	struct bookmark *bookmark;
	size_t bookmarks, cap;
	char *file;      /* keeps them, or NULL */
};

static struct bookmarks *all_of(const struct app *app)
{
	return (struct bookmarks *)app->pane[LIST_BOOKMARKS];
}

static void drop(struct bookmarks *all, size_t i)
{
	free(all->bookmark[i].line);
	free(all->bookmark[i].note);
	memmove(all->bookmark + i, all->bookmark + i + 1, (--all->bookmarks - i) * sizeof *all->bookmark);
}

/* ---- Lines --------------------------------------------------------------------------------------------------------- */

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

/* "7000x57": ns per cell, and of how many cells; lines of earlier versions do not tell that.  Moves on. */
static bool take_cells(const char **at, struct view *v)
{
	char *end;
	errno = 0;
	v->step = strtoll(*at, &end, 10);
	long cols = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
	if (*end != ' ' || errno || v->step < 1 || cols < 0 || cols > MOST_CELLS)
		return false;
	v->cols = (int)cols;
	*at = end + 1;
	return true;
}

static bool within(const struct app *app, int64_t t)
{
	return t >= app->ground.begin && t <= app->ground.end;
}

bool bookmark_parse(const struct app *app, const char *line, struct view *v, const char **note)
{
	char key[ROW_KEY];
	*v = (struct view){ .range = VIEW_NONE };
	if (!take_number(&line, &v->cursor) || !take_number(&line, &v->t0) || !take_cells(&line, v) ||
	    !take_number(&line, &v->a) || !take_number(&line, &v->b) || !within(app, v->cursor) ||
	    (v->a != VIEW_NONE && !within(app, v->a)) || (v->b != VIEW_NONE && !within(app, v->b)))
		return false;
	size_t n = strcspn(line, "\t");
	*note = line + n + (line[n] == '\t');
	snprintf(key, sizeof key, "%.*s", (int)n, line);
	return row_of_key(&app->rows, key, &v->row);
}

static char *number_text(int64_t t, char buf[32])
{
	snprintf(buf, 32, t == VIEW_NONE ? "-" : "%" PRId64, t);
	return buf;
}

char *bookmark_line(const struct app *app, const struct view *v, const char *note)
{
	char key[ROW_KEY], cells[16] = "", a[32], b[32], shown[BOOKMARK_NOTE];
	text_escape(shown, sizeof shown, note);
	if (v->cols)
		snprintf(cells, sizeof cells, "x%d", v->cols);
	return mem_printf("%" PRId64 " %" PRId64 " %" PRId64 "%s %s %s %s%s%s", v->cursor, v->t0, v->step, cells,
	                  number_text(v->a, a), number_text(v->b, b), row_key(&app->rows, v->row, key), shown[0] ? "\t" : "",
	                  shown);
}

static void add(struct app *app, struct bookmarks *all, const char *line)
{
	struct view v;
	const char *note;
	char shown[BOOKMARK_NOTE];
	if (all->bookmarks < MOST && bookmark_parse(app, line, &v, &note))
		*ARRAY_PUSH(all->bookmark, all->bookmarks, all->cap) =
			(struct bookmark){ v, mem_dup(line), mem_dup(text_escape(shown, sizeof shown, note)) };
}

/* ---- The file ------------------------------------------------------------------------------------------------------ */

static bool next_line(FILE *f, char line[LINE_LONGEST])
{
	if (!f || !fgets(line, LINE_LONGEST, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static void load(struct app *app, struct bookmarks *all)
{
	FILE *f = all->file ? fopen(all->file, "re") : NULL;
	char line[LINE_LONGEST];
	if (!f)
		return;
	while (all->bookmarks)
		drop(all, all->bookmarks - 1);
	while (next_line(f, line))
		add(app, all, line);
	if (ferror(f))
		app_say(app, "bookmarks: only %zu could be read: %s", all->bookmarks, strerror(errno));
	fclose(f);
}

/* The lock is the folder's: so nothing is left behind. */
static int lock(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *folder = slash ? mem_printf("%.*s", (int)(slash - file) + 1, file) : mem_dup(".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (fd >= 0)
		flock(fd, LOCK_EX);  /* where it cannot be, the rename still leaves one whole file */
	return fd;
}

static int rewrite(const char *file, const char *without, const char *with, struct error *err)
{
	struct save to;
	char line[LINE_LONGEST];
	bool found = !without;
	FILE *f = fopen(file, "re");
	if (!f && errno != ENOENT)
		return error_system(err, NULL, "%s", file);
	if (save_begin(&to, file, err) < 0) {
		if (f)
			fclose(f);
		return -1;
	}
	if (!f)
		fputs(HEAD "\n", to.f);
	while (next_line(f, line)) {
		bool that = !found && strcmp(line, without) == 0;
		found |= that;
		if (!that || with)
			fprintf(to.f, "%s\n", that ? with : line);
		with = that ? NULL : with;
	}
	if (with)
		fprintf(to.f, "%s\n", with);
	int status = f && ferror(f) ? error_system(err, NULL, "%s", file) : 0;  /* what was not read is not dropped */
	if (f)
		fclose(f);
	return save_end(&to, status, err);
}

/* A line of the file goes, or changes, or one is added; then the list is what the file holds.  NULL: none. */
static int change(struct app *app, const char *without, const char *with, struct error *err)
{
	struct bookmarks *all = all_of(app);
	if (!all->file)
		return 0;
	save_folders(all->file);
	int fd = lock(all->file), status = rewrite(all->file, without, with, err);
	if (status == 0)
		load(app, all);
	if (fd >= 0)
		close(fd);
	return status;
}

void bookmarks_load(struct app *app, const char *file)
{
	struct bookmarks *all = all_of(app);
	all->file = mem_dup(file);
	load(app, all);
}

/* ---- The list ------------------------------------------------------------------------------------------------------ */

static char *text_of(const struct app *app, const struct bookmark *b, char *buf, size_t size)
{
	char title[256], when[TIME_TEXT];
	ruler_time(when, &app->axis, b->view.cursor, b->view.step);
	snprintf(buf, size, "%s  %.60s%s%s", when, row_title(&app->rows, b->view.row, title, sizeof title),
	         b->note[0] ? "  " : "", b->note);
	return buf;
}

static size_t find_line(const struct bookmarks *all, const char *line)
{
	size_t i = 0;
	while (i < all->bookmarks && strcmp(all->bookmark[i].line, line) != 0)
		i++;
	return i;
}

static void say_kept(struct app *app, const char *what, const char *text, int status, const struct error *err)
{
	if (status == 0)
		app_say(app, "%s: %s", what, text);
	else
		app_say(app, "%s: %s; it is not kept: %s", what, text, err->text);
}

void bookmarks_add(struct app *app, const char *note)
{
	struct bookmarks *all = all_of(app);
	struct error err = ERROR_INIT;
	char what[40], text[BOOKMARK_NOTE + 128];
	if (all->bookmarks >= MOST) {
		app_say(app, "there are %d bookmarks already: drop some in their list", MOST);
		return;
	}
	char *line = bookmark_line(app, &app->view, note);
	int status = change(app, NULL, line, &err);
	size_t i = all->bookmarks;
	while (i > 0 && strcmp(all->bookmark[i - 1].line, line) != 0)
		i--;
	if (i == 0) {
		add(app, all, line);
		i = all->bookmarks;
	}
	snprintf(what, sizeof what, "bookmark %zu", i);
	if (i > 0)
		say_kept(app, what, text_of(app, &all->bookmark[i - 1], text, sizeof text), status, &err);
	free(line);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	char text[BOOKMARK_NOTE + 128];
	pager_open(&all->list.pager, true, "bookmarks");
	all->list.pager.edits = true;
	for (size_t i = 0; i < all->bookmarks; i++)
		pager_add(&all->list.pager, (int64_t)i, "%s", text_of(app, &all->bookmark[i], text, sizeof text));
}

static bool begin(struct app *app, struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	char keys[32];
	load(app, all);
	if (all->bookmarks == 0)
		app_say(app, "no bookmarks yet: %s sets one", keymap_text(&app->keymap, ACT_BOOKMARK, keys, sizeof keys));
	return all->bookmarks > 0;
}

/* The list again, on the same line. */
static void show_again(struct app *app, struct bookmarks *all)
{
	list_arrange(app, &all->list.pane);
	if (all->bookmarks == 0)
		list_close(app);
}

static void drop_one(struct app *app, struct pane *pane, int64_t tag)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	struct error err = ERROR_INIT;
	char text[BOOKMARK_NOTE + 128], *line = mem_dup(all->bookmark[tag].line);
	text_of(app, &all->bookmark[tag], text, sizeof text);
	int status = change(app, line, NULL, &err);
	if (status < 0 || !all->file)
		drop(all, find_line(all, line));
	say_kept(app, "dropped", text, status, &err);
	show_again(app, all);
	free(line);
}

static void edit(struct app *app, struct pane *pane, int64_t tag, const char *note)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	struct error err = ERROR_INIT;
	struct bookmark *b = &all->bookmark[tag];
	char shown[BOOKMARK_NOTE], *was = mem_dup(b->line), *line = bookmark_line(app, &b->view, note);
	int status = change(app, was, line, &err);
	if (status < 0 || !all->file) {
		free(b->note);
		free(b->line);
		b->note = mem_dup(text_escape(shown, sizeof shown, note));
		b->line = mem_dup(line);
	}
	if (status < 0)
		app_fail(app, &err);
	show_again(app, all);
	free(was);
	free(line);
}

static const char *note_of(struct pane *pane, int64_t tag)
{
	return ((struct bookmarks *)pane)->bookmark[tag].note;
}

/* The stretch of time that it was of, however many cells there are now: the overview, which is left, has others. */
static void pick(struct app *app, struct pane *pane, int64_t tag)
{
	const struct view *to = &((struct bookmarks *)pane)->bookmark[tag].view;
	undo_push(&app->undo, &app->view);
	app_show_row(app, to->row);
	struct row_id row = app->view.row;
	app->view = *to;
	app->view.row = row;
	app_refit(app);
	view_resize(&app->view, &app->ground);
	app->view.cols = app->ground.cols;
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	(void)app;
	for (size_t i = 0; i < all->bookmarks; i++)
		all->bookmark[i].view.row = row_again(was, is, all->bookmark[i].view.row);
}

static void release(struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	while (all->bookmarks)
		drop(all, all->bookmarks - 1);
	free(all->bookmark);
	free(all->file);
	list_release(pane);
}

const struct pane_ops bookmarks_list = {
	.size = sizeof(struct bookmarks), .over = true, .open = begin, .arrange = arrange, .pick = pick, .drop = drop_one,
	.edit = edit, .text = note_of, .carry = carry, .release = release,
};
