/* stealscope events: what the traces recorded around a moment, on the host's clock. */
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/progress_bar.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "index/index.h"

#define AROUND 1000000  /* ns */

/* The moment, and as much before as behind it. */
static int parse_window(struct window *w, const struct history *h, const char *at, const char *around, struct error *err)
{
	int64_t t, by = AROUND;
	if (!at)
		return error_set(err, STATUS_USAGE, "as --at 12:03:04.5, --at +3ms or --at 50%",
		                 "events around when? --at is missing");
	if (window_moment("--at", at, h, &t, err))
		return -1;
	if (around && (!time_parse_duration(around, &by) || by <= 0))
		return error_set(err, STATUS_USAGE, "as 5ms or 250us", "--around: not a duration: '%s'", around);
	t = t < history_begin(h) ? history_begin(h) : t;
	w->from = by > t - history_begin(h) ? history_begin(h) : t - by;
	w->to = by > history_end(h) - t ? history_end(h) : t + by;
	return 0;
}

static int print(struct scene *s, const struct subject *who, struct report_how how, struct error *err)
{
	struct snippet_options options = { .from = s->window.from, .to = s->window.to,
		.machine = who ? s->topo.machine[subject_machine(&s->topo, who)].name : NULL };
	struct progress_bar bar;
	options.progress = progress_bar_begin(&bar, NULL);
	struct snippet *m = snippet_open(s->h, &options, err);
	progress_bar_end(&bar);
	if (!m)
		return -1;
	scene_about(s, who, how);
	struct event_text ev;
	struct report *r = report_events(stdout, how, &s->origin);
	int got;
	while ((got = snippet_next(m, &ev, err)) > 0)
		report_event(r, &ev);
	int rc = report_end(r, got < 0 ? NULL : err);
	snippet_close(m);
	return got < 0 ? got : rc;
}

int cmd_events(int argc, char **argv, struct error *err)
{
	const char *at = NULL, *around = NULL;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		{ "at", 0, OPT_TEXT, "TIME", "around here: 12:03:04.5, +3ms, -3ms (from its end), 50%", &at, NULL },
		{ "around", 0, OPT_TEXT, "DURATION", "so long before, and after (default 1ms)", &around, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "events WHAT [VM[/CPUn|/TID]]",
		"What the traces recorded around a moment, on the host's clock.", opt, sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene s;
	struct subject who;
	const char *subject = argc - first > 1 ? argv[first + 1] : NULL;
	int rc = scene_open(&s, argv[first], &(struct window_options){ 0 }, err);
	if (rc == 0)
		rc = parse_window(&s.window, s.h, at, around, err);
	if (rc == 0 && subject)
		rc = who_parse(&s, subject, &who, err);
	if (rc == 0)
		rc = print(&s, subject ? &who : NULL, how, err);
	return scene_close(&s, rc, err);
}
