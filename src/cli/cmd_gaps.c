/* stealscope gaps: lists intervals in which a vCPU or thread was runnable and did not run, with their culprits. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/gaps_inside.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"

#define TOP 20          /* default of --top, gaps */
#define LINES_AFTER 9   /* heading, and what follows the table on a terminal of 80 columns */

static const struct column periodic_columns[] = {
	{ "machine", "machine", COL_TEXT },    { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },         { "cpu", "vCPU", COL_INT },
	{ "period_ns", "period", COL_DURATION }, { "regular", "regular", COL_SHARE },
	{ "wakeups", "wakeups", COL_INT },    { "switches", "switches", COL_INT },
	{ "cost_ns", "cost", COL_DURATION },
};

static int print_periodic(struct query_context *s, struct report_how how, struct error *err)
{
	struct periodic_list list;
	if (periodic_timers_of(&s->catalog, s->window.from, s->window.to, &list, err))
		return -1;
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("gaps-periodic", periodic_columns, "switches wakeups");
	query_context_about(s, NULL, how);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	for (size_t i = 0; i < list.items; i++) {
		const struct periodic *p = &list.item[i];
		report_row(r, (struct value[]){
			value_machine(&s->catalog, p->machine), value_tid(p->tid), VAL_TEXT(list.name[p->name]),
			VAL_INT(s->catalog.cpu[p->vcpu].number), VAL_INT(p->period), VAL_REAL(p->regular),
			VAL_INT((int64_t)p->wakeups), VAL_INT((int64_t)p->switches), VAL_INT(p->cost) });
	}
	int rc = report_end(r, err);
	periodic_release(&list);
	return rc;
}

static int print_locks(struct query_context *s, const char *target_text, size_t top, struct report_how how,
                       struct error *err)
{
	struct target target;
	struct lock_list l;
	if (target_text && target_parse_victim(s, target_text, &target, err))
		return -1;
	if (query_context_answer(locks_open(&s->catalog, target_text ? &target : NULL, s->window.from, s->window.to), &l, err))
		return -1;
	query_context_about(s, target_text ? &target : NULL, how);
	const int rc = report_locks(stdout, how, &s->catalog, &l, target_text ? &target : NULL, top, &s->origin, err);
	const struct lock_wait *w = l.waits ? &l.wait[0] : NULL;
	const int thread = w ? catalog_find_thread(&s->catalog, (uint32_t)w->waiter.machine, w->waiter.tid) : -1;
	const struct target waiter = thread >= 0 ? (struct target){ TARGET_THREAD, (uint32_t)thread }
	                                         : (struct target){ TARGET_CPU, w ? (uint32_t)w->vcpu : 0 };
	if (rc == 0 && how.format == FORMAT_TEXT && (thread >= 0 || (w && w->vcpu >= 0)))
		query_context_print_place(s, &waiter, w->start, w->end);
	locks_release(&l);
	return rc;
}

enum gaps_view { ONE_BY_ONE, ALL_CULPRITS, LENGTHS, HISTOGRAM };

/* Keeps so many of the longest gaps that their culprits fit into the rows, at least one gap. */
static void fit_culprits(struct gap_list *list, size_t rows)
{
	size_t used = 0, i = 0;
	for (; i < list->items; i++) {
		const size_t culprits = list->item[i].culprits;
		used += culprits ? culprits : 1;
		if (used > rows && i > 0)
			break;
	}
	list->items = i;
}

