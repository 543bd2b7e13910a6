/* stealscope waits: what idle vCPUs wait for. */
#include <stdio.h>

#include "base/text.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

/* Sleeps whose end nothing tells: it is said what would. */
static void doubt_unknown(struct scene *s, const struct wait_list *l, struct report_how how)
{
	struct notes notes = { 0 };
	uint64_t unknown = 0, all = 0;
	char which[64];
	for (size_t i = 0; i < l->rows; i++) {
		unknown += l->row[i].kind == WAIT_UNKNOWN ? l->row[i].count : 0;
		all += l->row[i].count;
	}
	if (all && unknown <= all / 2)
		return;
	if (!all)
		notes_add(&notes, NOTE_DOUBT, NULL, "no vCPU was seen asleep: that takes the host's events kvm_entry, kvm_exit, "
		          "sched_switch and sched_waking");
	else
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "what ended %s is unknown: that takes the host's events sched_waking, and those of "
		          "interrupts, softirqs and timers; where these were recorded, it was none of them, or events were lost",
		          text_of_all(which, unknown, all, "sleep"));
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

/* vCPUs of whose halts nothing is told: nothing is claimed of them, and it is said what would tell. */
static void doubt_silent(struct scene *s, const struct poll_list *l, struct report_how how)
{
	struct notes notes = { 0 };
	char d[TIME_TEXT], which[64];
	if (l->silent || !l->vcpus)
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "nothing tells how halts of %s were awaited: that takes the host's events kvm_vcpu_wakeup and "
		          "kvm_halt_poll_ns", text_of_all(which, l->silent, l->vcpus, "vCPU"));
	if (l->untold)
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "whether halts of %s were awaited is unknown for %s in all: no event kvm_halt_poll_ns had told yet for "
		          "how long", text_of_all(which, l->untold, l->vcpus, "vCPU"), time_duration(d, l->untold_ns));
	if (!notes.len)
		return;
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

static int print_polls(struct scene *s, const struct subject *who, struct report_how how, struct error *err)
{
	struct poll_list list;
	if (polls_of(&s->topo, who, s->window.from, s->window.to, &list, err))
		return -1;
	scene_about(s, who, how);
	doubt_silent(s, &list, how);
	int rc = report_polls(stdout, how, &s->topo, &list, &s->origin, err);
	polls_release(&list);
	return rc;
}

static int print_waits(struct scene *s, const char *only, bool polling, struct report_how how, struct error *err)
{
	struct subject who;
	struct wait_list list;
	if (only && who_parse_vcpus(s, only, &who, err))
		return -1;
	if (polling)
		return print_polls(s, only ? &who : NULL, how, err);
	if (waits_of(&s->topo, only ? &who : NULL, s->window.from, s->window.to, &list, err))
		return -1;
	scene_about(s, only ? &who : NULL, how);
	doubt_unknown(s, &list, how);
	int rc = report_waits(stdout, how, &s->topo, &list, &s->origin, err);
	waits_release(&list);
	return rc;
}

int cmd_waits(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	bool polling = false;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "polling", 0, OPT_FLAG, NULL, "how halts were awaited running, and what that cost", &polling, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "waits WHAT [VM[/CPUn]]", "What idle vCPUs wait for, and who wakes them.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	struct scene s;
	const char *whose;
	if (scene_begin(&s, &opts, argc, argv, &when, &whose, err))
		return -1;
	return scene_close(&s, print_waits(&s, whose, polling, how, err), err);
}
