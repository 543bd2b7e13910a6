/* stealscope sync: the clock report alone. */
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

static int report_of_history(char *path, struct report_how how, struct error *err)
{
	static const struct window_options always = { 0 };
	struct scene s;
	struct json_object *doc = NULL;
	int rc = scene_open(&s, path, &always, err);
	if (rc == 0) {
		scene_about(&s, NULL, how);
		doc = scene_told(&s, err);
		rc = doc ? clock_report(field_array(doc, "sync"), how, &s.origin, err) : -1;
	}
	return scene_close(&s, rc, err);
}

/* What is asked about clocks. */
struct wanted_clocks {
	struct report_how how;
	bool plot, audit;
};

static int report_of_traces(struct input *in, const struct wanted_clocks *w, struct error *err)
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
		what_say(&l.notes);
	}
	loaded_release(&l);
	return rc;
}

static int report(const struct input_options *named, const struct wanted_clocks *w, struct error *err)
{
	struct input in;
	if (!w->plot && !w->audit && input_names_history(named))
		return input_refuse_shape(named, err) ? -1 : report_of_history(named->what[0], w->how, err);
	if (input_names_history(named) && history_is_one(named->what[0]))
		return error_set(err, STATUS_USAGE, "give its traces", "%s: looks at events, of which %s, a history, has none",
		                 w->plot ? "--plot" : "--audit", named->what[0]);
	int rc = input_resolve(&in, named, err);
	in.audit = w->audit;
	in.sync_options.bands = w->plot;
	if (w->audit)
		in.sync_options.method = SYNC_NONE;
	rc = rc ? -1 : report_of_traces(&in, w, err);
	input_release(&in);
	return rc;
}

int cmd_sync(int argc, char **argv, struct error *err)
{
	struct what w = { 0 };
	struct report_how how = REPORT_HOW;
	bool plot = false, audit = false;
	const struct opt opt[] = {
		{ "plot", 0, OPT_FLAG, NULL, "text: also draw how sure each clock is, over time", &plot, NULL },
		{ "audit", 0, OPT_FLAG, NULL, "estimate nothing: do events bear out their clocks?", &audit, NULL },
		ANSWER_OPTIONS(&how),
		WHAT_OPTIONS(&w),
	};
	const struct opts opts = { "sync WHAT...", "How each guest's clock relates to the host's, and how sure that is.",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int rc = what_parse(&w, &opts, argc, argv, err);
	if (rc == 0 && plot && how.format != FORMAT_TEXT)
		rc = error_set(err, STATUS_USAGE, "leave out --format", "--plot: goes with text only");
	else if (rc == 0 && audit && (plot || w.named.sync))
		rc = error_set(err, STATUS_USAGE, "leave out the others", "--audit: goes with neither --sync nor --plot");
	else if (rc == 0)
		rc = report(&w.named, &(struct wanted_clocks){ how, plot, audit }, err);
	what_release(&w);
	return rc;
}
