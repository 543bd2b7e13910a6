/* stealscope latency: determines the provider's part of the latency of requests. This file has the subcommands
 * `requests` and `assert`; latency_train.c and latency_report.c have the others. */
#include "base/base.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/examples.h"
#include "cli/latency_cmd.h"

/* ---- Common to the subcommands ----------------------------------------------------------------------------- */

static int predict_requests(struct latency_run *r, const char *model, struct notes *notes, struct error *err)
{
	struct gp *g = gp_load(model, err);
	if (!g)
		return -1;
	int rc = requests_predict(&r->requests, g, notes, err);
	for (size_t i = 0; i < r->requests.len && r->spans.len; i++)  /* without a thread, a span has no inputs */
		r->requests.row[i].has_prediction = r->requests.row[i].has_prediction && r->requests.row[i].tid >= 0;
	for (size_t j = 0; j < gp_inputs(g); j++) {
		char name[GP_NAME * TEXT_ESCAPED], *before = r->inputs;
		text_escape(name, sizeof name, gp_input(g, j));
		r->inputs = before ? mem_printf("%s, %s", before, name) : mem_dup(name);
		free(before);
	}
	gp_free(g);
	return rc;
}

int run_read(struct latency_run *r, char *recording, const struct run_options *o, struct error *err)
{
	struct query_context s;
	struct notes notes = { NULL, 0, 0 };
	int64_t error;
	*r = (struct latency_run){ .recording = recording };
	if (span_options_check(&o->spans, &error, err))
		return -1;
	int rc = query_context_open(&s, recording, &o->when, err);
	if (rc == 0) {
		struct requests_options options = { .machine = o->machine, .id = o->id, .from = s.window.from, .to = s.window.to,
		                                    .culprits = o->culprits, .cores = o->cores || o->model };
		rc = o->spans.file ? span_requests_read(&s.catalog, &o->spans, &options, &r->spans, &r->requests, &notes, err)
		                   : requests_read(&s.catalog, &options, &r->requests, &notes, err);
	}
	if (rc == 0 && r->requests.len == 0 && o->spans.file)
		rc = span_requests_none(o->spans.file, &notes, err);
	else if (rc == 0 && r->requests.len == 0)
		rc = error_set(err, STATUS_INPUT, o->id || o->machine || o->when.from || o->when.to ?
		               "there may be some elsewhere: ask of all machines, ids and times" :
		               "record --requests sets probes in a server; or mark requests in its source (stealscope-mark(3))",
		               "%s: no complete request found", recording);
	if (rc == 0 && o->model)
		rc = predict_requests(r, o->model, &notes, err);
	if (rc == 0) {
		origin_load(&r->origin, &s.catalog, NULL, s.window.from, s.window.to);
		origin_add_warnings(&r->origin, &notes);
		if (o->how.format == FORMAT_CSV)
			print_notes(&r->origin.notes);
	}
	notes_release(&notes);
	return query_context_close(&s, rc, err);
}

void run_release(struct latency_run *r)
{
	requests_release(&r->requests);
	spans_release(&r->spans);
	free(r->inputs);
	origin_release(&r->origin);
}

struct origin run_origins(const struct latency_run *run, size_t n)
{
	struct origin all = { 0 };
	for (size_t i = 0; i < n; i++)
		origin_add(&all, &run[i].origin);
	return all;
}

/* ---- requests ----------------------------------------------------------------------------------------------- */

static const char *const sorts[] = { "start", "latency", "provider", NULL };

