/* stealscope latency report: prints the latency distribution of one run with the provider's part, a comparison of two
 * runs (the paper's Fig. 4), or a heat map over a grid of runs (Fig. 3). */
#include <math.h>

#include "base/base.h"
#include "cli/latency_cmd.h"
#include "report/report.h"

static const double levels[] = { 0.5, 0.9, 0.99, 0.999 };
static const char *const level_names[] = { "p50", "p90", "p99", "p99.9" };
#define LEVELS (sizeof levels / sizeof *levels)

/* ---- One run ------------------------------------------------------------------------------------------------ */

/* A percentile of the latency, and averages over the requests around it. */
struct level {
	double latency;  /* ns */
	double low, high, predicted;  /* means over these requests, ns */
	double low_share, high_share, predicted_share;
};

static int by_latency(const void *pa, const void *pb)
{
	const struct request *const *a = pa, *const *b = pb;
	int64_t la = request_latency(*a), lb = request_latency(*b);
	if (la != lb)
		return (la > lb) - (la < lb);
	return ((*a)->start > (*b)->start) - ((*a)->start < (*b)->start);
}

/* Averages the requests with a rank within 1 % of the percentile's rank (at least one). The mean is more stable than a
 * single request, and unlike percentiles of the parts it describes the requests with this latency. */
static struct level level_at(const struct request *const *sorted, size_t n, double p)
{
	size_t around = n / 100, middle = (size_t)fmin(fmax(p * (double)n - 0.5, 0), (double)(n - 1));
	size_t from = middle > around ? middle - around : 0, to = middle + around < n ? middle + around : n - 1;
	struct level l = { 0 };
	double count = (double)(to - from + 1);
	for (size_t i = from; i <= to; i++) {
		const struct request *r = sorted[i];
		l.low += (double)r->low / count;
		l.high += (double)r->high / count;
		l.predicted += r->predicted.mean / count;
		l.low_share += request_metric(r, METRIC_LOW_SHARE) / count;
		l.high_share += request_metric(r, METRIC_HIGH_SHARE) / count;
		l.predicted_share += request_metric(r, METRIC_PREDICTED_SHARE) / count;
	}
	return l;
}

static void compute_levels(const struct requests *r, struct level out[LEVELS])
{
	const struct request **sorted = mem_new(r->len, sizeof *sorted);
	for (size_t i = 0; i < r->len; i++)
		sorted[i] = &r->row[i];
	qsort(sorted, r->len, sizeof *sorted, by_latency);
	double *latency = requests_sorted(r, METRIC_LATENCY);
	for (size_t i = 0; i < LEVELS; i++) {
		out[i] = level_at(sorted, r->len, levels[i]);
		out[i].latency = stats_quantile(latency, r->len, levels[i]);
	}
	free(sorted);
	free(latency);
}

static double median_metric(const struct requests *r, enum request_metric m)
{
	double *v = requests_sorted(r, m);
	double at = stats_quantile(v, r->len, 0.5);
	free(v);
	return at;
}

static void print_level(const char *name, const struct level *l, bool predicted)
{
	char latency[TIME_TEXT], low[TIME_TEXT], high[TIME_TEXT], bar[32], model[TIME_TEXT] = "";
	plot_bar(bar, sizeof bar, 24, l->low_share, l->high_share);
	if (predicted)
		time_duration(model, (int64_t)l->predicted);
	printf("%-6s %9s  %9s .. %-9s %9s  %s\n", name, time_duration(latency, (int64_t)l->latency),
	       time_duration(low, (int64_t)l->low), time_duration(high, (int64_t)l->high), model, bar);
}

static void print_scatter(const struct requests *r)
{
	double *x = mem_new(r->len, sizeof *x), *y = mem_new(r->len, sizeof *y);
	for (size_t i = 0; i < r->len; i++) {
		x[i] = (double)r->row[i].high;
		y[i] = (double)request_latency(&r->row[i]);
	}
	printf("\ncorrelation of latency with time scheduled out: %.3f\n", stats_correlation(x, y, r->len));
	plot_scatter(stdout, x, y, r->len, "scheduled out", "latency");
	free(x);
	free(y);
}

static void print_prediction(const struct latency_run *run)
{
	char *inputs = mem_printf("  inputs of the model: %s\n", run->inputs);
	puts("  predicted: the latency beyond that of the baseline run at the same percentile");
	prose_print(inputs, NULL);
	free(inputs);
}

