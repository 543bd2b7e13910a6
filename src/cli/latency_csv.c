/* stealscope latency train --csv: trains a model with measurements from csv files, one row per request.
 *
 * Supports the columns of the data that the authors of Soroban published (times in cycles; faulty rows are dropped by
 * their rule), and the columns that `latency requests --features --format csv` writes (ns). */
#include <math.h>

#include "base/base.h"
#include "cli/latency_cmd.h"

#define TIME_MAX_NS 1e18  /* maximum latency: 31 years */
#define INPUT_MAX 1e100   /* maximum absolute input value, so that its square is finite */

struct sheet {
	const char *file;
	struct table table;
	size_t dropped;       /* faulty rows that were dropped */
	int latency, out;     /* indices of the columns latency and time scheduled out; -1: no such column */
	double ns_per_unit;   /* unit of both columns */
};

static int find_column(const struct sheet *s, const char *wanted, const char *const *default_names, int *column,
                       struct error *err)
{
	*column = wanted ? table_find(&s->table, wanted) : -1;
	for (size_t i = 0; !wanted && default_names[i] && *column < 0; i++)
		*column = table_find(&s->table, default_names[i]);
	if (*column < 0 && wanted)
		return error_set(err, STATUS_INPUT, NULL, "%s: no column %s", s->file, wanted);
	return 0;
}

/* Returns the cycles per us of the measured machine: the median ratio of the two columns with the latency; 0: unknown. */
static double cycles_per_us(const struct table *t)
{
	int cycles = table_find(t, "srv_lat_cyc"), us = table_find(t, "srv_lat_us");
	if (cycles < 0 || us < 0)
		return 0;
	double *ratio = mem_new(t->rows, sizeof *ratio);
	size_t n = 0;
	for (size_t i = 0; i < t->rows; i++) {
		double v = t->cell[i * t->columns + (size_t)cycles] / t->cell[i * t->columns + (size_t)us];
		if (isfinite(v) && v > 0)
			ratio[n++] = v;
	}
	qsort(ratio, n, sizeof *ratio, order_double);
	double median = n ? stats_quantile(ratio, n, 0.5) : 0;
	free(ratio);
	return median;
}

static int sheet_read(struct sheet *s, const char *file, const struct csv_options *o, struct error *err)
{
	static const char *const latency[] = { "srv_lat_cyc", "latency_ns", NULL };
	static const char *const out[] = { "xen_cyc", "out_flight", NULL };
	*s = (struct sheet){ .file = file, .ns_per_unit = 1 };
	if (table_read(&s->table, file, err))
		return -1;
	if (find_column(s, o->latency, latency, &s->latency, err) || find_column(s, o->out, out, &s->out, err))
		return -1;
	if (s->latency < 0)
		return error_set(err, STATUS_INPUT, "name the column with --latency", "%s: no column with the latency found", file);
	s->dropped = table_filter(&s->table, table_soroban_keeps_row);
	double rate = o->latency ? 0 : cycles_per_us(&s->table);
	if (rate > 0)
		s->ns_per_unit = 1000 / rate;
	if (s->table.rows == 0)
		return error_set(err, STATUS_INPUT, NULL, "%s: no row left after dropping faulty ones", file);
	const double max = TIME_MAX_NS / s->ns_per_unit;
	if (table_check(&s->table, s->latency, 0, max, file, err))
		return -1;
	return s->out < 0 ? 0 : table_check(&s->table, s->out, 0, max, file, err);
}

static double *column_ns(const struct sheet *s, int column)
{
	const struct table *t = &s->table;
	double *v = mem_new(t->rows, sizeof *v);
	for (size_t i = 0; i < t->rows; i++)
		v[i] = t->cell[i * t->columns + (size_t)column] * s->ns_per_unit;
	return v;
}

static void print_quantiles(const char *label, double *v, size_t n)
{
	static const double p[] = { 0.5, 0.9, 0.99, 0.999 };
	printf("  %-16s", label);
	stats_sort(v, n);
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		char text[TIME_TEXT];
		printf(" %11s", time_duration(text, (int64_t)stats_quantile(v, n, p[i])));
	}
	putchar('\n');
}

