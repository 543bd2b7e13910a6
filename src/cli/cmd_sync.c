/* stealscope sync: the clock report alone. */
#include <stdio.h>

#include "cli/build.h"
#include "cli/cli.h"
#include "cli/clock_plot.h"
#include "cli/clock_report.h"
#include "cli/field.h"
#include "cli/progress_bar.h"
#include "cli/provenance.h"

static int report_of_history(const char *path, enum report_format format, struct error *err)
{
	struct history *h = history_open(path, err);
	struct json_object *doc = h ? provenance_load(h, err) : NULL;
	if (doc)
		clock_report(field_array(doc, "sync"), format);
	int rc = doc ? 0 : -1;
	json_object_put(doc);
	return close_what(h, rc, err);
}

static int report_of_traces(struct input *in, enum report_format format, bool plot, struct error *err)
{
	if (input_resolve(in, err))
		return -1;
	struct progress_bar bar;
	struct progress progress = progress_bar_begin(&bar);
	struct load l = { 0 };
	int rc = load_traces(&l, in, progress, NULL, err);
	progress_bar_end(&bar);
	if (rc == 0) {
		struct json_object *rows = provenance_sync_rows(&l.sync);
		clock_report(rows, format);
		json_object_put(rows);
		for (size_t i = 0; plot && i < l.sync.vms; i++)
			if (l.sync.vm[i].guest)
				clock_plot(&l.sync.vm[i], stdout);
		for (size_t i = 0; i < l.notes.len; i++)
			fprintf(stderr, "stealscope: note: %s\n", l.notes.line[i]);
	}
	load_release(&l);
	return rc;
}

int cmd_sync(int argc, char **argv, struct error *err)
{
	struct input in = { 0 };
	int format = FORMAT_TEXT;
	bool plot = false;
	const struct opt opt[] = {
		{ "plot", 0, OPT_FLAG, NULL, "text: also draw delays and how sure each clock is, over time", &plot, NULL },
		FORMAT_OPTION(&format),
		INPUT_OPTIONS(&in),
	};
	const struct opts opts = { "sync WHAT...", "How each guest's clock relates to the host's, and how sure that is.",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	in.what = argv + first;
	in.whats = argc - first;
	int rc;
	if (plot && format != FORMAT_TEXT)
		return error_set(err, STATUS_USAGE, "leave out --format", "--plot: goes with text only");
	if (!plot && names_history(&in))
		rc = refuse_shape(&in, err) ? -1 : report_of_history(in.what[0], (enum report_format)format, err);
	else
		rc = report_of_traces(&in, (enum report_format)format, plot, err);
	input_release(&in);
	return rc;
}
