/* stealscope path: shows the critical path of a thread or vCPU in a window. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

static int print_path(struct query_context *s, const char *target_text, bool sums, unsigned top, struct report_how how,
                      struct error *err)
{
	struct target target;
	struct path path;
	if (target_parse_row(s, target_text, &target, err))
		return -1;
	if (target_is_pcpu(s, &target))
		return error_set(err, STATUS_USAGE, "use a thread, for example Debian/3525, or a vCPU, Debian/CPU0",
		                 "%s: not a thread or vCPU", target_text);
	if (query_context_answer(path_open(&s->catalog, &target, s->window.from, s->window.to, err), &path, err))
		return -1;
	s->window = (struct window){ path.start, path.end };
	query_context_about(s, &target, how);
	const int rc = report_path(stdout, how, &s->catalog, &path, sums, top, &s->origin, err);
	path_release(&path);
	return rc;
}

int cmd_path(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	unsigned top = 0;
	bool sums = false, intervals = false;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "sums", 0, OPT_FLAG, NULL, "sums instead of intervals (default for text)", &sums, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "ordered intervals (default for csv and json)", &intervals, NULL },
		{ "top", 0, OPT_COUNT, "N", "the N longest sums or intervals (all); 0 = all", &top, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "path RECORDING VM/TID|VM/CPUn",
	                           "Show the critical path through threads, vCPUs and machines.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	if (sums && intervals)
		return query_context_close(&s, error_set(err, STATUS_USAGE, "use one of them",
		                                         "--sums and --intervals exclude each other"), err);
	return query_context_close(&s, print_path(&s, target_text, sums || (how.format == FORMAT_TEXT && !intervals), top,
	                                          how, err), err);
}