/* Prints quantiles of latency and time scheduled out, their correlation, and the clusters of the paper's Fig. 2. */
static void describe_sheet(const struct sheet *s)
{
	size_t n = s->table.rows;
	char name[200];
	printf("%s: %zu requests", text_escape(name, sizeof name, s->file), n);
	if (s->dropped)
		printf(" (%zu dropped: wall time beyond the latency, or a wrapped counter)", s->dropped);
	printf("\n  %-16s %11s %11s %11s %11s\n", "", "p50", "p90", "p99", "p99.9");
	double *latency = column_ns(s, s->latency), *ratio = mem_new(n, sizeof *ratio);
	if (s->out >= 0) {
		double *out = column_ns(s, s->out);
		struct cluster c[3];
		double correlation = stats_correlation(out, latency, n);
		for (size_t i = 0; i < n; i++)
			ratio[i] = latency[i] > 0 ? out[i] / latency[i] : 0;
		size_t clusters = stats_clusters(ratio, n, c, sizeof c / sizeof *c);
		print_quantiles("latency", latency, n);
		print_quantiles("scheduled out", out, n);
		printf("  correlation of the two %.3f\n  clusters of the share scheduled out:", correlation);
		for (size_t i = 0; i < clusters && c[i].share >= 0.05; i++)
			printf("%s %.3f (%.0f%%)", i ? "," : "", c[i].median, 100 * c[i].share);
		putchar('\n');
		free(out);
	} else {
		print_quantiles("latency", latency, n);
	}
	free(latency);
	free(ratio);
}

/* ---- Training ----------------------------------------------------------------------------------------------- */

/* Returns true for columns with results or identifiers, which are inputs of the model only on request (--input). */
static bool is_result(const char *name)
{
	static const char *const result[] = {
		"latency_ns", "srv_lat_us", "srv_lat_cyc", "wct_us", "id", "request", "start", "end", "no_vms",
		"provider_low_ns", "provider_high_ns", "predicted_ns", "ci_low_ns", "ci_high_ns", "executing", "unknown",
	};
	for (size_t i = 0; i < sizeof result / sizeof *result; i++) {
		if (strcmp(name, result[i]) == 0)
			return true;
	}
	return false;
}

/* Returns -1 if an input column is missing or not numeric in a row, or constant over all sheets. */
static int check_input(const struct sheet *sheet, size_t n, const char *name, struct error *err)
{
	bool varies = false;
	for (size_t s = 0; s < n; s++) {
		const struct table *t = &sheet[s].table;
		int column = table_find(t, name);
		if (column < 0)
			return error_set(err, STATUS_INPUT, NULL, "%s: no column %s", sheet[s].file, name);
		if (table_check(t, column, -INPUT_MAX, INPUT_MAX, sheet[s].file, err))
			return -1;
		double first = sheet[0].table.cell[table_find(&sheet[0].table, name)];
		for (size_t i = 0; i < t->rows; i++)
			varies = varies || t->cell[i * t->columns + (size_t)column] != first;
	}
	return varies ? 0 : error_set(err, STATUS_INPUT, NULL, "column %s: all values are equal", name);
}

static size_t choose_inputs(const struct sheet *sheet, size_t n, const struct csv_options *o, const char **name,
                            struct error *err)
{
	size_t d = 0;
	for (size_t i = 0; i < o->input.len; i++) {
		if (d == GP_FEATURES) {
			error_set(err, STATUS_USAGE, NULL, "--input: more than %d columns", GP_FEATURES);
			return 0;
		}
		if (check_input(sheet, n, o->input.item[i], err))
			return 0;
		name[d++] = o->input.item[i];
	}
	const struct table *t = &sheet[0].table;
	for (size_t i = 0; !o->input.len && i < t->columns && d < GP_FEATURES; i++) {
		if (!is_result(t->column[i]) && (int)i != sheet[0].latency && check_input(sheet, n, t->column[i], NULL) == 0)
			name[d++] = t->column[i];
	}
	if (d == 0)
		error_set(err, STATUS_INPUT, "name columns with --input", "no column can be an input");
	return d;
}

