/* stealscope events: recorded events around a time, on the host's clock. */
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/progress_bar.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "index/index.h"

#define DEFAULT_AROUND 1000000  /* half width of the window, ns */

/* Computes the window `around` a time, clipped to the history. */
static int parse_window(struct window *w, const struct history *h, const char *at, const char *around, struct error *err)
{
	int64_t t, by = DEFAULT_AROUND;
	if (!at)
		return error_set(err, STATUS_USAGE, "for example --at 12:03:04.5, --at +3ms or --at 50%",
		                 "events: the option --at TIME is missing");
	if (window_parse_time("--at", at, h, &t, err))
		return -1;
	if (around && (!time_parse_duration(around, &by) || by <= 0))
		return error_set(err, STATUS_USAGE, "for example 5ms or 250us", "--around: not a duration: '%s'", around);
	t = t < history_begin(h) ? history_begin(h) : t;
	w->from = by > t - history_begin(h) ? history_begin(h) : t - by;
	w->to = by > history_end(h) - t ? history_end(h) : t + by;
	return 0;
}

static int print_events(struct query_context *s, const struct target *target, struct report_how how, struct error *err)
{
	struct raw_events_options options = { .from = s->window.from, .to = s->window.to,
		.machine = target ? s->catalog.machine[target_machine(&s->catalog, target)].name : NULL };
	struct progress_bar bar;
	options.progress = progress_bar_begin(&bar, NULL);
	struct raw_events *m = raw_events_open(s->h, &options, err);
	progress_bar_end(&bar);
	if (!m)
		return -1;
	query_context_about(s, target, how);
	struct event_text ev;
	struct report *r = report_events(stdout, how, &s->origin);
	int got;
	while ((got = raw_events_next(m, &ev, err)) > 0)
		report_event(r, &ev);
	int rc = report_end(r, got < 0 ? NULL : err);
	raw_events_close(m);
	return got < 0 ? got : rc;
}

int cmd_events(int argc, char **argv, struct error *err)
{
	const char *at = NULL, *around = NULL;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		{ "at", 0, OPT_TEXT, "TIME", "time: 12:03:04.5, +3ms, -3ms (before the end), 50%", &at, NULL },
		{ "around", 0, OPT_TEXT, "DURATION", "time before and after (default 1ms)", &around, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "events RECORDING [VM[/CPUn|/TID]]",
		"List recorded events around a time, on the host's clock.", opt, sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct query_context s;
	struct target target;
	const char *target_text = argc - first > 1 ? argv[first + 1] : NULL;
	int rc = query_context_open(&s, argv[first], &(struct window_options){ 0 }, err);
	if (rc == 0)
		rc = parse_window(&s.window, s.h, at, around, err);
	if (rc == 0 && target_text)
		rc = target_parse(&s, target_text, &target, err);
	if (rc == 0)
		rc = print_events(&s, target_text ? &target : NULL, how, err);
	return query_context_close(&s, rc, err);
}
