/* Bookmarks: rows and times that the user wants to return to, kept in a file that the caller of the viewer names.
 *
 * Each line of the file is one bookmark: cursor, first cell, ns per cell and cell count, markers A and B ("-": not
 * set), the row's name, and after a tab a note. Lines that cannot be parsed or that refer to a row missing in this
 * history are not listed but stay in the file. Several viewers may share the file: each change is applied to its current
 * content under a lock, and the list is read again before it is shown. */
#include "ui/core/bookmarks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/atomic_file.h"
#include "ui/panes/pane.h"

#define FILE_HEADER "# cursor, first cell, ns per cell x cells, marker A, marker B, row, note"
#define BOOKMARKS_MAX 1000
#define CELLS_MAX 10000
#define LINE_MAX_BYTES (ROW_KEY + BOOKMARK_NOTE + 160)

struct bookmark {
	struct view view;
	char *line;      /* the bookmark's line in the file; never NULL */
	char *note;      /* the user's note, escaped; "": none */
};

struct bookmarks {
	struct list list;
	struct bookmark *bookmark;
	size_t bookmarks, cap;
	char *file;      /* the bookmarks' file; NULL: not saved */
};

static struct bookmarks *bookmarks_of(const struct app *app)
{
	return (struct bookmarks *)app->pane[LIST_BOOKMARKS];
}

static void drop_bookmark(struct bookmarks *all, size_t i)
{
	free(all->bookmark[i].line);
	free(all->bookmark[i].note);
	memmove(all->bookmark + i, all->bookmark + i + 1, (--all->bookmarks - i) * sizeof *all->bookmark);
}

/* ---- Lines --------------------------------------------------------------------------------------------------------- */

/* Parses one number, or "-" as VIEW_NONE, and advances *at. Returns false if the text is neither. */
static bool parse_number(const char **at, int64_t *number)
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

/* Parses "7000x57" (ns per cell x cell count) and advances *at. The number is missing in lines of earlier versions.
 * Returns false if the text is invalid. */
static bool parse_cells(const char **at, struct view *v)
{
	char *end;
	errno = 0;
	v->step = strtoll(*at, &end, 10);
	long cols = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
	if (*end != ' ' || errno || v->step < 1 || cols < 0 || cols > CELLS_MAX)
		return false;
	v->cols = (int)cols;
	*at = end + 1;
	return true;
}

static bool is_in_trace(const struct app *app, int64_t t)
{
	return t >= app->bounds.begin && t <= app->bounds.end;
}

bool bookmark_parse(const struct app *app, const char *line, struct view *v, const char **note)
{
	char key[ROW_KEY];
	*v = (struct view){ .range = VIEW_NONE };
	if (!parse_number(&line, &v->cursor) || !parse_number(&line, &v->t0) || !parse_cells(&line, v) ||
	    !parse_number(&line, &v->a) || !parse_number(&line, &v->b) || !is_in_trace(app, v->cursor) ||
	    (v->a != VIEW_NONE && !is_in_trace(app, v->a)) || (v->b != VIEW_NONE && !is_in_trace(app, v->b)))
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
	char key[ROW_KEY], cells[16] = "", a[32], b[32], escaped[BOOKMARK_NOTE];
	text_escape(escaped, sizeof escaped, note);
	if (v->cols)
		snprintf(cells, sizeof cells, "x%d", v->cols);
	return mem_printf("%" PRId64 " %" PRId64 " %" PRId64 "%s %s %s %s%s%s", v->cursor, v->t0, v->step, cells,
	                  number_text(v->a, a), number_text(v->b, b), row_key(&app->rows, v->row, key), escaped[0] ? "\t" : "",
	                  escaped);
}

static void add_line(struct app *app, struct bookmarks *all, const char *line)
{
	struct view v;
	const char *note;
	char escaped[BOOKMARK_NOTE];
	if (all->bookmarks < BOOKMARKS_MAX && bookmark_parse(app, line, &v, &note))
		*ARRAY_PUSH(all->bookmark, all->bookmarks, all->cap) =
			(struct bookmark){ v, mem_dup(line), mem_dup(text_escape(escaped, sizeof escaped, note)) };
}

