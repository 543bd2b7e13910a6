/* stealscope flow: the execution flow of a thread or a vCPU. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "report/report.h"

static int print_flow(struct scene *scene, const struct subject *s, const struct flow_text *text,
                      struct report_how how, struct error *err)
{
	struct flow f;
	struct flow_options options = { .intervals = text->intervals ? SIZE_MAX : 0,
		.columns = flow_text_columns(text->width) };
	struct inquiry *q = flow_open(&scene->topo, s, scene->window.from, scene->window.to, &options, err);
	int rc = q ? scene_run(q, err) : -1;
	if (rc == 0)
		flow_take(q, &f);
	inquiry_close(q);
	if (rc)
		return -1;
	scene_about(scene, s, how);
	rc = report_flow(stdout, how, &scene->topo, s, &f, text, &scene->origin, err);
	flow_release(&f);
	return rc;
}

int cmd_flow(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct flow_text text = { .threshold = 0.001, .width = report_width(stdout) };
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "threshold", 0, OPT_PERCENT, "PERCENT", "text: leave out entries below this (default 0.1)",
		  &text.threshold, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "the ordered intervals, not only the sums", &text.intervals, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "flow WHAT VM/TID|VM/CPUn", "Who ran while a thread or vCPU could not: its execution flow.",
	                           opt, sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene scene;
	struct subject s;
	int rc = scene_open(&scene, argv[first], &when, err);
	if (rc == 0)
		rc = who_parse(&scene, argv[first + 1], &s, err);
	if (rc == 0 && s.kind == SUBJECT_MACHINE)
		rc = error_set(err, STATUS_USAGE, "name a thread, as Debian/3525, or a vCPU, as Debian/CPU0; stealscope gaps takes "
		               "machines", "%s: not a thread or CPU", argv[first + 1]);
	if (rc == 0)
		rc = print_flow(&scene, &s, &text, how, err);
	return scene_close(&scene, rc, err);
}
