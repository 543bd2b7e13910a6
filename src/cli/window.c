#include "cli/window.h"

#include "base/base.h"
#include "report/report.h"

/* Parses MACHINE@TIME. Returns 1, 0 if the text does not have this form or no machine has the name, -1 on error. */
static int parse_guest_time(const char *text, const struct history *h, int64_t *t, struct error *err)
{
	struct catalog catalog = { 0 };
	if (!strchr(text, '@'))
		return 0;
	const int rc = catalog_open(&catalog, h, err) ? -1 : guest_time_parse(&catalog, text, t, err);
	catalog_release(&catalog);
	return rc;
}

int64_t window_time_precision(const char *text)
{
	const char *at = strchr(text, '@');
	return time_precision(at ? at + 1 : text);
}

static int parse_time_option(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err)
{
	if (!text || time_parse(text, history_begin(h), history_end(h), t))
		return 0;
	const int guest = parse_guest_time(text, h, t, err);
	if (guest < 0)
		error_wrap(err, "%s", option);
	if (guest)
		return guest < 0 ? -1 : 0;
	char remedy[160] = "use 12:03:04.5, VM@12:03:04.5, +3ms, -3ms (before the end), 50% or ns since 1970";
	if (time_is_plain_number(text))
		snprintf(remedy, sizeof remedy, "a number without a unit is ns since 1970: use %.20ss, %.20s%% or 12:03:04.5", text,
		         text);
	return error_set(err, STATUS_USAGE, remedy, "%s: not a time: '%s'", option, text);
}

static int refuse_time(const char *option, const char *text, const char *why, const struct history *h, struct error *err)
{
	char begin[TIME_TEXT], end[TIME_TEXT], remedy[3 * TIME_TEXT];
	snprintf(remedy, sizeof remedy, "the history is from %s to %s", time_date(begin, history_begin(h), 3),
	         time_date(end, history_end(h), 3));
	return error_set(err, STATUS_USAGE, remedy, "%s %s: the history %s", option, text, why);
}

int window_parse_time(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err)
{
	if (parse_time_option(option, text, h, t, err))
		return -1;
	if (*t > history_end(h))
		return refuse_time(option, text, "ends before that", h, err);
	if (*t + window_time_precision(text) <= history_begin(h))
		return refuse_time(option, text, "begins after that", h, err);
	return 0;
}

int window_parse(struct window *w, const struct window_options *o, const struct history *h, struct error *err)
{
	const char *from = o->named ? o->named : "--from", *to = o->named ? o->named : "--to";
	*w = (struct window){ history_begin(h), history_end(h) };
	if (parse_time_option(from, o->from, h, &w->from, err) || parse_time_option(to, o->to, h, &w->to, err))
		return -1;
	if (w->from > history_end(h))
		return refuse_time(from, o->from, "ends before that", h, err);
	if (w->to < history_begin(h))
		return refuse_time(to, o->to, "begins after that", h, err);
	if (w->from > w->to)
		return o->named ? error_set(err, STATUS_USAGE, "the end of the window is before its start",
		                            "%s: the window is empty", o->named)
		                : error_set(err, STATUS_USAGE, "use a --from before --to", "the window is empty");
	return 0;
}
