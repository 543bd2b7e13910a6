/* stealscope sync: synchronizes the clocks of traces, and prints the clock report. */
#include <stdio.h>

#include "base/json_field.h"
#include "cli/cli.h"
#include "cli/clock_audit.h"
#include "cli/clock_plot.h"
#include "cli/clock_report.h"
#include "cli/progress_bar.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"
#include "index/index.h"

static int report_history(char *path, struct report_how how, struct error *err)
{
	static const struct window_options whole_history = { 0 };
	struct query_context s;
	struct json_object *doc = NULL;
	int rc = query_context_open(&s, path, &whole_history, err);
	if (rc == 0) {
		query_context_about(&s, NULL, how);
		doc = query_context_provenance(&s, err);
		rc = doc ? clock_report(json_member_array(doc, "sync"), how, &s.origin, err) : -1;
	}
	return query_context_close(&s, rc, err);
}

/* Options of the command. */
struct sync_command {
	struct report_how how;
	bool plot, audit;
};

static int report_traces(struct input *in, const struct sync_command *w, struct error *err)
{
	struct progress_bar bar;
	struct progress progress = progress_bar_begin(&bar, NULL);
	struct loaded l = { 0 };
	int rc = load_traces(&l, in, progress, NULL, err);
	progress_bar_end(&bar);
	if (rc == 0 && w->audit) {
		rc = clock_audit(in, &l.sync, w->how, err);
	} else if (rc == 0) {
		struct json_object *rows = provenance_sync_rows(&l.sync);
		rc = clock_report(rows, w->how, NULL, err);
		json_object_put(rows);
		for (size_t i = 0; w->plot && i < l.sync.vms; i++)
			if (l.sync.vm[i].guest)
				clock_plot(&l.sync.vm[i], stdout);
		print_notes(&l.notes);
	}
	loaded_release(&l);
	return rc;
}

static int print_report(const struct input_options *named, const struct sync_command *w, struct error *err)
{
	struct input in;
	if (!w->plot && !w->audit && input_is_history(named))
		return input_check_history_options(named, err) ? -1 : report_history(named->what[0], w->how, err);
	if (input_is_history(named) && history_is_history_file(named->what[0]))
		return error_set(err, STATUS_USAGE, "specify the traces", "%s needs the traces' events: %s is a history",
		                 w->plot ? "--plot" : "--audit", named->what[0]);
	int rc = input_resolve(&in, named, err);
	in.audit = w->audit;
	in.sync_options.bands = w->plot;
	if (w->audit)
		in.sync_options.method = SYNC_NONE;
	rc = rc ? -1 : report_traces(&in, w, err);
	input_release(&in);
	return rc;
}

int cmd_sync(int argc, char **argv, struct error *err)
{
	struct trace_input w = { 0 };
	struct report_how how = REPORT_HOW;
	bool plot = false, audit = false;
	const struct opt opt[] = {
		{ "plot", 0, OPT_FLAG, NULL, "text: plot the error bounds of each clock over time", &plot, NULL },
		{ "audit", 0, OPT_FLAG, NULL, "only check the recorded clocks against events", &audit, NULL },
		ANSWER_OPTIONS(&how),
		TRACE_INPUT_OPTIONS(&w),
	};
	const struct opts opts = { "sync RECORDING...", "Show each guest's clock against the host's, with error bounds.",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int rc = trace_input_parse(&w, &opts, argc, argv, err);
	if (rc == 0 && plot && how.format != FORMAT_TEXT)
		rc = error_set(err, STATUS_USAGE, "omit --format", "--plot supports only text");
	else if (rc == 0 && audit && (plot || w.named.sync))
		rc = error_set(err, STATUS_USAGE, "omit --sync and --plot", "--audit excludes --sync and --plot");
	else if (rc == 0)
		rc = print_report(&w.named, &(struct sync_command){ how, plot, audit }, err);
	trace_input_release(&w);
	return rc;
}
