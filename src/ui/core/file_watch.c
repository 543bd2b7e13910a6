#include "ui/core/file_watch.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/terminal/signals.h"

struct watch {
	struct stat was;
	bool there;            /* it has a name; a nudged history has none */
	bool torn, replaced;
};

static bool look(const struct app *app, struct stat *st)
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

void watch_init(struct app *app)
{
	app->watch = mem_new(1, sizeof *app->watch);
	signals_guard_reads();
	watch_begin(app);
}

void watch_release(struct app *app)
{
	signals_end_reads();
	free(app->watch);
}

void watch_begin(struct app *app)
{
	struct watch *w = app->watch;
	*w = (struct watch){ 0 };
	w->there = look(app, &w->was);
	signals_take_torn();
}

void watch_look(struct app *app)
{
	struct watch *w = app->watch;
	struct stat is;
	char name[256];
	if (w->torn)
		return;
	bool there = w->there && look(app, &is);
	bool mine = there && same_file(&is, &w->was);
	w->torn = signals_take_torn() ||
	          (mine && (is.st_size != w->was.st_size || !same_time(is.st_mtim, w->was.st_mtim)));
	if (w->torn) {
		struct error err = ERROR_INIT;
		error_set(&err, STATUS_INPUT, ":reload opens it again", "%s: was changed while it was open, nothing more is read",
		          text_escape(name, sizeof name, history_file(app->h)));
		app_fail(app, &err);
	} else if (there && !mine && !w->replaced) {
		w->replaced = true;
		app_say(app, "%s was replaced; this is still the old one, :reload shows the new one",
		        text_escape(name, sizeof name, history_file(app->h)));
	}
}

bool watch_torn(const struct app *app)
{
	return app->watch->torn;
}

bool watch_replaced(const struct app *app)
{
	return app->watch->replaced;
}

bool watch_is_open(const struct app *app, const char *file)
{
	struct stat st;
	return app->watch->there && stat(file, &st) == 0 && same_file(&st, &app->watch->was);
}
