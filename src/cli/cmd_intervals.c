/* stealscope intervals: the raw intervals of an attribute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/build.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/window.h"

static const struct column columns[] = {
	{ "start", "start", COL_INT },
	{ "end", "end", COL_INT },
	{ "value", "value", COL_TEXT },
};

/* The value as people name it. */
static struct value value_of(const struct history *h, uint32_t attr, int64_t v, char buf[TIME_TEXT])
{
	if (v == HISTORY_NULL)
		return VAL_NONE;
	if (history_type(h, attr) == HISTORY_STATE)
		return VAL_TEXT(history_state_name(h, attr, (unsigned)v));
	if (history_type(h, attr) == HISTORY_STRING)
		return VAL_TEXT(history_string(h, v));
	snprintf(buf, TIME_TEXT, "%lld", (long long)v);
	return VAL_TEXT(buf);
}

/* The folder of attributes that the path names, or that it goes wrong in. */
static uint32_t last_sound(const struct history *h, const char *path)
{
	uint32_t node = history_find(h, path);
	char *part = mem_dup(path), *slash;
	while (node == HISTORY_NONE && (slash = strrchr(part, '/'))) {
		*slash = '\0';
		node = history_find(h, part[0] ? part : "/");
	}
	free(part);
	return node == HISTORY_NONE ? history_find(h, "/") : node;
}

/* The path names no attribute: says what there is where it ends. */
static int refuse_path(const struct history *h, const char *path, struct error *err)
{
	char shown[128], mend[sizeof err->mend];
	uint32_t at = last_sound(h, path);
	const char *name = history_name(h, at);
	size_t used = (size_t)snprintf(mend, sizeof mend, "%.64s has:", text_escape(shown, sizeof shown, *name ? name : "/"));
	for (uint32_t c = history_child(h, at, HISTORY_NONE); c != HISTORY_NONE; c = history_child(h, at, c)) {
		text_escape(shown, sizeof shown, history_name(h, c));
		if (used + strlen(shown) + 8 > sizeof mend) {
			snprintf(mend + used, sizeof mend - used, " ...");
			break;
		}
		used += (size_t)snprintf(mend + used, sizeof mend - used, " %s,", shown);
	}
	if (mend[used - 1] == ',' && !mend[used])
		mend[used - 1] = '\0';
	return error_set(err, STATUS_USAGE, mend, "%s: %s: '%s'", history_file(h),
	                 history_find(h, path) == HISTORY_NONE ? "no such attribute" : "not an attribute but a folder of them",
	                 text_escape(shown, sizeof shown, path));
}

static int print_intervals(const struct history *h, const char *path, const struct window *w,
                           enum report_format format, struct error *err)
{
	uint32_t attr = history_find(h, path);
	if (attr == HISTORY_NONE || history_type(h, attr) < 0)
		return refuse_path(h, path, err);
	struct history_cursor c;
	if (history_range(&c, h, attr, w->from, w->to, err))
		return -1;
	struct report *r = report_begin(stdout, format, columns, sizeof columns / sizeof *columns);
	struct interval iv;
	int rc;
	while ((rc = history_range_next(&c, &iv, err)) == 1) {
		char buf[TIME_TEXT];
		report_row(r, (struct value[]){ VAL_INT(iv.start), VAL_INT(iv.end), value_of(h, attr, iv.value, buf) });
	}
	report_end(r);
	return rc;
}

int cmd_intervals(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	int format = FORMAT_TEXT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		FORMAT_OPTION(&format),
	};
	const struct opts opts = { "intervals WHAT PATH", "Prints the intervals of an attribute, whole.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct history *h = open_named(argv[first], err);
	struct window w;
	int rc = h ? window_parse(&w, &when, h, err) : -1;
	if (rc == 0)
		rc = print_intervals(h, argv[first + 1], &w, (enum report_format)format, err);
	return close_what(h, rc, err);
}
