/* stealscope picture: saves the viewer's screen as a file. */
#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/display_options.h"
#include "cli/query_context.h"
#include "ui/ui.h"

#define WIDTH 120

static bool is_picture(const char *path)
{
	return file_begins_with(path, "<svg", 4) || file_begins_with(path, "<!DOCTYPE html", 14);
}

static int check_file(const char *file, struct error *err)
{
	const char *dot = file ? strrchr(file, '.') : NULL;
	if (!file)
		return error_set(err, STATUS_USAGE, "use -o FILE.svg, .html or .txt", "picture: no output file specified");
	if (!dot || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".html") != 0 && strcmp(dot, ".txt") != 0))
		return error_set(err, STATUS_USAGE, "use a name that ends in .svg, .html or .txt", "picture: '%s': unsupported "
			"format", file);
	return refuse_overwrite(file, is_picture, "an SVG or HTML picture", err);
}

/* Finds the targets of all operands; the caller frees *targets. */
static int find_targets(const struct catalog *catalog, char *const *text, size_t n, struct ui_picture *p,
                    struct target **targets, struct error *err)
{
	size_t cap = 0;
	for (size_t i = 0; i < n; i++) {
		struct target *found = NULL, one;
		size_t len = 0;
		int rc = catalog_find_targets(catalog, text[i], &found, &len, err);
		if (rc == 0 && len == 0)
			rc = catalog_single_target(catalog, text[i], found, len, &one, err);
		for (size_t k = 0; rc == 0 && k < len; k++)
			*ARRAY_PUSH(*targets, p->target_count, cap) = found[k];
		free(found);
		if (rc)
			return -1;
	}
	p->who = *targets;
	return 0;
}

/* Reduces the window to the threads' lifetime if all targets are threads. */
static int use_lifetime(const struct catalog *catalog, struct ui_picture *p, struct error *err)
{
	int64_t from = INT64_MAX, to = INT64_MIN, start, end;
	for (size_t i = 0; i < p->target_count; i++) {
		const int alive = catalog_lifetime(catalog, &p->who[i], &start, &end, err);
		if (alive < 0)
			return -1;
		from = alive && start < from ? start : from;
		to = alive && end > to ? end : to;
	}
	if (from <= to) {
		p->from = from;
		p->to = to;
	}
	return 0;
}

int cmd_picture(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct ui_options ui = { .config = "/dev/null", .width = WIDTH, .height = 40 };
	struct ui_picture p = { 0 };
	struct target *targets = NULL;
	unsigned width = WIDTH;
	const struct theme_names theme_names = display_options_themes();
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "output file: *.svg, *.html or *.txt", &p.file, NULL },
		WINDOW_OPTIONS(&when),
		{ "width", 0, OPT_COUNT, "COLUMNS", "width of the picture (120)", &width, NULL },
		DISPLAY_OPTIONS(&ui, &theme_names),
	};
	const struct opts opts = { "picture RECORDING -o FILE [TARGET...]",
		"Save the viewer's screen: the overview, or the rows of TARGET.", opt, sizeof opt / sizeof *opt, 1, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err) || check_file(p.file, err))
		return -1;
	if (width < 60 || width > 1000)
		return error_set(err, STATUS_USAGE, "use 60 to 1000", "--width: invalid width of %u columns", width);
	ui.width = (int)width;
	struct query_context s;
	int rc = query_context_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = find_targets(&s.catalog, argv + first + 1, (size_t)(argc - first - 1), &p, &targets, err);
	if (rc == 0) {
		p.from = s.window.from > history_begin(s.h) ? s.window.from : history_begin(s.h);
		p.to = s.window.to < history_end(s.h) ? s.window.to : history_end(s.h);
		if (p.from == history_begin(s.h) && p.to == history_end(s.h))
			rc = use_lifetime(&s.catalog, &p, err);
		if (rc == 0)
			rc = ui_picture(s.h, &ui, &p, err);
		if (rc == 0)
			printf("%s\n", p.file);
	}
	free(targets);
	return query_context_close(&s, rc, err);
}
