#include "ui/input/script.h"

#include "base/base.h"
#include "base/file_open.h"
#include "ui/input/command.h"

static void finish_work(struct app *app)
{
	bool changed;
	while (viewer_work(app, 1000000000, &changed))
		;
}

/* Presses the keys without drawing. The caller draws a frame after each line of the script: scrolling and panes need
 * frames. */
static void press_keys(struct app *app, const char *keys, bool skip_spaces)
{
	uint32_t key;
	while (*keys && !app->quit) {
		if (skip_spaces && *keys == ' ') {
			keys++;
			continue;
		}
		key = key_parse(&keys);
		if (!key)
			break;
		viewer_key(app, key);
	}
}

static int run_line(struct app *app, struct screen *s, const char *line)
{
	if (line[0] == ':') {
		if (strncmp(line, ":screen", 7) != 0)  /* the saved screen includes the last message */
			app->message[0] = '\0';
		app->message_is_error = false;
		command_run(app, line);
	} else if (strncmp(line, "key ", 4) == 0) {
		press_keys(app, line + 4, true);
	} else {
		press_keys(app, line, false);
	}
	finish_work(app);
	viewer_draw(app, s);
	return app->message_is_error ? -1 : 0;
}

int script_run(struct app *app, const char *file, struct error *err)
{
	FILE *f = file_open(file);
	if (!f)
		return error_read(err, "check the path", "--script: %s", file);
	struct screen s = { 0 };
	char *line = NULL;
	size_t cap = 0, number = 0;
	ssize_t n;
	int status = 0;
	screen_resize(&s, app->w, app->h_cells);
	app->waits_for_answers = true;
	finish_work(app);
	viewer_draw(app, &s);
	while (status == 0 && !app->quit && (n = getline(&line, &cap, f)) >= 0) {
		number++;
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (line[0] == '\0' || line[0] == '#')
			continue;
		status = run_line(app, &s, line);
	}
	if (status < 0)
		error_set(err, STATUS_INPUT, NULL, "%s:%zu: %s", file, number, app->message);
	free(line);
	screen_release(&s);
	fclose(f);
	return status;
}
