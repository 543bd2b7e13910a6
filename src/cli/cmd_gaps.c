/* stealscope gaps: when somebody wanted to run and could not, and who was in the way. */
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/gaps_inside.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

static const struct column periodic_columns[] = {
	{ "system", "machine", COL_TEXT },    { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },         { "cpu", "vCPU", COL_INT },
	{ "period_ns", "period", COL_DURATION }, { "regular", "regular", COL_SHARE },
	{ "wakeups", "wakeups", COL_INT },    { "switches", "switches", COL_INT },
	{ "cost_ns", "cost", COL_DURATION },
};

static int print_periodic(struct scene *s, struct report_how how, struct error *err)
{
	struct periodic_list list;
	if (gap_periodic(&s->topo, s->window.from, s->window.to, &list, err))
		return -1;
	static const struct report_shape shape = REPORT_SHAPE_SPARING("gaps-periodic", periodic_columns, "switches wakeups");
	scene_about(s, NULL, how);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	for (size_t i = 0; i < list.items; i++) {
		const struct periodic *p = &list.item[i];
		report_row(r, (struct value[]){
			value_system(&s->topo, p->system), value_tid(p->tid), VAL_TEXT(list.name[p->name]),
			VAL_INT(s->topo.cpu[p->vcpu].number), VAL_INT(p->period), VAL_REAL(p->regular),
			VAL_INT((int64_t)p->wakeups), VAL_INT((int64_t)p->switches), VAL_INT(p->cost) });
	}
	int rc = report_end(r, err);
	periodic_release(&list);
	return rc;
}

/* Whose locks no event names. */
static void note_unnamed(const struct topo *topo, const struct subject *who, struct origin *origin,
                         struct report_how how)
{
	struct notes notes = { 0 };
	for (uint32_t i = 0; i < topo->machines; i++) {
		const struct topo_machine *m = &topo->machine[i];
		if (m->kind == MACHINE_VM && (!who || subject_machine(topo, who) == i) && !locks_are_named(topo, i))
			notes_add(&notes, NOTE_DOUBT, m->name, "no event names a lock there: record lock:contention_begin and "
			          "lock:contention_end (Linux 5.19), or the futex system calls");
	}
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(origin, &notes);
}

static int print_locks(struct scene *s, const char *subject, size_t top, struct report_how how, struct error *err)
{
	struct subject who;
	struct lock_list l;
	if (subject && who_parse_victim(s, subject, &who, err))
		return -1;
	struct inquiry *q = locks_open(&s->topo, subject ? &who : NULL, s->window.from, s->window.to);
	int rc = scene_run(q, err);
	if (rc == 0)
		locks_take(q, &l);
	inquiry_close(q);
	if (rc)
		return -1;
	scene_about(s, subject ? &who : NULL, how);
	note_unnamed(&s->topo, subject ? &who : NULL, &s->origin, how);
	scene_left_out(s, top ? top : l.waits, l.waits, "lock waits, the longest,", how);
	rc = report_locks(stdout, how, &s->topo, &l, top, &s->origin, err);
	locks_release(&l);
	return rc;
}

enum gaps_view { ONE_BY_ONE, ALL_CULPRITS, LENGTHS, HISTOGRAM };

/* Gaps of one subject, or of every VM when none is named: the machines that can lose time without seeing it. */
static int list_gaps(struct scene *s, const char *subject, const struct gap_options *options,
                     struct report_how how, enum gaps_view view, struct error *err)
{
	struct subject who;
	struct gap_list list;
	if (subject && who_parse_victim(s, subject, &who, err))
		return -1;
	struct inquiry *q = gap_list_open(&s->topo, subject ? &who : NULL, options);
	int rc = scene_run(q, err);
	if (rc == 0)
		gap_list_take(q, &list);
	inquiry_close(q);
	if (rc)
		return -1;
	const struct subject *whose = subject ? &who : NULL;
	scene_about(s, whose, how);
	if (view == LENGTHS)
		rc = report_gap_lengths(stdout, how, &s->topo, &list, whose, &s->origin, err);
	else if (view == HISTOGRAM)
		rc = report_gap_histogram(stdout, how, &s->topo, &list, whose, &s->origin, err);
	else {
		scene_left_out(s, list.items, list.all.count, "gaps, the longest,", how);
		rc = report_gaps(stdout, how, &s->topo, &list, whose, view == ALL_CULPRITS, &s->origin, err);
		rc = rc == 0 ? scene_tell_served(s, whose, list.all.count == 0, how, err) : rc;
	}
	gap_list_release(&list);
	return rc;
}

int cmd_gaps(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	const char *min = NULL;
	unsigned top = 20;
	bool every = false, lengths = false, histogram = false, periodic = false, locks = false, inside = false;
	const char *kallsyms = NULL;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "min", 0, OPT_TEXT, "DURATION", "leave out shorter gaps", &min, NULL },
		{ "top", 0, OPT_COUNT, "N", "the N longest (default 20; 0 = all)", &top, NULL },
		{ "all-culprits", 0, OPT_FLAG, NULL, "a row for every culprit, not only the first", &every, NULL },
		{ "lengths", 0, OPT_FLAG, NULL, "instead: p50, p90, p99 of each vCPU or thread", &lengths, NULL },
		{ "histogram", 0, OPT_FLAG, NULL, "instead: how many of which length, by powers of two", &histogram, NULL },
		{ "periodic", 0, OPT_FLAG, NULL, "instead: timers that wake idle guests, and what they cost", &periodic, NULL },
		{ "locks", 0, OPT_FLAG, NULL, "instead: waits for locks, and who delayed the holder", &locks, NULL },
		{ "inside", 0, OPT_FLAG, NULL, "instead: where in its guest's code a vCPU was preempted", &inside, NULL },
		{ "kallsyms", 0, OPT_TEXT, "FILE", "--inside: the guest's /proc/kallsyms, for names", &kallsyms, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "gaps WHAT [VM[/CPUn|/TID]]", "When it wanted to run and could not, longest first.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct gap_options options = { .top = top };
	if (min && (!time_parse_duration(min, &options.min) || options.min < 0))
		return error_set(err, STATUS_USAGE, "as 3ms or 250us", "--min: not a duration: '%s'", min);
	if (every + lengths + histogram + periodic + locks + inside > 1)
		return error_set(err, STATUS_USAGE, "ask for one at a time",
		                 "--all-culprits, --lengths, --histogram, --periodic, --locks, --inside: each is another answer");
	if (periodic && argc - first > 1)
		return error_set(err, STATUS_USAGE, "leave out who it is about", "--periodic: is of all machines together");
	if (kallsyms && !inside)
		return error_set(err, STATUS_USAGE, "add --inside", "--kallsyms: names nothing else");
	enum gaps_view view = histogram ? HISTOGRAM : lengths ? LENGTHS : every ? ALL_CULPRITS : ONE_BY_ONE;
	if (view == HISTOGRAM || view == LENGTHS)
		options.top = 1;  /* no culprits are needed */
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0) {
		options.from = s.window.from;
		options.to = s.window.to;
		const char *subject = argc - first > 1 ? argv[first + 1] : NULL;
		rc = periodic ? print_periodic(&s, how, err)
		   : inside   ? gaps_inside(&s, subject, kallsyms, top, how, err)
		   : locks    ? print_locks(&s, subject, top, how, err)
		              : list_gaps(&s, subject, &options, how, view, err);
	}
	return scene_close(&s, rc, err);
}
