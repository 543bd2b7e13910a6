#include "cli/window.h"

#include <stdio.h>

#include "base/timefmt.h"

static int parse(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err)
{
	if (!text || time_parse(text, history_begin(h), history_end(h), t))
		return 0;
	char mend[160] = "give 12:03:04.5, +3ms, -3ms (before its end), 50% or ns since 1970";
	if (time_is_bare(text))
		snprintf(mend, sizeof mend, "a number alone is ns since 1970: give %.20ss, %.20s%% or 12:03:04.5", text, text);
	return error_set(err, STATUS_USAGE, mend, "%s: not a time: '%s'", option, text);
}

static int refuse(const char *option, const char *text, const char *why, const struct history *h, struct error *err)
{
	char begin[TIME_TEXT], end[TIME_TEXT], mend[3 * TIME_TEXT];
	snprintf(mend, sizeof mend, "it is from %s to %s", time_date(begin, history_begin(h), 3),
	         time_date(end, history_end(h), 3));
	return error_set(err, STATUS_USAGE, mend, "%s %s: the history %s", option, text, why);
}

int window_moment(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err)
{
	if (parse(option, text, h, t, err))
		return -1;
	if (*t > history_end(h))
		return refuse(option, text, "ends before that", h, err);
	return *t + time_precision(text) <= history_begin(h) ? refuse(option, text, "begins after that", h, err) : 0;
}

int window_parse(struct window *w, const struct window_options *o, const struct history *h, struct error *err)
{
	const char *from = o->named ? o->named : "--from", *to = o->named ? o->named : "--to";
	*w = (struct window){ history_begin(h), history_end(h) };
	if (parse(from, o->from, h, &w->from, err) || parse(to, o->to, h, &w->to, err))
		return -1;
	if (w->from > history_end(h))
		return refuse(from, o->from, "ends before that", h, err);
	if (w->to < history_begin(h))
		return refuse(to, o->to, "begins after that", h, err);
	if (w->from > w->to)
		return o->named ? error_set(err, STATUS_USAGE, "its end is before its begin", "%s: the window is empty", o->named)
		                : error_set(err, STATUS_USAGE, "give --from before --to", "the window is empty");
	return 0;
}