static double *input_columns(const struct sheet *s, const char *const *name, size_t d)
{
	const struct table *t = &s->table;
	double *x = mem_new(t->rows * d, sizeof *x);
	for (size_t j = 0; j < d; j++) {
		size_t column = (size_t)table_find(t, name[j]);
		for (size_t i = 0; i < t->rows; i++)
			x[i * d + j] = t->cell[i * t->columns + column];
	}
	return x;
}

/* Compares predicted and measured shifts for all rows of a run; only some of them were used for training. */
static int print_fit(const struct sheet *s, const struct sheet *baseline, const struct gp *g, const char *const *name,
                     size_t d, struct error *err)
{
	size_t n = s->table.rows, covered = 0;
	double *x = input_columns(s, name, d), *latency = column_ns(s, s->latency);
	double *base = column_ns(baseline, baseline->latency), *shift = mem_new(n, sizeof *shift);
	struct gp_prediction *a = mem_new(n, sizeof *a);
	stats_shift(latency, n, base, baseline->table.rows, shift);
	int rc = gp_predict(g, x, n, a, err);
	if (rc == 0) {
		for (size_t i = 0; i < n; i++) {
			covered += a[i].low <= shift[i] && shift[i] <= a[i].high;
			latency[i] = a[i].mean;
		}
		char file[200];
		printf("%s against the baseline:\n  %-16s %11s %11s %11s %11s\n", text_escape(file, sizeof file, s->file), "",
		       "p50", "p90", "p99", "p99.9");
		print_quantiles("shift", shift, n);
		print_quantiles("predicted", latency, n);
		printf("  %.1f%% of the shifts lie within the model's 95%% interval\n", 100 * (double)covered / (double)n);
	}
	free(x);
	free(latency);
	free(base);
	free(shift);
	free(a);
	return rc;
}

static int learn_sheets(const struct sheet *sheet, size_t n, const char *const *name, size_t d, const struct csv_options *o,
                 struct error *err)
{
	struct training t;
	training_init(&t, name, d);
	double *base = column_ns(&sheet[0], sheet[0].latency);
	for (size_t i = 0; i < n; i++) {
		double *x = input_columns(&sheet[i], name, d), *latency = column_ns(&sheet[i], sheet[i].latency);
		training_add(&t, x, latency, sheet[i].table.rows, base, sheet[0].table.rows);
		free(x);
		free(latency);
	}
	struct gp_options options = { .rows = o->rows };
	struct gp *g = training_learn(&t, &options, err);
	int rc = g ? 0 : -1;
	for (size_t i = 1; i < n && rc == 0; i++)
		rc = print_fit(&sheet[i], &sheet[0], g, name, d, err);
	if (rc == 0 && o->output)
		rc = gp_save(g, o->output, err);
	gp_free(g);
	free(base);
	training_release(&t);
	return rc;
}

int latency_train_csv(char **file, size_t n, const struct csv_options *o, struct error *err)
{
	/* The baseline is the first file; a single file is only described. */
	size_t extra = o->baseline ? 1 : 0, done = 0;
	struct sheet *sheet = mem_new(n + extra, sizeof *sheet);
	int rc = 0;
	for (; done < n + extra && rc == 0; done++)
		rc = sheet_read(&sheet[done], done < extra ? o->baseline : file[done - extra], o, err);
	const char *name[GP_FEATURES];
	size_t inputs = 0;
	if (rc == 0 && o->baseline)
		rc = (inputs = choose_inputs(sheet, done, o, name, err)) > 0 ? 0 : -1;
	else if (rc == 0 && o->output)
		rc = error_set(err, STATUS_USAGE, "specify the file without contention with --baseline",
		               "latency train: no baseline");
	for (size_t i = 0; i < done && rc == 0; i++)
		describe_sheet(&sheet[i]);
	if (rc == 0 && o->baseline)
		rc = learn_sheets(sheet, done, name, inputs, o, err);
	while (done > 0)
		table_release(&sheet[--done].table);
	free(sheet);
	return rc;
}