static void print_distribution(const struct latency_run *run, bool scatter)
{
	const struct requests *r = &run->requests;
	struct level l[LEVELS];
	char name[300];
	bool predicted = r->row[0].has_prediction;
	compute_levels(r, l);
	printf("%s: %zu request%s\n\n", text_escape(name, sizeof name, run->recording), r->len, r->len == 1 ? "" : "s");
	printf("%16s  %-23s %9s  # sure + possible . yours\n", "latency", "of it the provider's", predicted ? "predicted" : "");
	for (size_t i = 0; i < (r->len < 1000 ? LEVELS - 1 : LEVELS); i++)  /* p99.9 of few requests is the slowest one */
		print_level(level_names[i], &l[i], predicted);
	printf("\nmedian share of the provider: at least %.1f%%, at most %.1f%%", 100 * median_metric(r, METRIC_LOW_SHARE),
	       100 * median_metric(r, METRIC_HIGH_SHARE));
	if (predicted)
		printf(", predicted %.1f%%", 100 * median_metric(r, METRIC_PREDICTED_SHARE));
	puts("\n  at least: loss of its vCPU while the request itself executed\n  at most:  ... at any time in flight "
	     "while its server thread had work");
	if (predicted)
		print_prediction(run);
	if (scatter)
		print_scatter(r);
}

static const struct column level_columns[] = {
	{ "percentile", NULL, COL_REAL },        { "latency_ns", NULL, COL_INT },
	{ "provider_low_ns", NULL, COL_INT },    { "provider_high_ns", NULL, COL_INT },
	{ "predicted_ns", NULL, COL_INT },       { "low_share", NULL, COL_SHARE },
	{ "high_share", NULL, COL_SHARE },       { "predicted_share", NULL, COL_SHARE },
	{ "run", NULL, COL_TEXT },
};

static void add_run_rows(struct report *out, const struct latency_run *run)
{
	struct level l[LEVELS];
	bool predicted = run->requests.row[0].has_prediction;
	compute_levels(&run->requests, l);
	for (size_t i = 0; i < LEVELS; i++) {
		report_row(out, (struct value[]){
			VAL_REAL(levels[i]), VAL_INT((int64_t)l[i].latency), VAL_INT((int64_t)l[i].low), VAL_INT((int64_t)l[i].high),
			predicted ? VAL_INT((int64_t)l[i].predicted) : VAL_NONE, VAL_REAL(l[i].low_share),
			VAL_REAL(l[i].high_share), predicted ? VAL_REAL(l[i].predicted_share) : VAL_NONE, VAL_TEXT(run->recording) });
	}
}

/* ---- Two runs ----------------------------------------------------------------------------------------------- */

/* Compares B's predicted shift with the measured shift from A to B. */
static void print_check(const struct latency_run *a, const struct latency_run *b)
{
	const struct requests *r = &b->requests;
	double *base = requests_sorted(&a->requests, METRIC_LATENCY), *shift = mem_new(r->len, sizeof *shift);
	double *latency = mem_new(r->len, sizeof *latency);
	size_t covered = 0;
	for (size_t i = 0; i < r->len; i++)
		latency[i] = (double)request_latency(&r->row[i]);
	stats_shift(latency, r->len, base, a->requests.len, shift);
	for (size_t i = 0; i < r->len; i++)
		covered += r->row[i].predicted.low <= shift[i] && shift[i] <= r->row[i].predicted.high;
	printf("model: median share predicted %.1f%%; the 95%% interval holds %.1f%% of B's shifts against A\n",
	       100 * median_metric(r, METRIC_PREDICTED_SHARE), 100 * (double)covered / (double)r->len);
	free(base);
	free(shift);
	free(latency);
}

/* Prints one line of the comparison. The bar's length is the latency; `scale` ns are 44 cells. */
static void print_side(const char *level, char side, const struct level *l, double scale)
{
	char latency[TIME_TEXT], provider[TIME_TEXT], bar[64];
	plot_bar(bar, sizeof bar, (int)lround(44 * l->latency / scale), l->low_share, l->high_share);
	printf("%-6s %c %10s   %10s   %s\n", level, side, time_duration(latency, (int64_t)l->latency),
	       time_duration(provider, (int64_t)l->high), bar);
}

