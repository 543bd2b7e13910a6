#include "ui/core/file_watch.h"

#include <sys/stat.h>

#include "base/base.h"
#include "ui/terminal/signals.h"

struct file_watch {
	struct stat opened;
	bool has_file;         /* the history has a file; false for histories with manual offsets */
	bool changed_in_place, replaced;
};

static bool stat_file(const struct app *app, struct stat *st)
{
	return stat(history_file(app->h), st) == 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void file_watch_init(struct app *app)
{
	app->file_watch = mem_new(1, sizeof *app->file_watch);
	signals_guard_reads();
	file_watch_begin(app);
}

void file_watch_release(struct app *app)
{
	signals_end_reads();
	free(app->file_watch);
}

void file_watch_begin(struct app *app)
{
	struct file_watch *w = app->file_watch;
	*w = (struct file_watch){ 0 };
	w->has_file = stat_file(app, &w->opened);
	signals_take_truncated();
}

void file_watch_check(struct app *app)
{
	struct file_watch *w = app->file_watch;
	struct stat now;
	char name[256];
	if (w->changed_in_place)
		return;
	bool exists = w->has_file && stat_file(app, &now);
	bool is_same = exists && same_file(&now, &w->opened);
	w->changed_in_place = signals_take_truncated() ||
	          (is_same && (now.st_size != w->opened.st_size || !same_time(now.st_mtim, w->opened.st_mtim)));
	if (w->changed_in_place) {
		struct error err = ERROR_INIT;
		error_set(&err, STATUS_INPUT, ":reload opens it again",
		          "%s: the file changed while it was open; it is no longer read",
		          text_escape(name, sizeof name, history_file(app->h)));
		app_fail(app, &err);
	} else if (exists && !is_same && !w->replaced) {
		w->replaced = true;
		app_message(app, "%s was replaced; still showing the old file (:reload opens the new one)",
		        text_escape(name, sizeof name, history_file(app->h)));
	}
}

bool file_watch_is_changed(const struct app *app)
{
	return app->file_watch->changed_in_place;
}

bool file_watch_is_replaced(const struct app *app)
{
	return app->file_watch->replaced;
}

bool file_watch_is_open(const struct app *app, const char *file)
{
	struct stat st;
	return app->file_watch->has_file && stat(file, &st) == 0 && same_file(&st, &app->file_watch->opened);
}
