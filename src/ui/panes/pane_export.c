#include "ui/panes/pane_export.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "ui/panes/pane.h"
#include "ui/core/file_watch.h"

static bool ends_in(const char *file, const char *ending)
{
	const char *dot = strrchr(file, '.');
	return dot && strcmp(dot, ending) == 0;
}

static enum report_format format_of(const char *file)
{
	return ends_in(file, ".csv") ? FORMAT_CSV : ends_in(file, ".json") ? FORMAT_JSON : FORMAT_TEXT;
}

void export_origin(const struct app *app, const struct pane *p, const struct target *s, struct origin *o)
{
	char name[512];
	origin_load(o, &app->catalog, s, p->from, p->to);
	/* with a manual offset the history shown is a temporary file: name the original file */
	free(o->history[0]);
	free(o->line[0]);
	o->history[0] = mem_dup(history_file(app->first));
	o->line[0] = mem_printf("history  %s", text_escape(name, sizeof name, history_file(app->first)));
}

/* ---- Files --------------------------------------------------------------------------------------------------------- */

/* Writes the name of a default file that does not exist yet. */
static void default_name(const struct app *app, const struct pane *p, char *buf, size_t size)
{
	char name[300];
	p->ops->file(app, p, name, sizeof name);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			*c = '-';
	snprintf(buf, size, "%s.txt", name);
	for (int n = 2; access(buf, F_OK) == 0 && n < 1000; n++)
		snprintf(buf, size, "%s-%d.txt", name, n);
}

void export_prompt(struct app *app)
{
	char name[PROMPT_MAX_BYTES];
	struct pane *p = pane_shown(app);
	if (!p)
		return;
	default_name(app, p, name, sizeof name);
	app_prompt(app, PROMPT_EXPORT, name);
}

int export_begin(const struct app *app, const char *name, struct save *save, struct error *err)
{
	char file[PROMPT_MAX_BYTES], shown[PROMPT_MAX_BYTES];
	struct stat st;
	snprintf(file, sizeof file, "%s", name);
	size_t n = strlen(file);
	bool force = n > 1 && file[n - 1] == '!';
	if (force)
		file[n - 1] = '\0';
	text_escape(shown, sizeof shown, file);
	if (file_watch_is_open(app, file))
		return error_set(err, STATUS_USAGE, "choose another name", "%.200s: this history is open", shown);
	if (!force && lstat(file, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(err, STATUS_USAGE, NULL, "%.200s: file exists (\"%.200s!\" replaces it)", shown, shown);
	return atomic_file_begin(save, file, err);
}

static int write_file(struct app *app, struct pane *p, const char *file, struct error *err)
{
	struct save save;
	if (export_begin(app, file, &save, err) < 0)
		return -1;
	int status = p->ops->export(app, p, save.f, format_of(save.path), err);
	if (status < 0 && !err->text[0])
		error_system(err, NULL, "%s", file);
	return atomic_file_end(&save, status, err);
}

void export_pane(struct app *app, const char *file)
{
	struct error err = ERROR_INIT;
	char name[PROMPT_MAX_BYTES], shown[PROMPT_MAX_BYTES];
	struct pane *p = pane_shown(app);
	if (!p)
		return;
	if (*file)
		snprintf(name, sizeof name, "%s", file);
	else
		default_name(app, p, name, sizeof name);
	pane_refresh(app, p);
	if (p->pending) {
		app_refuse(app, "still computing: export it when it is complete");
	} else if (!p->valid) {
		app_refuse(app, "nothing to export");
	} else if (write_file(app, p, name, &err) < 0) {
		app_fail(app, &err);
	} else {
		size_t n = strlen(name);
		if (name[n - 1] == '!')
			name[n - 1] = '\0';
		char omitted_text[128] = "";
		if (p->ops->omitted_text)
			p->ops->omitted_text(p, omitted_text, sizeof omitted_text);
		app_message(app, "wrote %.300s%s%s", text_escape(shown, sizeof shown, name),
		        format_of(name) == FORMAT_TEXT && !ends_in(name, ".txt") ? " as text" : "", omitted_text);
	}
}