/* Prints latency and provider's part of both runs, and their differences at the same percentiles. */
static void print_comparison(const struct latency_run *a, const struct latency_run *b)
{
	struct level la[LEVELS], lb[LEVELS];
	char name[300];
	compute_levels(&a->requests, la);
	compute_levels(&b->requests, lb);
	printf("A  %s: %zu request%s\n", text_escape(name, sizeof name, a->recording), a->requests.len,
	       a->requests.len == 1 ? "" : "s");
	printf("B  %s: %zu request%s\n\n", text_escape(name, sizeof name, b->recording), b->requests.len,
	       b->requests.len == 1 ? "" : "s");
	printf("            latency  the provider's, at most    # sure  + possible  . yours\n");
	for (size_t i = 0; i < LEVELS; i++) {
		double scale = fmax(la[i].latency, lb[i].latency);
		char more[TIME_TEXT], provider[TIME_TEXT];
		print_side(level_names[i], 'A', &la[i], scale);
		print_side("", 'B', &lb[i], scale);
		printf("  B - A  %10s   %10s\n", time_duration(more, (int64_t)(lb[i].latency - la[i].latency)),
		       time_duration(provider, (int64_t)(lb[i].high - la[i].high)));
	}
	double ma = median_metric(&a->requests, METRIC_LATENCY), mb = median_metric(&b->requests, METRIC_LATENCY);
	printf("\nmedian latency %+.1f%%: %.1f%% of B's is beyond A's\n"
	       "median share of the provider, measured: at most %.1f%% (A), %.1f%% (B)\n", 100 * (mb - ma) / ma,
	       100 * (mb - ma) / mb, 100 * median_metric(&a->requests, METRIC_HIGH_SHARE),
	       100 * median_metric(&b->requests, METRIC_HIGH_SHARE));
	if (b->requests.row[0].has_prediction)
		print_check(a, b);
}

/* ---- Heat map ----------------------------------------------------------------------------------------------- */

struct tile {
	char *load, *vms;  /* labels */
	struct latency_run run;
	double value;
};

/* Parses "LOAD,VMS=RECORDING": labels for the load of the guest and of the host. */
static int tile_parse(char *text, struct tile *t, char **recording, struct error *err)
{
	char *comma = strchr(text, ','), *equals = comma ? strchr(comma, '=') : NULL;
	if (!equals || comma == text || equals == comma + 1 || !equals[1] || comma - text > 11 || equals - comma > 12)
		return error_set(err, STATUS_USAGE, "for example 3,1=traces/grid_h1_g3",
		                 "--heat: '%s': expected LOAD,VMS=RECORDING with labels of up to 11 characters", text);
	char label[40];
	*comma = *equals = '\0';
	t->load = mem_dup(text_escape(label, sizeof label, text));
	t->vms = mem_dup(text_escape(label, sizeof label, comma + 1));
	*recording = equals + 1;
	return 0;
}

/* Sorts numbers numerically, then other labels alphabetically. */
static int by_label(const void *pa, const void *pb)
{
	const char *a = *(const char *const *)pa, *b = *(const char *const *)pb;
	char *ea, *eb;
	double va = strtod(a, &ea), vb = strtod(b, &eb);
	bool na = ea != a && !*ea, nb = eb != b && !*eb;
	if (na && nb && va != vb)
		return va < vb ? -1 : 1;
	return na != nb ? (na ? -1 : 1) : strcmp(a, b);
}

/* Collects the distinct labels, sorted. Returns their number. */
static size_t distinct_labels(const struct tile *t, size_t n, bool load, const char **label)
{
	size_t n_labels = 0;
	for (size_t i = 0; i < n; i++)
		label[i] = load ? t[i].load : t[i].vms;
	qsort(label, n, sizeof *label, by_label);
	for (size_t i = 0; i < n; i++) {
		if (!n_labels || strcmp(label[n_labels - 1], label[i]) != 0)
			label[n_labels++] = label[i];
	}
	return n_labels;
}

static char *share_text(char *buf, size_t size, double v)
{
	snprintf(buf, size, "%.1f%%", 100 * v);
	return buf;
}

static char *time_text(char *buf, size_t size, double v)
{
	char t[TIME_TEXT];
	snprintf(buf, size, "%s", time_duration(t, (int64_t)v));
	return buf;
}

static void print_heat(const struct tile *t, size_t n, const char *quantity, enum request_metric m)
{
	const char **load = mem_new(n, sizeof *load), **vms = mem_new(n, sizeof *vms);
	size_t loads = distinct_labels(t, n, true, load), hosts = distinct_labels(t, n, false, vms);
	double *value = mem_new(loads * hosts, sizeof *value);
	for (size_t i = 0; i < loads * hosts; i++)
		value[i] = (double)NAN;
	for (size_t i = 0; i < n; i++) {
		size_t r = 0, c = 0;
		while (strcmp(vms[r], t[i].vms))
			r++;
		while (strcmp(load[c], t[i].load))
			c++;
		value[r * loads + c] = t[i].value;
	}
	printf("%s; rows: load of the host (other VMs); columns: load of the guest itself\n\n", quantity);
	plot_heat(stdout, value, vms, hosts, load, loads, metric_is_share(m) ? share_text : time_text);
	free(load);
	free(vms);
	free(value);
}

