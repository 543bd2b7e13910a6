/* Presses keys in a viewer on the history `world`; the tests inspect its state. */
#pragma once

#include "ui/core/viewer.h"
#include "ui_script.h"

static struct app app;
static struct history *history;
static struct screen screen;

/* Setup and teardown of each test. */
static int begin(void **state)
{
	struct error err = ERROR_INIT;
	bool changed;
	(void)state;
	history = history_open(world, &err);
	assert_non_null(history);
	assert_int_equal(viewer_init(&app, history, &mono120, &err), 0);
	appearance_set_depth(&app, DEPTH_MONO);
	app.waits_for_answers = true;
	screen_resize(&screen, 120, 40);
	while (viewer_work(&app, 1000000000, &changed))
		;
	viewer_draw(&app, &screen);  /* selects the row of the verdict */
	return 0;
}

static int end(void **state)
{
	(void)state;
	viewer_release(&app);
	history_close(history);
	screen_release(&screen);
	return 0;
}

/* Presses the keys and returns the resulting screen as text; the caller frees it. */
static char *press(const char *keys)
{
	char *text = NULL;
	size_t size;
	uint32_t key;
	bool changed;
	while (*keys && (key = key_parse(&keys)) != 0) {
		viewer_key(&app, key);
		for (int i = 0; i < 2; i++) {  /* the first frame finds names that it lacks */
			while (viewer_work(&app, 1000000000, &changed))
				;
			viewer_draw(&app, &screen);
		}
	}
	FILE *f = open_memstream(&text, &size);
	screen_dump(&screen, f);
	fclose(f);
	return text;
}

static void assert_shows(const char *keys, const char *text)
{
	char *s = press(keys);
	if (!strstr(s, text))
		fail_msg("after %s: no \"%s\" in\n%s", keys, text, s);
	free(s);
}
