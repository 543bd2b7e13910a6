/* stealscope exits: lists VM exit reasons with counts and times until the next VM entry. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

static const char *const by_names[] = { "vcpu", "thread", NULL };

static int print_exits(struct query_context *s, const char *only, bool by_thread, bool histogram, struct report_how how,
                       struct error *err)
{
	struct target target;
	struct exit_list list;
	if (only && target_parse(s, only, &target, err))
		return -1;
	const struct exit_options options = { .only = only ? &target : NULL, .from = s->window.from, .to = s->window.to,
		.by_thread = by_thread || (only && target.kind == TARGET_THREAD) };
	if (query_context_answer(exits_open(&s->catalog, &options, err), &list, err))
		return -1;
	query_context_about(s, only ? &target : NULL, how);
	const int rc = report_exits(stdout, how, &s->catalog, &list, by_thread, histogram, &s->origin, err);
	exits_release(&list);
	return rc;
}

int cmd_exits(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	int by = 0;
	bool histogram = false;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "by", 0, OPT_CHOICE, "WHOM", "vcpu (default), or thread of the guest", &by, by_names },
		{ "histogram", 0, OPT_FLAG, NULL, "histogram of times, by powers of two", &histogram, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "exits RECORDING [VM[/CPUn|/TID]]", "List VM-exit reasons, counts and times.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct query_context s;
	const char *target_text;
	if (query_context_begin(&s, &opts, argc, argv, &when, &target_text, err))
		return -1;
	return query_context_close(&s, print_exits(&s, target_text, by == 1, histogram, how, err), err);
}
