/* Runs scripts in a viewer on the history `world` and returns the resulting screens. */
#pragma once

#include "test.h"

#include <unistd.h>

#include "ui/ui.h"
#include "ui_world.h"

static char world[64] = "/tmp/stealscope-ui-XXXXXX";

__attribute__((unused))
static int write_world(void **state)
{
	(void)state;
	close(mkstemp(world));
	ui_world_write(world, 0);
	return 0;
}

__attribute__((unused))
static int remove_world(void **state)
{
	(void)state;
	return unlink(world);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);
	if (f) {
		text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
		fclose(f);
	}
	return f ? text : (free(text), NULL);
}

static int run(const char *script, const struct ui_options *options, struct error *err)
{
	char path[64] = "/tmp/stealscope-script-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, script, strlen(script)) == (ssize_t)strlen(script));
	close(fd);
	struct ui_options o = *options;
	o.script = path;
	struct history *h = history_open(world, err);
	int status = h ? ui_run(h, &o, err) : -1;
	history_close(h);
	unlink(path);
	return status;
}

/* Runs the script and returns the last screen; the caller frees it. */
__attribute__((unused))
static char *screen_of(const char *script, const struct ui_options *options)
{
	char path[64] = "/tmp/stealscope-screen-XXXXXX", text[4096];
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	snprintf(text, sizeof text, "%s\n:screen %s!\n", script, path);
	if (run(text, options, &err) < 0)
		fail_msg("%s", err.text);
	char *screen = slurp(path);
	unlink(path);
	return screen;
}

/* Compares the last screen with tests/ui/NAME.screen; UPDATE_SCREENS=1 writes that file instead. */
__attribute__((unused))
static void check_screen(const char *name, const char *script, const struct ui_options *options)
{
	char file[512];
	const char *srcdir = getenv("srcdir");
	snprintf(file, sizeof file, "%s/tests/ui/%s.screen", srcdir ? srcdir : ".", name);
	char *got = screen_of(script, options), *expected = slurp(file);
	if (getenv("UPDATE_SCREENS")) {
		FILE *f = fopen(file, "w");
		assert_non_null(f);
		fputs(got, f);
		fclose(f);
	} else if (!expected || strcmp(got, expected) != 0) {
		fail_msg("%s differs.  Now it is:\n%s", file, got);
	}
	free(got);
	free(expected);
}

__attribute__((unused))
static const struct ui_options mono80 = { .glyphs = "ascii", .color = "never", .width = 80, .height = 24,
	.config = "/dev/null" };
__attribute__((unused))
static const struct ui_options mono120 = { .glyphs = "ascii", .color = "never", .width = 120, .height = 40,
	.config = "/dev/null" };
