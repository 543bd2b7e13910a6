/* stealscope flow: the execution flow of a thread. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/header.h"
#include "cli/report.h"
#include "cli/scene.h"

static const struct column entry_columns[] = {
	{ "system", "system", COL_TEXT },   { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT },       { "kind", "kind", COL_TEXT },
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE },
};

static const struct column interval_columns[] = {
	{ "start", "start", COL_INT }, { "end", "end", COL_INT },   { "system", "system", COL_TEXT },
	{ "tid", "TID", COL_INT },     { "name", "name", COL_TEXT }, { "kind", "kind", COL_TEXT },
};

static void print_entries(const struct topo *topo, const struct flow *f, enum report_format format)
{
	struct report *r = report_begin(stdout, format, entry_columns, sizeof entry_columns / sizeof *entry_columns);
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		report_row(r, (struct value[]){ value_system(topo, e->system), value_tid(e->tid), VAL_TEXT(f->name[e->name]),
		                                VAL_TEXT(flow_kind_name[e->kind]), VAL_INT(e->duration), VAL_REAL(e->share) });
	}
	report_end(r);
}

static void print_intervals(const struct topo *topo, const struct flow *f, enum report_format format)
{
	struct report *r = report_begin(stdout, format, interval_columns, sizeof interval_columns / sizeof *interval_columns);
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *v = &f->interval[i];
		report_row(r, (struct value[]){ VAL_INT(v->start), VAL_INT(v->end), value_system(topo, v->system),
			value_tid(v->tid),
		                                VAL_TEXT(f->name[v->name]), VAL_TEXT(flow_kind_name[v->kind]) });
	}
	report_end(r);
}

struct flow_request {
	struct window window;
	double threshold;
	bool intervals;
	enum report_format format;
};

static int print_flow(const struct topo *topo, const struct subject *s, const struct flow_request *want,
                      struct error *err)
{
	struct flow f;
	if (flow_of_thread(topo, s->index, want->window.from, want->window.to, &f, err))
		return -1;
	int rc = 0;
	if (want->format == FORMAT_TEXT) {
		struct header h;
		header_make(&h, topo, s);
		struct flow_text text = { .threshold = want->threshold, .intervals = want->intervals,
		                          .header = (const char *const *)h.line, .headers = h.len };
		rc = flow_write_text(topo, &f, s, &text, stdout, err);
		header_release(&h);
	} else if (want->intervals) {
		print_intervals(topo, &f, want->format);
	} else {
		print_entries(topo, &f, want->format);
	}
	flow_release(&f);
	return rc;
}

int cmd_flow(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct flow_request want = { .threshold = 0.001 };
	int format = FORMAT_TEXT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "threshold", 0, OPT_PERCENT, "PERCENT", "text: leave out entries below this share (default 0.1)",
		  &want.threshold, NULL },
		{ "intervals", 0, OPT_FLAG, NULL, "the ordered intervals, not only the sums", &want.intervals, NULL },
		FORMAT_OPTION(&format),
	};
	const struct opts opts = { "flow WHAT VM/TID", "Who ran while the thread could not: its execution flow.", opt,
	                           sizeof opt / sizeof *opt, 2, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	want.format = (enum report_format)format;
	struct scene scene;
	struct subject s;
	int rc = scene_open(&scene, argv[first], &when, err);
	if (rc == 0)
		rc = topo_parse_subject(&scene.topo, argv[first + 1], &s, err);
	if (rc == 0 && s.kind != SUBJECT_THREAD)
		rc = error_set(err, STATUS_USAGE, "name a thread, as Debian/3525; stealscope gaps takes machines and vCPUs",
		               "%s: not a thread", argv[first + 1]);
	if (rc == 0) {
		want.window = scene.window;
		rc = print_flow(&scene.topo, &s, &want, err);
	}
	return scene_close(&scene, rc, err);
}
