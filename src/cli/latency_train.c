/* stealscope latency train: trains a model that predicts the shift of latency percentiles between a baseline and runs
 * with contention. */
#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/latency_cmd.h"

/* The text report shows numbers of runs; print_names() prints their names, which may be long, and request counts before. */
static const struct column train_columns[] = {
	{ "run", "run", COL_TEXT },                       { "requests", NULL, COL_INT },
	{ "latency_p50_ns", "p50", COL_DURATION },        { "latency_p90_ns", "p90", COL_DURATION },
	{ "shift_p50_ns", "shift p50", COL_DURATION },    { "shift_p90_ns", "shift p90", COL_DURATION },
	{ "predicted_p50_ns", "predicted", COL_DURATION }, { "covered", "in 95%", COL_SHARE },
};

static int64_t quantile_ns(double *v, size_t n, double p)
{
	stats_sort(v, n);
	return (int64_t)stats_quantile(v, n, p);
}

static void print_names(const struct latency_run *run, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char name[300];
		printf("%-3zu  %s: %zu requests%s\n", i + 1, text_escape(name, sizeof name, run[i].recording), run[i].requests.len,
		       i == 0 ? ", the baseline" : "");
	}
	putchar('\n');
}

/* Adds a row with the measured and predicted shift of a run. */
static int print_run(struct report *out, const char *name, const struct latency_run *run,
                     const struct latency_run *baseline, const struct gp *g, struct error *err)
{
	const struct requests *r = &run->requests;
	const char *name_of_input[GP_FEATURES];
	struct training t;
	for (size_t j = 0; j < gp_inputs(g); j++)
		name_of_input[j] = gp_input(g, j);
	training_init(&t, name_of_input, gp_inputs(g));
	training_add_requests(&t, r, &baseline->requests);
	struct gp_prediction *a = mem_new(t.rows, sizeof *a);
	int rc = gp_predict(g, t.x, t.rows, a, err);
	if (rc == 0) {
		double *latency = requests_sorted(r, METRIC_LATENCY), *mean = mem_new(t.rows, sizeof *mean);
		size_t covered = 0;
		for (size_t i = 0; i < t.rows; i++) {
			mean[i] = a[i].mean;
			covered += a[i].low <= t.y[i] && t.y[i] <= a[i].high;
		}
		report_row(out, (struct value[]){
			VAL_TEXT(name), VAL_INT((int64_t)r->len), VAL_INT((int64_t)stats_quantile(latency, r->len, 0.5)),
			VAL_INT((int64_t)stats_quantile(latency, r->len, 0.9)), VAL_INT(quantile_ns(t.y, t.rows, 0.5)),
			VAL_INT(quantile_ns(t.y, t.rows, 0.9)), VAL_INT(quantile_ns(mean, t.rows, 0.5)),
			VAL_REAL((double)covered / (double)t.rows) });
		free(latency);
		free(mean);
	}
	free(a);
	training_release(&t);
	return rc;
}

static void print_model(const char *output, const struct gp *g, size_t requests)
{
	fprintf(stderr, "stealscope: %s: a model of %zu rows, of %zu requests, with %zu inputs:", output, gp_rows(g), requests,
	        gp_inputs(g));
	for (size_t j = 0; j < gp_inputs(g); j++)
		fprintf(stderr, "%s %s", j ? "," : "", gp_input(g, j));
	fputc('\n', stderr);
}

static int train_runs(struct latency_run *run, size_t n, const char *output, const struct gp_options *options,
                      struct report_how how, struct error *err)
{
	struct training t;
	const char *name[REQUEST_INPUT_COUNT];
	const struct requests **all = mem_new(n, sizeof *all);
	for (size_t i = 0; i < n; i++)
		all[i] = &run[i].requests;
	training_init(&t, name, requests_inputs(all, n, name));
	free(all);
	for (size_t i = 0; i < n; i++)
		training_add_requests(&t, &run[i].requests, &run[0].requests);
	struct gp *g = training_learn(&t, options, err);
	int rc = g ? 0 : -1;
	if (rc == 0) {
		static const struct report_shape shape = REPORT_SHAPE("latency-train", train_columns);
		struct origin origin = run_origins(run, n);
		if (how.format == FORMAT_TEXT) {
			origin_write_head(&origin, stdout);
			print_names(run, n);
		}
		struct report *out = report_begin(stdout, how, &shape, how.format == FORMAT_TEXT ? NULL : &origin);
		for (size_t i = 0; i < n && rc == 0; i++) {
			char number[24];
			snprintf(number, sizeof number, "%zu", i + 1);
			rc = print_run(out, how.format == FORMAT_TEXT ? number : run[i].recording, &run[i], &run[0], g, err);
		}
		rc = report_end(out, rc ? NULL : err) ? -1 : rc;
		origin_release(&origin);
	}
	if (rc == 0 && output)
		rc = gp_save(g, output, err);
	if (rc == 0 && output)
		print_model(output, g, t.rows);
	gp_free(g);
	training_release(&t);
	return rc;
}

int latency_train(int argc, char **argv, struct error *err)
{
	struct run_options o = { 0 };
	struct csv_options csv = { 0 };
	bool is_csv = false, no_cores = false;
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "MODEL", "write the model to this file", &csv.output, NULL },
		{ "baseline", 'b', OPT_TEXT, "RECORDING", "the run without contention", &csv.baseline, NULL },
		RUN_OPTIONS(&o),
		{ "rows", 0, OPT_COUNT, "N", "rows kept in the model (default 256)", &csv.rows, NULL },
		{ "no-cores", 0, OPT_FLAG, NULL, "leave out inputs of cores and hardware counters", &no_cores, NULL },
		{ "csv", 0, OPT_FLAG, NULL, "the runs are csv files, one row per request", &is_csv, NULL },
		{ "latency", 0, OPT_TEXT, "COLUMN", "csv: the latency", &csv.latency, NULL },
		{ "out", 0, OPT_TEXT, "COLUMN", "csv: the time scheduled out", &csv.out, NULL },
		{ "input", 0, OPT_LIST, "COLUMN", "csv: input of the model (default: all others)", &csv.input, NULL },
		ANSWER_OPTIONS(&o.how),
	};
	const struct opts opts = { "latency train -o MODEL -b BASELINE RUN...",
	                           "Learn the part of latency caused by contention: the slowdown of runs "
	                           "with\ncontention against a baseline at the same percentile.",
	                           opt, sizeof opt / sizeof *opt, 1, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (csv.output && refuse_overwrite(csv.output, gp_is_model_file, "a model", err))
		return free(csv.input.item), -1;
	if (is_csv) {
		int rc = latency_train_csv(argv + first, (size_t)(argc - first), &csv, err);
		free(csv.input.item);
		return rc;
	}
	if (!csv.baseline)
		return error_set(err, STATUS_USAGE, "specify the run without contention with --baseline",
		                 "latency train: no baseline");
	size_t n = (size_t)(argc - first) + 1, done = 0;
	o.cores = !no_cores;
	struct latency_run *run = mem_new(n, sizeof *run);
	char *baseline = mem_dup(csv.baseline);
	int rc = 0;
	for (; done < n && rc == 0; done++)
		rc = run_read(&run[done], done ? argv[first + (int)done - 1] : baseline, &o, err);
	struct gp_options options = { .rows = csv.rows };
	if (rc == 0)
		rc = train_runs(run, n, csv.output, &options, o.how, err);
	while (done > 0)
		run_release(&run[--done]);
	free(run);
	free(baseline);
	return rc;
}