int latency_requests(int argc, char **argv, struct error *err)
{
	struct run_options o = { .culprits = true };
	unsigned top = 0;
	bool features = false;
	int sort = REQUESTS_BY_START;
	const struct opt opt[] = {
		RUN_OPTIONS(&o),
		{ "request", 0, OPT_TEXT, "ID", "only requests of this id", &o.id, NULL },
		SPAN_OPTIONS(&o.spans),
		MODEL_OPTION(&o),
		{ "features", 0, OPT_FLAG, NULL, "add the model's inputs (csv and json)", &features, NULL },
		{ "sort", 0, OPT_CHOICE, "BY", "start, latency or provider (longest first)", &sort, sorts },
		{ "top", 0, OPT_COUNT, "N", "only the first N (default: all)", &top, NULL },
		ANSWER_OPTIONS(&o.how),
	};
	const struct opts opts = { "latency requests RECORDING", "List requests with their latency and the provider's part.",
	                           opt, sizeof opt / sizeof *opt, 1, 1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct latency_run run;
	int rc = run_read(&run, argv[first], &o, err);
	if (rc == 0) {
		const struct requests_parts parts = { &run.requests, top, o.model != NULL, features, (enum requests_order)sort };
		requests_sort(&run.requests, parts.order);
		rc = report_requests(stdout, o.how, &parts, &run.origin, err);
	}
	run_release(&run);
	return rc;
}

/* ---- assert ------------------------------------------------------------------------------------------------- */

static char *metric_text(char *buf, size_t size, enum request_metric m, double v)
{
	char time[TIME_TEXT];
	if (metric_is_share(m))
		snprintf(buf, size, "%.2f%%", 100 * v);
	else
		snprintf(buf, size, "%s", time_duration(time, (int64_t)v));
	return buf;
}

static bool needs_model(enum request_metric m)
{
	return m == METRIC_PREDICTED || m == METRIC_PREDICTED_SHARE;
}

static int check_all(const struct requests *r, char **text, const struct assertion *a, size_t n, struct error *err)
{
	size_t failed = 0;
	for (size_t i = 0; i < n; i++) {
		double value;
		char value_text[TIME_TEXT];
		bool holds = assertion_holds(&a[i], r, &value);
		printf("%-6s %s: %s of %zu request%s\n", holds ? "holds" : "FAILS", text[i],
		       metric_text(value_text, sizeof value_text, a[i].metric, value), r->len, r->len == 1 ? "" : "s");
		failed += !holds;
	}
	if (failed)
		return error_set(err, STATUS_ASSERTION, NULL, "%zu of %zu assertion%s not met", failed, n, n == 1 ? "" : "s");
	return 0;
}

int latency_assert(int argc, char **argv, struct error *err)
{
	struct run_options o = { 0 };
	const struct opt opt[] = { RUN_OPTIONS(&o), SPAN_OPTIONS(&o.spans), MODEL_OPTION(&o) };
	const struct opts opts = { "latency assert RECORDING ASSERTION...",
	                           "Exit with status 3 if an assertion such as 'p99.provider<2ms' is violated.", opt,
	                           sizeof opt / sizeof *opt, 2, -1 };
	int first, rc = 0;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	size_t n = (size_t)(argc - first - 1);
	struct assertion *a = calloc(n, sizeof *a);
	if (!a)
		return error_system(err, NULL, "assertions");
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = assertion_parse(argv[first + 1 + (int)i], &a[i], err);
		if (rc == 0 && needs_model(a[i].metric) && !o.model)
			rc = error_set(err, STATUS_USAGE, "give --model", "assertion '%s': predictions require a model (--model)",
			               argv[first + 1 + (int)i]);
	}
	if (rc == 0) {
		struct latency_run run;
		rc = run_read(&run, argv[first], &o, err);
		if (rc == 0)
			print_notes(&run.origin.notes);
		if (rc == 0)
			rc = check_all(&run.requests, argv + first + 1, a, n, err);
		run_release(&run);
	}
	free(a);
	return rc;
}

/* ---- The command -------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv, struct error *err);
	const char *operands, *help;
} subcommands[] = {
	{ "requests", latency_requests, "RECORDING", "a row for each request" },
	{ "traces", latency_traces, "RECORDING --spans FILE", "where traces over several VMs took long" },
	{ "train", latency_train, "-o MODEL -b BASE RUN...", "learn to predict the provider's part" },
	{ "report", latency_report, "RECORDING [RECORDING]", "distribution; of two runs; --heat: a map" },
	{ "assert", latency_assert, "RECORDING ASSERTION...", "status 3 unless 'p99.provider<2ms' holds" },
};

int cmd_latency(int argc, char **argv, struct error *err)
{
	if (completion_requested(argc, argv)) {
		for (size_t i = 0; argc == 3 && i < sizeof subcommands / sizeof *subcommands; i++)
			complete_word(argv[2], subcommands[i].name, subcommands[i].help);
		if (argc == 3)
			return 0;
		char *subcommand = argv[1];
		argv[1] = argv[2];
		argv[2] = subcommand;
	}
	for (size_t i = 0; argc > 1 && i < sizeof subcommands / sizeof *subcommands; i++) {
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].run(argc - 1, argv + 1, err);
	}
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		puts("usage: stealscope latency requests|traces|train|report|assert ...\n"
		     "How much of the latency of requests the host caused.\n");
		for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
			printf("  %-9s %-23s  %s\n", subcommands[i].name, subcommands[i].operands, subcommands[i].help);
		examples_print("latency");
		return 0;
	}
	if (argc < 2)
		return error_set(err, STATUS_USAGE, "usage: stealscope latency requests|traces|train|report|assert ...",
		                 "latency: a subcommand is missing");
	char remedy[80] = "usage: stealscope latency requests|traces|train|report|assert ...";
	struct suggestion suggestion = SUGGESTION(argv[1]);
	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
		suggest(&suggestion, subcommands[i].name);
	if (suggestion.nearest)
		snprintf(remedy, sizeof remedy, "did you mean %s?", suggestion.nearest);
	return error_set(err, STATUS_USAGE, remedy, "latency: no such subcommand: %s", argv[1]);
}
