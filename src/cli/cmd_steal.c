/* stealscope steal: who took how much from whom. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

static const char *const by_names[] = { "machine", "thread", NULL };

static int print_matrix(struct scene *scene, const char *only, enum steal_by by, struct report_how how,
                        struct error *err)
{
	struct subject who;
	struct steal s;
	if (only && who_parse_victim(scene, only, &who, err))
		return -1;
	struct inquiry *q = steal_open(&scene->topo, &(struct steal_options){ .by = by, .only = only ? &who : NULL,
		.from = scene->window.from, .to = scene->window.to });
	int rc = scene_run(q, err);
	if (rc == 0)
		steal_take(q, &s);
	inquiry_close(q);
	if (rc)
		return -1;
	scene_about(scene, only ? &who : NULL, how);
	rc = report_steal(stdout, how, &scene->topo, &s, only ? &who : NULL, &scene->origin, err);
	if (rc == 0 && by == STEAL_BY_MACHINE)
		rc = scene_tell_served(scene, only ? &who : NULL, true, how, err);
	steal_release(&s);
	return rc;
}

int cmd_steal(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	int by = STEAL_BY_MACHINE;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "by", 0, OPT_CHOICE, "WHOM", "machine (default) or thread", &by, by_names },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "steal WHAT [VM[/CPUn|/TID]]", "Victims and thieves: who took how much from whom.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct scene s;
	const char *whose;
	if (scene_begin(&s, &opts, argc, argv, &when, &whose, err))
		return -1;
	return scene_close(&s, print_matrix(&s, whose, (enum steal_by)by, how, err), err);
}
