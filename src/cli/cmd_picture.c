/* stealscope picture: what the viewer shows, as a file. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/atomic_file.h"
#include "cli/cli.h"
#include "cli/display_options.h"
#include "cli/query_context.h"
#include "ui/ui.h"

#define WIDTH 120

static bool is_picture(const char *path)
{
	return save_begins_with(path, "<svg", 4) || save_begins_with(path, "<!DOCTYPE html", 14);
}

static int check_file(const char *file, struct error *err)
{
	const char *dot = file ? strrchr(file, '.') : NULL;
	if (!file)
		return error_set(err, STATUS_USAGE, "give -o FILE.svg, .html or .txt", "picture: no file to write");
	if (!dot || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".html") != 0 && strcmp(dot, ".txt") != 0))
		return error_set(err, STATUS_USAGE, "its ending must be .svg, .html or .txt", "picture: '%s': of what kind?", file);
	return save_spares(file, is_picture, "an SVG or HTML picture", err);
}

/* All that each of the arguments may mean. */
static int find_who(const struct topo *topo, char *const *text, size_t n, struct ui_picture *p, struct subject **who,
                    struct error *err)
{
	size_t cap = 0;
	for (size_t i = 0; i < n; i++) {
		struct subject *found = NULL, one;
		size_t len = 0;
		int rc = topo_find_subjects(topo, text[i], &found, &len, err);
		if (rc == 0 && len == 0)
			rc = topo_one_subject(topo, text[i], found, len, &one, err);
		for (size_t k = 0; rc == 0 && k < len; k++)
			*ARRAY_PUSH(*who, p->whos, cap) = found[k];
		free(found);
		if (rc)
			return -1;
	}
	p->who = *who;
	return 0;
}

int cmd_picture(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct ui_options ui = { .config = "/dev/null", .width = WIDTH, .height = 40 };
	struct ui_picture p = { 0 };
	struct subject *who = NULL;
	unsigned width = WIDTH;
	const struct looks looks = looks_shipped();
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "where to write: a file that ends in .svg, .html or .txt", &p.file, NULL },
		WINDOW_OPTIONS(&when),
		{ "width", 0, OPT_COUNT, "COLUMNS", "of the picture (120)", &width, NULL },
		LOOKS_OPTIONS(&ui, &looks),
	};
	const struct opts opts = { "picture WHAT -o FILE [WHO...]",
		"What the viewer shows, as a file: the overview, or the rows of WHO.", opt, sizeof opt / sizeof *opt, 1, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err) || check_file(p.file, err))
		return -1;
	if (width < 60 || width > 1000)
		return error_set(err, STATUS_USAGE, "60 to 1000", "--width: %u columns", width);
	ui.width = (int)width;
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = find_who(&s.topo, argv + first + 1, (size_t)(argc - first - 1), &p, &who, err);
	if (rc == 0) {
		p.from = s.window.from > history_begin(s.h) ? s.window.from : history_begin(s.h);
		p.to = s.window.to < history_end(s.h) ? s.window.to : history_end(s.h);
		rc = ui_picture(s.h, &ui, &p, err);
	}
	free(who);
	return scene_close(&s, rc, err);
}
