/* stealscope exits: why vCPUs were left, how often, and how long until they were entered again. */
#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

static const char *const by_names[] = { "vcpu", "thread", NULL };

/* vCPUs without an exit: nothing is claimed of them, and it is said what would tell. */
static void doubt_silent(struct scene *s, const struct exit_list *l, struct report_how how)
{
	struct notes notes = { 0 };
	char which[64];
	if (l->vcpus && !l->silent)
		return;
	notes_add(&notes, NOTE_DOUBT, NULL,
	          "no exits of %s are known: that takes the host's events kvm_entry and kvm_exit (LTTng: kvm_x86_entry, "
	          "kvm_x86_exit)", text_of_all(which, l->silent, l->vcpus, "vCPU"));
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

static int print_exits(struct scene *s, const char *only, bool by_thread, bool histogram, struct report_how how,
                       struct error *err)
{
	struct subject who;
	struct exit_list list;
	if (only && who_parse(s, only, &who, err))
		return -1;
	struct inquiry *q = exits_open(&s->topo, &(struct exit_options){ .only = only ? &who : NULL, .from = s->window.from,
		.to = s->window.to, .by_thread = by_thread || (only && who.kind == SUBJECT_THREAD) }, err);
	int rc = q ? scene_run(q, err) : -1;
	if (rc == 0)
		exits_take(q, &list);
	inquiry_close(q);
	if (rc)
		return -1;
	scene_about(s, only ? &who : NULL, how);
	doubt_silent(s, &list, how);
	rc = report_exits(stdout, how, &s->topo, &list, by_thread, histogram, &s->origin, err);
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
		{ "histogram", 0, OPT_FLAG, NULL, "how many took how long, by powers of two", &histogram, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "exits WHAT [VM[/CPUn|/TID]]", "Why vCPUs were left, how often, and for how long.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct scene s;
	const char *whose;
	if (scene_begin(&s, &opts, argc, argv, &when, &whose, err))
		return -1;
	return scene_close(&s, print_exits(&s, whose, by == 1, histogram, how, err), err);
}