/* Lists the gaps of a target (NULL: of every VM). */
static int list_gaps(struct query_context *s, const char *target_text, struct gap_options options, unsigned top,
                     struct report_how how, enum gaps_view view, struct error *err)
{
	struct target target;
	struct gap_list list;
	if (target_text && target_parse_victim(s, target_text, &target, err))
		return -1;
	query_context_about(s, target_text ? &target : NULL, how);
	if (view == ONE_BY_ONE || view == ALL_CULPRITS)
		options.top = query_context_fit_rows(s, top, TOP, LINES_AFTER, how);
	const struct target *selected = target_text ? &target : NULL;
	if (query_context_answer(gap_list_open(&s->catalog, selected, &options), &list, err))
		return -1;
	int rc;
	if (view == LENGTHS)
		rc = report_gap_lengths(stdout, how, &s->catalog, &list, selected, &s->origin, err);
	else if (view == HISTOGRAM)
		rc = report_gap_histogram(stdout, how, &s->catalog, &list, selected, &s->origin, err);
	else {
		if (view == ALL_CULPRITS && top == TOP_FIT && how.format == FORMAT_TEXT && report_height(stdout))
			fit_culprits(&list, options.top);
		rc = report_gaps(stdout, how, &s->catalog, &list, selected, view == ALL_CULPRITS, &s->origin, err);
		if (rc == 0 && view == ONE_BY_ONE && how.format == FORMAT_TEXT && list.items)
			query_context_print_place(s, &list.item[0].gap.target, list.item[0].gap.start, list.item[0].gap.end);
	}
	gap_list_release(&list);
	return rc;
}

int cmd_gaps(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	const char *min = NULL;
	unsigned top = TOP_FIT;
	bool all_culprits = false, lengths = false, histogram = false, periodic = false, locks = false, inside = false;
	const char *kallsyms = NULL;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "min", 0, OPT_TEXT, "DURATION", "omit shorter gaps", &min, NULL },
		{ "top", 0, OPT_COUNT, "N", "the N longest (20, or as many as fit); 0 = all", &top, NULL },
		{ "all-culprits", 0, OPT_FLAG, NULL, "a row for every culprit, not only the top one", &all_culprits, NULL },
		{ "lengths", 0, OPT_FLAG, NULL, "print length percentiles per vCPU or thread instead", &lengths, NULL },
		{ "histogram", 0, OPT_FLAG, NULL, "print a histogram of gap lengths instead", &histogram, NULL },
		{ "periodic", 0, OPT_FLAG, NULL, "print timers that wake idle guests, and their cost", &periodic, NULL },
		{ "locks", 0, OPT_FLAG, NULL, "print waits for locks, and what delayed the holder", &locks, NULL },
		{ "inside", 0, OPT_FLAG, NULL, "print the guest code where vCPUs were preempted", &inside, NULL },
		{ "kallsyms", 0, OPT_TEXT, "FILE", "--inside: the guest's /proc/kallsyms, for symbols", &kallsyms, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "gaps RECORDING [VM[/CPUn|/TID]]", "List the times a runnable vCPU or thread had no "
		"CPU, longest first.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct gap_options options = { 0 };
	if (min && (!time_parse_duration(min, &options.min) || options.min < 0))
		return error_set(err, STATUS_USAGE, "for example 3ms or 250us", "--min: not a duration: '%s'", min);
	if (all_culprits + lengths + histogram + periodic + locks + inside > 1)
		return error_set(err, STATUS_USAGE, "use one of these options",
		                 "--all-culprits, --lengths, --histogram, --periodic, --locks and --inside exclude each other");
	if (periodic && argc - first > 1)
		return error_set(err, STATUS_USAGE, "remove the target",
		                 "--periodic reports on all machines and accepts no target");
	if (kallsyms && !inside)
		return error_set(err, STATUS_USAGE, "add --inside", "--kallsyms requires --inside");
	enum gaps_view view = histogram ? HISTOGRAM : lengths ? LENGTHS : all_culprits ? ALL_CULPRITS : ONE_BY_ONE;
	options.top = view == HISTOGRAM || view == LENGTHS ? 1 : top == TOP_FIT ? TOP : top;  /* 1: no culprits are needed */
	struct query_context s;
	int rc = query_context_open(&s, argv[first], &when, err);
	if (rc == 0) {
		options.from = s.window.from;
		options.to = s.window.to;
		const char *target_text = argc - first > 1 ? argv[first + 1] : NULL;
		rc = periodic ? print_periodic(&s, how, err)
		   : inside   ? gaps_inside(&s, target_text, kallsyms, (unsigned)options.top, how, err)
		   : locks    ? print_locks(&s, target_text, options.top, how, err)
		              : list_gaps(&s, target_text, options, top, how, view, err);
	}
	return query_context_close(&s, rc, err);
}
