/* stealscope gaps: when somebody wanted to run and could not, and who was in the way. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/scene.h"
#include "cli/who.h"

static const struct column gap_columns[] = {
	{ "start", "at", COL_CLOCK },         { "end", NULL, COL_INT },
	{ "duration_ns", "length", COL_DURATION }, { "subject", "who", COL_TEXT },
	{ "state", "state", COL_TEXT },       { "culprit_system", "culprit", COL_TEXT },
	{ "culprit_tid", "TID", COL_INT },    { "culprit_name", "name", COL_TEXT },
	{ "culprit_ns", "part", COL_DURATION },
};

#define COLUMN_WHO 3

static const struct column periodic_columns[] = {
	{ "system", "machine", COL_TEXT },    { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },         { "cpu", "vCPU", COL_INT },
	{ "period_ns", "period", COL_DURATION }, { "regular", "regular", COL_SHARE },
	{ "wakeups", "wakeups", COL_INT },    { "switches", "switches", COL_INT },
	{ "cost_ns", "cost", COL_DURATION },
};

static const char *state_of(const struct topo *topo, const struct gap *g)
{
	uint32_t attr = g->subject.kind == SUBJECT_CPU ? topo->cpu[g->subject.index].status
	                                               : topo->thread[g->subject.index].status;
	return history_state_name(topo->h, attr, (unsigned)g->state);
}

/* For people, who would else read that a thread kept itself from running. */
static const char *culprit_name(const struct gap_list *list, const struct flow_entry *culprit, enum report_format format)
{
	return format == FORMAT_TEXT && culprit->who.kind == FLOW_HYPERVISOR ? "(hypervisor)" : list->name[culprit->who.name];
}

static void gap_row(struct report *r, const struct topo *topo, const struct gap_list *list, const struct gap_item *item,
                    const struct flow_entry *culprit, enum report_format format)
{
	char subject[160];
	const struct gap *g = &item->gap;
	topo_subject_text(topo, &g->subject, subject, sizeof subject);
	report_row(r, (struct value[]){
		VAL_INT(g->start), VAL_INT(g->end), VAL_INT(g->end - g->start + 1), VAL_SHOWN(subject), VAL_TEXT(state_of(topo, g)),
		culprit ? value_system(topo, culprit->who.system) : VAL_NONE, culprit ? value_tid(culprit->who.tid) : VAL_NONE,
		culprit ? VAL_TEXT(culprit_name(list, culprit, format)) : VAL_NONE,
		culprit ? VAL_INT(culprit->duration) : VAL_NONE });
}

/* `who`: the subject that was asked for, or NULL.  If it is one row's, the text tells it once, below. */
static void print_gaps(struct scene *s, const struct gap_list *list, const struct subject *who,
                       enum report_format format, bool every)
{
	char name[160] = "";
	const struct topo *topo = &s->topo;
	struct column column[sizeof gap_columns / sizeof *gap_columns];
	const struct report_shape shape = REPORT_SHAPE("gaps", column);
	memcpy(column, gap_columns, sizeof column);
	if (who && who->kind != SUBJECT_MACHINE)
		column[COLUMN_WHO].heading = NULL;
	scene_about(s, who, format);
	struct report *r = report_begin(stdout, format, &shape, &s->origin);
	for (size_t i = 0; i < list->items; i++) {
		const struct gap_item *item = &list->item[i];
		const struct flow_entry *culprit = list->culprit + item->culprit;
		gap_row(r, topo, list, item, item->culprits ? culprit : NULL, format);
		for (size_t k = 1; every && k < item->culprits; k++)
			gap_row(r, topo, list, item, culprit + k, format);
	}
	report_end(r);
	if (format != FORMAT_TEXT || list->count == 0)
		return;
	char total[TIME_TEXT], p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT];
	printf("\n%" PRIu64 " gaps%s%s, %s in all\nlength: p50 %s, p90 %s, p99 %s, longest %s\n", list->count,
	       who ? " of " : "", who ? topo_subject_text(topo, who, name, sizeof name) : "",
	       time_duration(total, list->total), time_duration(p50, list->p50), time_duration(p90, list->p90),
	       time_duration(p99, list->p99), time_duration(longest, list->longest));
	if (list->count > list->items)
		printf("shown: the %zu longest (--top)\n", list->items);
}

static int print_periodic(struct scene *s, enum report_format format, struct error *err)
{
	struct periodic_list list;
	if (gap_periodic(&s->topo, s->window.from, s->window.to, &list, err))
		return -1;
	static const struct report_shape shape = REPORT_SHAPE("gaps-periodic", periodic_columns);
	scene_about(s, NULL, format);
	struct report *r = report_begin(stdout, format, &shape, &s->origin);
	for (size_t i = 0; i < list.items; i++) {
		const struct periodic *p = &list.item[i];
		report_row(r, (struct value[]){
			value_system(&s->topo, p->system), value_tid(p->tid), VAL_TEXT(list.name[p->name]),
			VAL_INT(s->topo.cpu[p->vcpu].number), VAL_INT(p->period), VAL_REAL(p->regular),
			VAL_INT((int64_t)p->wakeups), VAL_INT((int64_t)p->switches), VAL_INT(p->cost) });
	}
	report_end(r);
	periodic_release(&list);
	return 0;
}

/* Gaps of one subject, or of every VM when none is named: the machines that can lose time without seeing it. */
static int list_gaps(struct scene *s, const char *subject, const struct gap_options *options,
                     enum report_format format, bool every, struct error *err)
{
	struct subject who;
	struct gap_list list;
	if (subject && who_parse(s, subject, &who, err))
		return -1;
	struct inquiry *q = gap_list_open(&s->topo, subject ? &who : NULL, options);
	int rc = scene_run(q, err);
	if (rc == 0)
		gap_list_take(q, &list);
	inquiry_close(q);
	if (rc)
		return -1;
	print_gaps(s, &list, subject ? &who : NULL, format, every);
	gap_list_release(&list);
	return 0;
}

int cmd_gaps(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	const char *min = NULL;
	unsigned top = 20;
	bool every = false, periodic = false;
	int format = FORMAT_TEXT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "min", 0, OPT_TEXT, "DURATION", "leave out shorter gaps", &min, NULL },
		{ "top", 0, OPT_COUNT, "N", "the N longest (default 20; 0 = all)", &top, NULL },
		{ "all-culprits", 0, OPT_FLAG, NULL, "a row for every culprit, not only the first", &every, NULL },
		{ "periodic", 0, OPT_FLAG, NULL, "instead: timers that wake idle guests, and what they cost", &periodic, NULL },
		FORMAT_OPTION(&format),
	};
	const struct opts opts = { "gaps WHAT [VM[/CPUn|/TID]]", "When it wanted to run and could not, longest first.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct gap_options options = { .top = top };
	if (min && (!time_parse_duration(min, &options.min) || options.min < 0))
		return error_set(err, STATUS_USAGE, "as 3ms or 250us", "--min: not a duration: '%s'", min);
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0) {
		options.from = s.window.from;
		options.to = s.window.to;
		const char *subject = argc - first > 1 ? argv[first + 1] : NULL;
		rc = periodic ? print_periodic(&s, (enum report_format)format, err)
		              : list_gaps(&s, subject, &options, (enum report_format)format, every, err);
	}
	return scene_close(&s, rc, err);
}
