/* stealscope intervals: the raw intervals of an attribute. */
#include <stdio.h>

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

static int print_intervals(const struct history *h, const char *path, const struct window *w,
                           enum report_format format, struct error *err)
{
	uint32_t attr = history_find(h, path);
	if (attr == HISTORY_NONE || history_type(h, attr) < 0)
		return error_set(err, STATUS_USAGE, "stealscope info lists machines; a path is /Host/CPUs/CPU0/Current Thread",
		                 "%s: %s: '%s'", history_file(h), attr == HISTORY_NONE ? "no such attribute" : "not an attribute but a folder of them", path);
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