/* ---- The file ------------------------------------------------------------------------------------------------------ */

static bool next_line(FILE *f, char line[LINE_MAX_BYTES])
{
	if (!f || !fgets(line, LINE_MAX_BYTES, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static void load_file(struct app *app, struct bookmarks *all)
{
	FILE *f = all->file ? file_open(all->file) : NULL;
	char line[LINE_MAX_BYTES];
	if (!f)
		return;
	while (all->bookmarks)
		drop_bookmark(all, all->bookmarks - 1);
	while (next_line(f, line))
		add_line(app, all, line);
	if (ferror(f))
		app_message(app, "bookmarks: only %zu could be read: %s", all->bookmarks, strerror(errno));
	fclose(f);
}

/* Locks the file's directory, so that no lock file is needed. Returns its descriptor, -1: error. */
static int lock_dir(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *dir = slash ? mem_printf("%.*s", (int)(slash - file) + 1, file) : mem_dup(".");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (fd >= 0)
		flock(fd, LOCK_EX);  /* without the lock a change by another viewer may be lost, but the file stays complete */
	return fd;
}

static int rewrite_file(const char *file, const char *old_line, const char *new_line, struct error *err)
{
	struct save to;
	char line[LINE_MAX_BYTES];
	bool found = !old_line;
	FILE *f = file_open(file);
	if (!f && errno != ENOENT)
		return error_system(err, NULL, "%s", file);
	if (atomic_file_begin(&to, file, err) < 0) {
		if (f)
			fclose(f);
		return -1;
	}
	if (!f)
		fputs(FILE_HEADER "\n", to.f);
	while (next_line(f, line)) {
		bool is_old = !found && strcmp(line, old_line) == 0;
		found |= is_old;
		if (!is_old || new_line)
			fprintf(to.f, "%s\n", is_old ? new_line : line);
		new_line = is_old ? NULL : new_line;
	}
	if (new_line)
		fprintf(to.f, "%s\n", new_line);
	int status = f && ferror(f) ? error_system(err, NULL, "%s", file) : 0;  /* a partly read file must not replace the
	                                                                         * original */
	if (f)
		fclose(f);
	return atomic_file_end(&to, status, err);
}

/* Removes old_line from the file (new_line NULL), appends new_line (old_line NULL), or replaces old_line by new_line;
 * then reads the list again. */
static int change_file(struct app *app, const char *old_line, const char *new_line, struct error *err)
{
	struct bookmarks *all = bookmarks_of(app);
	if (!all->file)
		return 0;
	make_parent_dirs(all->file);
	int fd = lock_dir(all->file), status = rewrite_file(all->file, old_line, new_line, err);
	if (status == 0)
		load_file(app, all);
	if (fd >= 0)
		close(fd);
	return status;
}

void bookmarks_load(struct app *app, const char *file)
{
	struct bookmarks *all = bookmarks_of(app);
	all->file = mem_dup(file);
	load_file(app, all);
}

/* ---- The list ------------------------------------------------------------------------------------------------------ */

static char *bookmark_text(const struct app *app, const struct bookmark *b, char *buf, size_t size)
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

static void show_result(struct app *app, const char *label, const char *text, int status, const struct error *err)
{
	if (status == 0)
		app_message(app, "%s: %s", label, text);
	else
		app_message(app, "%s: %s (not saved: %s)", label, text, err->text);
}

void bookmarks_add(struct app *app, const char *note)
{
	struct bookmarks *all = bookmarks_of(app);
	struct error err = ERROR_INIT;
	char label[40], text[BOOKMARK_NOTE + 128];
	if (all->bookmarks >= BOOKMARKS_MAX) {
		app_message(app, "limit of %d bookmarks reached: delete some in the list", BOOKMARKS_MAX);
		return;
	}
	char *line = bookmark_line(app, &app->view, note);
	int status = change_file(app, NULL, line, &err);
	size_t i = all->bookmarks;
	while (i > 0 && strcmp(all->bookmark[i - 1].line, line) != 0)
		i--;
	if (i == 0) {
		add_line(app, all, line);
		i = all->bookmarks;
	}
	snprintf(label, sizeof label, "bookmark %zu", i);
	if (i > 0)
		show_result(app, label, bookmark_text(app, &all->bookmark[i - 1], text, sizeof text), status, &err);
	free(line);
}

static void bookmarks_list_make_lines(struct app *app, struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	char text[BOOKMARK_NOTE + 128];
	pager_open(&all->list.pager, true, "bookmarks");
	all->list.pager.edits = true;
	for (size_t i = 0; i < all->bookmarks; i++)
		pager_add(&all->list.pager, (int64_t)i, "%s", bookmark_text(app, &all->bookmark[i], text, sizeof text));
}

static bool bookmarks_list_open(struct app *app, struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	char keys[32];
	load_file(app, all);
	if (all->bookmarks == 0)
		app_message(app, "no bookmarks yet: %s sets one", keymap_text(&app->keymap, ACT_BOOKMARK, keys, sizeof keys));
	return all->bookmarks > 0;
}

/* Updates the open list; keeps the selected line. */
static void update_list(struct app *app, struct bookmarks *all)
{
	list_arrange(app, &all->list.pane);
	if (all->bookmarks == 0)
		list_close(app);
}

static void bookmarks_list_drop_line(struct app *app, struct pane *pane, int64_t tag)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	struct error err = ERROR_INIT;
	char text[BOOKMARK_NOTE + 128], *line = mem_dup(all->bookmark[tag].line);
	bookmark_text(app, &all->bookmark[tag], text, sizeof text);
	int status = change_file(app, line, NULL, &err);
	if (status < 0 || !all->file)
		drop_bookmark(all, find_line(all, line));
	show_result(app, "deleted", text, status, &err);
	update_list(app, all);
	free(line);
}

static void edit_note(struct app *app, struct pane *pane, int64_t tag, const char *note)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	struct error err = ERROR_INIT;
	struct bookmark *b = &all->bookmark[tag];
	char escaped[BOOKMARK_NOTE], *old = mem_dup(b->line), *line = bookmark_line(app, &b->view, note);
	int status = change_file(app, old, line, &err);
	if (status < 0 || !all->file) {
		free(b->note);
		free(b->line);
		b->note = mem_dup(text_escape(escaped, sizeof escaped, note));
		b->line = mem_dup(line);
	}
	if (status < 0)
		app_fail(app, &err);
	update_list(app, all);
	free(old);
	free(line);
}

static const char *bookmarks_list_note_of(struct pane *pane, int64_t tag)
{
	return ((struct bookmarks *)pane)->bookmark[tag].note;
}

/* Restores the bookmarked window, fitted into the current columns: their number differs if the overview was open. */
static void bookmarks_list_pick_line(struct app *app, struct pane *pane, int64_t tag)
{
	const struct view *to = &((struct bookmarks *)pane)->bookmark[tag].view;
	undo_push(&app->undo, &app->view);
	app_show_row(app, to->row);
	struct row_id row = app->view.row;
	app->view = *to;
	app->view.row = row;
	app_refit(app);
	view_resize(&app->view, &app->bounds);
	app->view.cols = app->bounds.cols;
}

static void bookmarks_list_remap_rows(struct app *app, struct pane *pane, const struct rows *old, const struct rows *new)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	(void)app;
	for (size_t i = 0; i < all->bookmarks; i++)
		all->bookmark[i].view.row = row_remap(old, new, all->bookmark[i].view.row);
}

static void bookmarks_list_release(struct pane *pane)
{
	struct bookmarks *all = (struct bookmarks *)pane;
	while (all->bookmarks)
		drop_bookmark(all, all->bookmarks - 1);
	free(all->bookmark);
	free(all->file);
	list_release(pane);
}

const struct pane_ops bookmarks_list = {
	.size = sizeof(struct bookmarks), .is_list = true, .open = bookmarks_list_open,
	.arrange = bookmarks_list_make_lines, .pick = bookmarks_list_pick_line, .drop = bookmarks_list_drop_line,
	.edit = edit_note, .text = bookmarks_list_note_of, .remap = bookmarks_list_remap_rows,
	.release = bookmarks_list_release,
};
