/* stealscope flow: the execution flow of a thread. */
#include <stdio.h>

#include "cli/build.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/window.h"
#include "flow/flow.h"

static const struct column entry_columns[] = {
	{ "system", "system", COL_TEXT },   { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },       { "kind", "kind", COL_TEXT },
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE },
};

static const struct column interval_columns[] = {
	{ "start", "start", COL_INT }, { "end", "end", COL_INT },   { "system", "system", COL_TEXT },
	{ "tid", "TID", COL_INT },     { "name", "name", COL_TEXT }, { "kind", "kind", COL_TEXT },
};

/* `system` is "host" or the name of the VM or container; nobody is an empty field. */
static struct value system_of(const struct topo *topo, int32_t system)
{
	if (system < 0)
		return VAL_NONE;
	const struct topo_machine *m = &topo->machine[system];
	return VAL_TEXT(m->kind == MACHINE_HOST ? "host" : m->name);
}

static struct value tid_of(int32_t tid)
{
	return tid < 0 ? VAL_NONE : VAL_INT(tid);
}

static void print_entries(const struct topo *topo, const struct flow *f, enum report_format format)
{
	struct report *r = report_begin(stdout, format, entry_columns, sizeof entry_columns / sizeof *entry_columns);
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		report_row(r, (struct value[]){ system_of(topo, e->system), tid_of(e->tid), VAL_TEXT(f->name[e->name]),
		                                VAL_TEXT(flow_kind_name[e->kind]), VAL_INT(e->duration), VAL_REAL(e->share) });
	}
	report_end(r);
}

static void print_intervals(const struct topo *topo, const struct flow *f, enum report_format format)
{
	struct report *r = report_begin(stdout, format, interval_columns, sizeof interval_columns / sizeof *interval_columns);
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *v = &f->interval[i];
		report_row(r, (struct value[]){ VAL_INT(v->start), VAL_INT(v->end), system_of(topo, v->system), tid_of(v->tid),
		                                VAL_TEXT(f->name[v->name]), VAL_TEXT(flow_kind_name[v->kind]) });
	}
	report_end(r);
}

int cmd_flow(int argc, char **argv, struct error *err)
{
	struct input in = { 0 };
	struct window_options when = { 0 };
	int format = FORMAT_TEXT;
	bool intervals = false;
	double threshold = 0.001;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "threshold", 0, OPT_PERCENT, "PERCENT", "text: leave out entries below this share (default 0.1)", &threshold, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "the ordered intervals, not only the sums", &intervals, NULL },
		{ "format", 0, OPT_CHOICE, "FORMAT", "text, csv or json", &format, report_formats },
	};
	const struct opts opts = { "flow WHAT VM/TID", "Who ran while the thread could not: its execution flow.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	(void)print_entries; (void)print_intervals;
	return 0;
}
