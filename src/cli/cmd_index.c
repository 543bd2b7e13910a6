/* stealscope index: builds the state history of traces. */
#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/trace_input.h"
#include "report/report.h"

static const struct column columns[] = {
	{ "phase", "phase", COL_TEXT },
	{ "ns", "time", COL_DURATION },
	{ "events_per_s", "events/s", COL_INT },
};

static const struct report_shape shape = REPORT_SHAPE("timing", columns);

static void print_times(const struct build_times *t)
{
	struct report *r = report_begin(stdout, REPORT_WHOLE(FORMAT_TEXT), &shape, NULL);
	for (int i = 0; i < BUILD_PHASES; i++) {
		double seconds = (double)t->spent[i] / 1e9;
		report_row(r, (struct value[]){ VAL_TEXT(build_phase_name[i]), VAL_INT(t->spent[i]),
		                                VAL_INT(seconds > 0 ? (int64_t)((double)t->events / seconds) : 0) });
	}
	report_end(r, NULL);
	printf("read by: %s\n", t->readers);
}

int cmd_index(int argc, char **argv, struct error *err)
{
	struct trace_input w = { 0 };
	struct input in = { 0 };
	const char *output = NULL;
	bool timing = false;
	struct build_times times = { 0 };
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "the history file (default: the traces' cache)", &output, NULL },
		{ "timing", 0, OPT_FLAG, NULL, "print the time of each phase", &timing, NULL },
		TRACE_INPUT_OPTIONS(&w),
	};
	const struct opts opts = { "index RECORDING...", "Build the state history of the traces below RECORDING.", opt,
	                           sizeof opt / sizeof *opt, 0, -1 };
	int rc = trace_input_parse(&w, &opts, argc, argv, err);
	if (rc == 0 && output)
		rc = refuse_overwrite(output, history_is_history_file, "a history", err);
	if (rc == 0)
		rc = input_resolve(&in, &w.named, err);
	char *cache = NULL;
	if (rc == 0 && !output) {
		output = cache = cache_path(&in, err);
		rc = output ? 0 : -1;
	}
	if (rc == 0)
		rc = trace_input_build(&in, output, &times, err) ? input_name_copies(&w.named, err) : 0;
	if (rc == 0)
		printf("%s\n", output);
	if (rc == 0 && cache)
		trace_input_remember_host(&w.named);
	if (rc == 0 && timing)
		print_times(&times);
	free(cache);
	input_release(&in);
	trace_input_release(&w);
	return rc;
}
