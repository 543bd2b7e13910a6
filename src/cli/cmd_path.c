/* stealscope path: the critical path of a thread or vCPU in a window. */
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

/* How much of the path belongs to a machine of which no thread is known. */
static int64_t inside_of(const struct topo *topo, const struct path *p, uint32_t machine)
{
	int64_t ns = 0;
	if (topo->machine[machine].kind != MACHINE_VM || topo->machine[machine].threads)
		return 0;
	for (size_t i = 0; i < p->sums; i++)
		if (p->sum[i].who.system == (int32_t)machine && p->sum[i].who.kind != FLOW_UNKNOWN)
			ns += p->sum[i].duration;
	return ns;
}

/* What ends in nobody is no small print. */
static void doubt_unknown(struct scene *s, const struct path *p, struct report_how how)
{
	struct notes notes = { 0 };
	char part[TIME_TEXT], all[TIME_TEXT];
	time_duration(all, p->end - p->start + 1);
	if (p->unknown)
		notes_add(&notes, NOTE_DOUBT, NULL, "%s of %s are unknown: no event tells who ended these waits",
		          time_duration(part, p->unknown), all);
	for (uint32_t m = 0; m < s->topo.machines; m++) {
		const int64_t inside = inside_of(&s->topo, p, m);
		if (inside)
			notes_add(&notes, NOTE_DOUBT, NULL, "%s of %s are inside %s: it was not traced, and no thread of it is named",
			          time_duration(part, inside), all, s->topo.machine[m].name);
	}
	if (!notes.len)
		return;
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

static int print_path(struct scene *s, const char *whose, bool sums, struct report_how how, struct error *err)
{
	struct subject who;
	struct path path;
	if (who_parse(s, whose, &who, err))
		return -1;
	if (who.kind == SUBJECT_MACHINE || who_is_pcpu(s, &who))
		return error_set(err, STATUS_USAGE, "name a thread, as Debian/3525, or a vCPU, as Debian/CPU0",
		                 "%s: not a thread or vCPU", whose);
	struct inquiry *q = path_open(&s->topo, &who, s->window.from, s->window.to, err);
	int rc = q ? scene_run(q, err) : -1;
	if (rc == 0)
		path_take(q, &path);
	inquiry_close(q);
	if (rc)
		return -1;
	s->window = (struct window){ path.start, path.end };
	scene_about(s, &who, how);
	doubt_unknown(s, &path, how);
	rc = report_path(stdout, how, &s->topo, &path, sums, &s->origin, err);
	path_release(&path);
	return rc;
}

int cmd_path(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct report_how how = REPORT_HOW;
	bool sums = false, intervals = false;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "sums", 0, OPT_FLAG, NULL, "what the intervals add up to (default of text)", &sums, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "the ordered intervals (default of csv and json)", &intervals, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "path WHAT VM/TID|VM/CPUn",
	                           "Why it was late: the critical path through threads, vCPUs and machines.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	struct scene s;
	const char *whose;
	if (scene_begin(&s, &opts, argc, argv, &when, &whose, err))
		return -1;
	if (sums && intervals)
		return scene_close(&s, error_set(err, STATUS_USAGE, "ask for one at a time", "--sums, --intervals: each is another "
		                                 "answer"), err);
	return scene_close(&s, print_path(&s, whose, sums || (how.format == FORMAT_TEXT && !intervals), how, err), err);
}
