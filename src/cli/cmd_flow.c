/* stealscope flow: shows the execution flow of a thread or vCPU. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "report/report.h"

static int print_flow(struct query_context *s, const struct target *target, const struct flow_text *text,
                      struct report_how how, struct error *err)
{
	struct flow f;
	struct flow_options options = { .intervals = text->intervals ? SIZE_MAX : 0,
		.columns = flow_text_columns(text->width) };
	if (query_context_answer(flow_open(&s->catalog, target, s->window.from, s->window.to, &options, err), &f, err))
		return -1;
	query_context_about(s, target, how);
	int rc = report_flow(stdout, how, &s->catalog, target, &f, text, &s->origin, err);
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
		{ "threshold", 0, OPT_PERCENT, "PERCENT", "text: omit entries below this (default 0.1)",
		  &text.threshold, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "ordered intervals instead of sums", &text.intervals, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "flow RECORDING VM/TID|VM/CPUn", "Show the execution flow: which tasks ran while a thread "
	                                                       "or vCPU waited.",
	                           opt, sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct query_context s;
	struct target target;
	int rc = query_context_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = target_parse_row(&s, argv[first + 1], &target, err);
	if (rc == 0)
		rc = print_flow(&s, &target, &text, how, err);
	return query_context_close(&s, rc, err);
}
