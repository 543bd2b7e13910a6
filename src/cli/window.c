#include "cli/window.h"

#include "base/timefmt.h"

static int parse(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err)
{
	if (!text || time_parse(text, history_begin(h), history_end(h), t))
		return 0;
	return error_set(err, STATUS_USAGE, "give ns, 12:03:04.5, +3ms or 50%", "%s: not a time: '%s'", option, text);
}

int window_parse(struct window *w, const struct window_options *o, const struct history *h, struct error *err)
{
	*w = (struct window){ history_begin(h), history_end(h) };
	if (parse("--from", o->from, h, &w->from, err) || parse("--to", o->to, h, &w->to, err))
		return -1;
	if (w->from > w->to)
		return error_set(err, STATUS_USAGE, "give --from before --to", "the window is empty");
	if (w->to < history_begin(h) || w->from > history_end(h))
		return error_set(err, STATUS_USAGE, "stealscope info prints its span", "%s: the window lies outside the history",
		                 history_file(h));
	return 0;
}