static const struct column heat_columns[] = {
	{ "vms", NULL, COL_TEXT },      { "load", NULL, COL_TEXT },     { "requests", NULL, COL_INT },
	{ "quantity", NULL, COL_TEXT }, { "value", NULL, COL_REAL },    { "run", NULL, COL_TEXT },
};

static int report_tiles(const struct tile *t, size_t n, const char *quantity, struct report_how how,
                        const struct origin *origin, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("latency-heat", heat_columns);
	struct report *out = report_begin(stdout, how, &shape, origin);
	for (size_t i = 0; i < n; i++) {
		report_row(out, (struct value[]){
			VAL_SHOWN(t[i].vms), VAL_SHOWN(t[i].load), VAL_INT((int64_t)t[i].run.requests.len), VAL_TEXT(quantity),
			VAL_REAL(t[i].value), VAL_TEXT(t[i].run.recording) });
	}
	return report_end(out, err);
}

static int report_heat(char **operand, size_t n, const char *quantity, const struct run_options *o, struct error *err)
{
	/* Parses the quantity as an assertion with an arbitrary limit. */
	struct assertion a;
	char *text = mem_printf("%s<1", quantity);
	int rc = assertion_parse(text, &a, err);
	size_t done = 0;
	struct tile *t = mem_new(n, sizeof *t);
	for (; done < n && rc == 0; done++) {
		char *recording = NULL;
		rc = tile_parse(operand[done], &t[done], &recording, err);
		if (rc == 0)
			rc = run_read(&t[done].run, recording, o, err);
		if (rc == 0)
			assertion_holds(&a, &t[done].run.requests, &t[done].value);
	}
	struct origin origin = { 0 };
	for (size_t i = 0; i < n && rc == 0; i++)
		origin_add(&origin, &t[i].run.origin);
	if (rc == 0 && o->how.format == FORMAT_TEXT) {
		origin_write_head(&origin, stdout);
		print_heat(t, n, quantity, a.metric);
	} else if (rc == 0) {
		rc = report_tiles(t, n, quantity, o->how, &origin, err);
	}
	origin_release(&origin);
	while (done > 0) {
		run_release(&t[--done].run);
		free(t[done].load);
		free(t[done].vms);
	}
	free(t);
	free(text);
	return rc;
}

/* ---- The command -------------------------------------------------------------------------------------------- */

static int report_runs(char **operand, size_t n, const struct run_options *o, bool scatter, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("latency-report", level_columns);
	struct origin origin = { 0 };
	struct latency_run run[2] = { { 0 } };
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = run_read(&run[i], operand[i], o, err);
	if (rc == 0)
		origin = run_origins(run, n);
	if (rc == 0 && o->how.format == FORMAT_TEXT)
		origin_write_head(&origin, stdout);
	if (rc == 0 && o->how.format != FORMAT_TEXT) {
		struct report *out = report_begin(stdout, o->how, &shape, &origin);
		for (size_t i = 0; i < n; i++)
			add_run_rows(out, &run[i]);
		rc = report_end(out, err);
	} else if (rc == 0 && n == 2) {
		print_comparison(&run[0], &run[1]);
	} else if (rc == 0) {
		print_distribution(&run[0], scatter);
	}
	origin_release(&origin);
	run_release(&run[0]);
	run_release(&run[1]);
	return rc;
}

int latency_report(int argc, char **argv, struct error *err)
{
	struct run_options o = { 0 };
	bool scatter = false, heat = false;
	const char *quantity = "p99.share";
	const struct opt opt[] = {
		RUN_OPTIONS(&o),
		SPAN_OPTIONS(&o.spans),
		MODEL_OPTION(&o),
		{ "scatter", 0, OPT_FLAG, NULL, "add a plot of latency against time scheduled out", &scatter, NULL },
		{ "heat", 0, OPT_FLAG, NULL, "heat map; operands are LOAD,VMS=RECORDING", &heat, NULL },
		{ "value", 0, OPT_TEXT, "QUANTITY", "cells (default p99.share; for example p50.predicted)", &quantity, NULL },
		ANSWER_OPTIONS(&o.how),
	};
	const struct opts opts = { "latency report RECORDING [RECORDING]",
	                           "Print latency and the provider's part: one run, two compared, or a map (--heat).", opt,
	                           sizeof opt / sizeof *opt, 1, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	size_t n = (size_t)(argc - first);
	if (heat)
		return report_heat(argv + first, n, quantity, &o, err);
	if (n > 2)
		return error_set(err, STATUS_USAGE, "see --heat for a grid of runs", "latency report: one or two runs, not %zu", n);
	return report_runs(argv + first, n, &o, scatter, err);
}
