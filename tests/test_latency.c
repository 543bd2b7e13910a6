/* latency/: Gaussian process, distributions, csv tables, assertions, plots. Requests: test_latency_request.c. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/mem.h"
#include "latency/latency.h"

/* Returns the next number of splitmix64 in [0, 1): the same sequence on every platform. */
static double random_uniform(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double random_normal(uint64_t *seed)
{
	double u = random_uniform(seed), v = random_uniform(seed);
	return sqrt(-2 * log(u + 1e-300)) * cos(2 * acos(-1) * v);
}

/* ---- Gaussian process --------------------------------------------------------------------------------------- */

#define D 3
static const char *const names[D] = { "out", "exits", "useless" };

/* Raw units on purpose: ns and counts. The third input has no influence. */
static double true_shift(const double *x)
{
	return 2e6 * sin(x[0] / 1e7) + 0.4 * x[0] + 300 * x[1];
}

static void draw_samples(uint64_t *seed, size_t n, double noise, double *x, double *y)
{
	for (size_t i = 0; i < n; i++) {
		x[i * D] = 6e7 * random_uniform(seed);
		x[i * D + 1] = floor(5000 * random_uniform(seed));
		x[i * D + 2] = random_uniform(seed);
		y[i] = true_shift(x + i * D) + noise * random_normal(seed);
	}
}

static void test_gp_recovers(void **state)
{
	(void)state;
	enum { N = 600, TESTS = 1000 };
	static double x[N * D], y[N], tx[TESTS * D], ty[TESTS];
	static struct gp_prediction a[TESTS];
	uint64_t seed = 1;
	const double noise = 4e5;
	draw_samples(&seed, N, noise, x, y);
	draw_samples(&seed, TESTS, noise, tx, ty);
	struct error err = ERROR_INIT;
	struct gp_options some = { .rows = 160, .steps = 40 };
	struct gp *g = gp_train(names, D, x, y, N, &some, &err);
	assert_non_null(g);
	assert_int_equal(gp_predict(g, tx, TESTS, a, &err), 0);
	size_t covers_truth = 0, covers_sample = 0;
	double square = 0, width = 0;
	for (size_t i = 0; i < TESTS; i++) {
		double f = true_shift(tx + i * D);
		assert_true(a[i].low < a[i].mean && a[i].mean < a[i].high);
		covers_truth += a[i].low <= f && f <= a[i].high;
		covers_sample += a[i].low <= ty[i] && ty[i] <= a[i].high;
		square += (a[i].mean - f) * (a[i].mean - f);
		width += a[i].high - a[i].low;
	}
	assert_true(covers_truth >= TESTS * 95 / 100);
	/* Coverage of new samples: the intervals are neither far too narrow nor far too wide. */
	assert_true(covers_sample >= TESTS * 92 / 100);
	assert_true(covers_sample <= TESTS * 98 / 100);
	assert_true(width / TESTS < 2.2 * 1.96 * noise * 1.2);
	/* The error of the mean is smaller than the noise of one sample. */
	assert_true(sqrt(square / TESTS) < noise / 2);
	gp_free(g);
}

static void test_gp_row_order(void **state)
{
	(void)state;
	enum { N = 400, M = 7 };
	static double x[N * D], y[N], sx[N * D], sy[N];
	uint64_t seed = 2;
	draw_samples(&seed, N, 1e5, x, y);
	for (size_t i = 0; i < N; i++) {
		size_t to = (i * 171 + 13) % N;  /* 171 and 400 have no common factor */
		memcpy(sx + to * D, x + i * D, D * sizeof *x);
		sy[to] = y[i];
	}
	struct error err = ERROR_INIT;
	struct gp_options small = { .rows = 64, .steps = 20 };
	struct gp *a = gp_train(names, D, x, y, N, &small, &err), *b = gp_train(names, D, sx, sy, N, &small, &err);
	assert_non_null(a);
	assert_non_null(b);
	struct gp_prediction pa[M], pb[M];
	assert_int_equal(gp_predict(a, x, M, pa, &err), 0);
	assert_int_equal(gp_predict(b, x, M, pb, &err), 0);
	for (size_t i = 0; i < M; i++) {
		assert_true(pa[i].mean == pb[i].mean);
		assert_true(pa[i].high == pb[i].high);
	}
	gp_free(a);
	gp_free(b);
}

static void test_gp_file(void **state)
{
	(void)state;
	enum { N = 100 };
	static double x[N * D], y[N];
	uint64_t seed = 3;
	draw_samples(&seed, N, 1e5, x, y);
	struct error err = ERROR_INIT;
	struct gp_options small = { .rows = 40, .steps = 10 };
	struct gp *g = gp_train(names, D, x, y, N, &small, &err);
	assert_non_null(g);
	char path[] = "test-model-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(gp_save(g, path, &err), 0);
	struct gp *again = gp_load(path, &err);
	assert_non_null(again);
	assert_int_equal(gp_inputs(again), D);
	assert_string_equal(gp_input(again, 2), "useless");
	struct gp_prediction a[N], b[N];
	assert_int_equal(gp_predict(g, x, N, a, &err), 0);
	assert_int_equal(gp_predict(again, x, N, b, &err), 0);
	for (size_t i = 0; i < N; i++) {
		assert_true(a[i].mean == b[i].mean && a[i].low == b[i].low);
		assert_false(a[i].outside);
	}
	gp_free(again);
	/* A truncated file is refused, and a changed byte is refused or harmless. */
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	static char text[200000];
	size_t size = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	assert_true(size < sizeof text - 1);
	uint64_t pick = 4;
	for (int i = 0; i < 120; i++) {
		size_t cut = (size_t)(random_uniform(&pick) * (double)(size - 1));
		char saved = text[cut];
		f = fopen(path, "w");
		fwrite(text, 1, i % 2 ? cut : size, f);
		if (i % 2 == 0) {
			fseek(f, (long)cut, SEEK_SET);
			fputc('x', f);
		}
		fclose(f);
		struct error refused = ERROR_INIT;
		again = gp_load(path, &refused);
		if (i % 2 && cut + 30 < size)
			assert_null(again);
		if (!again)
			assert_string_not_equal(refused.text, "");
		gp_free(again);
		text[cut] = saved;
	}
	unlink(path);
	assert_null(gp_load("no-such-model", &err));
	assert_int_equal(err.status, STATUS_INPUT);
	gp_free(g);
}

static void test_gp_bounds(void **state)
{
	(void)state;
	enum { N = 60 };
	static double x[N * D], y[N], zero[N];
	uint64_t seed = 5;
	draw_samples(&seed, N, 0, x, y);
	struct error err = ERROR_INIT;
	struct gp_options small = { .rows = 32, .steps = 10 };
	assert_null(gp_train(names, D, x, y, 7, &small, &err));
	double saved = x[4];
	x[4] = (double)NAN;
	assert_null(gp_train(names, D, x, y, N, &small, &err));
	x[4] = saved;
	/* No shift in the training data: the prediction is exactly 0 everywhere. */
	struct gp *g = gp_train(names, D, x, zero, N, &small, &err);
	assert_non_null(g);
	double far[D] = { 1e9, 1e9, -5 };
	struct gp_prediction a;
	assert_int_equal(gp_predict(g, far, 1, &a, &err), 0);
	assert_true(a.mean == 0 && a.low == 0 && a.high == 0 && a.outside);
	gp_free(g);
	/* A constant input and repeated rows do no harm. */
	for (size_t i = 0; i < N; i++)
		x[i * D + 2] = 7e17;
	memcpy(x + D, x, D * sizeof *x);
	memcpy(x + 2 * D, x, D * sizeof *x);
	g = gp_train(names, D, x, y, N, &small, &err);
	assert_non_null(g);
	assert_int_equal(gp_predict(g, x, 1, &a, &err), 0);
	assert_true(isfinite(a.mean) && isfinite(a.low) && !a.outside);
	gp_free(g);
}

/* A proportional effect continues beyond the training data, with a wider interval, and is flagged. */
static void test_gp_trend(void **state)
{
	(void)state;
	enum { N = 200 };
	static double x[N], y[N];
	uint64_t seed = 6;
	const char *const one[] = { "out_flight" };
	for (size_t i = 0; i < N; i++) {
		x[i] = 4e7 * random_uniform(&seed);
		y[i] = 0.9 * x[i] + 5e5 * random_normal(&seed);
	}
	struct error err = ERROR_INIT;
	struct gp_options some = { .rows = 96 };
	struct gp *g = gp_train(one, 1, x, y, N, &some, &err);
	assert_non_null(g);
	double at[] = { 2e7, 6.4e7 };
	struct gp_prediction a[2];
	assert_int_equal(gp_predict(g, at, 2, a, &err), 0);
	assert_true(fabs(a[1].mean - 0.9 * 6.4e7) < 0.05 * 6.4e7);
	assert_true(a[1].high - a[1].low > a[0].high - a[0].low);
	assert_true(!a[0].outside && a[1].outside);
	gp_free(g);
}

/* Adds a run with one input; its effect per unit (`slope`) differs slightly from run to run. */
static void add_run(struct training *t, uint64_t *seed, double slope, double from, double to)
{
	enum { N = 60 };
	double x[N], latency[N], base[N];
	for (size_t i = 0; i < N; i++) {
		/* A baseline without noise: the shift is exactly the effect. */
		x[i] = from + (to - from) * ((double)i + 0.3 * random_uniform(seed)) / N;
		base[i] = 1e7;
		latency[i] = 1e7 + slope * x[i] + 1e4 * random_normal(seed);
	}
	training_add(t, x, latency, N, base, N);
}

/* Intervals from rows alone are too narrow for a new run; cross-validation that leaves out whole runs measures by how
 * much. */
static void test_spread(void **state)
{
	(void)state;
	const char *const one[] = { "out_flight" };
	struct error err = ERROR_INIT;
	static const double alike[] = { 0, 1, 1, 1 }, unlike[] = { 0, 0.85, 1.15, 0.95 };
	double spread[2];
	for (int k = 0; k < 2; k++) {
		uint64_t seed = 9;
		struct training t, other;
		training_init(&t, one, 1);
		for (size_t i = 0; i < COUNT(alike); i++)
			add_run(&t, &seed, k ? unlike[i] : alike[i], 0, 2e7 + 1e6 * (double)i);
		assert_int_equal(t.runs, COUNT(alike));
		struct gp_options small = { .rows = 64, .steps = 30 };
		struct gp *g = training_learn(&t, &small, &err);
		assert_non_null(g);
		spread[k] = gp_spread(g);
		training_init(&other, one, 1);
		add_run(&other, &seed, 1.05, 5e6, 2e7);
		struct gp_prediction a[60];
		assert_int_equal(gp_predict(g, other.x, 60, a, &err), 0);
		size_t covered = 0;
		for (size_t i = 0; i < 60; i++)
			covered += a[i].low <= other.y[i] && other.y[i] <= a[i].high;
		if (k)
			assert_true(covered >= 60 * 95 / 100);
		training_release(&other);
		training_release(&t);
		gp_free(g);
	}
	assert_true(spread[1] > 0.03);
	/* The factor adds to the interval that exists already: for errors alone it would be 1.39. */
	assert_true(spread[0] < 1.2 && spread[1] < 1.2);
}

/* ---- Distributions ------------------------------------------------------------------------------------------ */

static void test_quantile(void **state)
{
	(void)state;
	static const double v[] = { 1, 2, 3, 4 };
	assert_true(stats_quantile(v, 4, 0) == 1);
	assert_true(stats_quantile(v, 4, 0.5) == 2.5);
	assert_true(stats_quantile(v, 4, 1) == 4);
	assert_true(stats_quantile(v, 4, 0.375) == 2);
	assert_true(stats_quantile(v, 1, 0.7) == 1);
}

static void test_shift(void **state)
{
	(void)state;
	enum { N = 997 };
	static double a[N], b[N], shift[N], longer[3 * N];
	uint64_t seed = 7;
	for (size_t i = 0; i < N; i++)
		a[i] = floor(50 * random_uniform(&seed)) * 1.1;  /* many ties */
	for (size_t i = 0; i < N; i++)
		b[(i * 5 + 3) % N] = a[i];
	/* Equal distributions: exactly zero, in any order. */
	stats_shift(b, N, a, N, shift);
	for (size_t i = 0; i < N; i++)
		assert_true(shift[i] == 0);
	/* Three copies of a distribution are the same distribution. */
	for (size_t i = 0; i < 3 * N; i++)
		longer[i] = a[i % N];
	stats_shift(a, N, longer, 3 * N, shift);
	for (size_t i = 0; i < N; i++)
		assert_true(shift[i] == 0);
	/* A constant added to every latency shifts by that constant; the order of the baseline is irrelevant. */
	for (size_t i = 0; i < N; i++)
		b[i] = a[i] + 64;
	stats_shift(b, N, a, N, shift);
	for (size_t i = 0; i < N; i++)
		assert_true(fabs(shift[i] - 64) < 1e-9);
	/* Twice as slow: each request is shifted by its own baseline latency. */
	for (size_t i = 0; i < N; i++) {
		a[i] = (double)i + 1;
		b[i] = 2 * a[i];
	}
	stats_shift(b, N, a, N, shift);
	for (size_t i = 0; i < N; i++)
		assert_true(shift[i] == a[i]);
}

static void test_clusters(void **state)
{
	(void)state;
	enum { N = 9000 };
	static double v[N];
	struct cluster c[4];
	uint64_t seed = 8;
	for (size_t i = 0; i < N; i++)
		v[i] = i % 3 ? 0.66 + 0.02 * random_normal(&seed) : 0.3 + 0.03 * random_normal(&seed);
	v[0] = 40;  /* one outlier is no cluster */
	size_t n = stats_clusters(v, N, c, 4);
	assert_int_equal(n, 2);
	assert_true(fabs(c[0].median - 0.66) < 0.005 && fabs(c[0].share - 2.0 / 3) < 0.01);
	assert_true(fabs(c[1].median - 0.30) < 0.005 && fabs(c[1].share - 1.0 / 3) < 0.01);
	for (size_t i = 0; i < N; i++)
		v[i] = random_normal(&seed);
	assert_int_equal(stats_clusters(v, N, c, 4), 1);
	for (size_t i = 0; i < N; i++)
		v[i] = 5;
	assert_int_equal(stats_clusters(v, N, c, 4), 1);
	assert_true(c[0].median == 5 && c[0].share == 1);
}

/* ---- Tables ------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_csv(void **state)
{
	(void)state;
	char path[] = "test-csv-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	struct table t;
	struct error err = ERROR_INIT;
	write_file(path, "a,\"b,\"\"c\",d\r\n1,2.5,x\n-3e2,,\"7\"\n");
	assert_int_equal(table_read(&t, path, &err), 0);
	assert_int_equal(t.columns, 3);
	assert_int_equal(t.rows, 2);
	assert_int_equal(table_find(&t, "b,\"c"), 1);
	assert_int_equal(table_find(&t, "x"), -1);
	assert_int_equal(table_find(&t, "d"), 2);  /* without the line break */
	assert_true(t.cell[0] == 1 && t.cell[1] == 2.5 && isnan(t.cell[2]));
	assert_true(t.cell[3] == -300 && isnan(t.cell[4]) && t.cell[5] == 7);
	table_release(&t);
	static const char *const wrong[] = { "", "a,b\n", "a,b\n1\n", "a,b\n1,2,3\n" };
	for (size_t i = 0; i < COUNT(wrong); i++) {
		write_file(path, wrong[i]);
		struct error refused = ERROR_INIT;
		assert_int_equal(table_read(&t, path, &refused), -1);
		assert_int_equal(refused.status, STATUS_INPUT);
		assert_null(t.cell);
	}
	write_file(path, "a,last\n\n1,2\n\r\n3,4");
	assert_int_equal(table_read(&t, path, &err), 0);
	assert_int_equal(table_find(&t, "last"), 1);
	assert_int_equal(t.rows, 2);
	assert_true(t.cell[1] == 2 && t.cell[3] == 4);
	table_release(&t);
	/* Filter of the Soroban data: drops rows with a wall time beyond the latency or with a counter that wrapped. */
	write_file(path, "wct_us,srv_lat_us,xen_cyc\n5,10,7\n11,10,7\n5,10,1e9\n10,10,999999999\n");
	assert_int_equal(table_read(&t, path, &err), 0);
	assert_int_equal(table_filter(&t, table_soroban_keeps_row), 2);
	assert_int_equal(t.rows, 2);
	assert_true(t.cell[3] == 10);
	table_release(&t);
	unlink(path);
}

static char *shared_path(const char *name)
{
	const char *srcdir = getenv("srcdir");
	return mem_printf("%s/../shared/%s", srcdir ? srcdir : ".", name);
}

static bool read_soroban(const char *name, struct table *t)
{
	char *path = shared_path(name);
	struct error err = ERROR_INIT;
	bool there = access(path, R_OK) == 0;
	if (there) {
		assert_int_equal(table_read(t, path, &err), 0);
		table_filter(t, table_soroban_keeps_row);
	}
	free(path);
	return there;
}

/* The published measurements: the clusters are at the medians that Fig. 2 of the Soroban paper shows. */
static void test_soroban_clusters(void **state)
{
	(void)state;
	struct table t;
	if (!read_soroban("soroban-data/realistic_normal_xen256_500K.csv", &t))
		skip();
	assert_int_equal(t.rows, 13744);
	double *ratio = mem_new(t.rows, sizeof *ratio), *out = mem_new(t.rows, sizeof *out);
	double *latency = mem_new(t.rows, sizeof *latency);
	size_t xen = (size_t)table_find(&t, "xen_cyc"), srv = (size_t)table_find(&t, "srv_lat_cyc");
	for (size_t i = 0; i < t.rows; i++) {
		out[i] = t.cell[i * t.columns + xen];
		latency[i] = t.cell[i * t.columns + srv];
		ratio[i] = out[i] / latency[i];
	}
	struct cluster c[4];
	size_t n = stats_clusters(ratio, t.rows, c, 4);
	assert_true(n >= 2);
	double lower = fmin(c[0].median, c[1].median), upper = fmax(c[0].median, c[1].median);
	assert_true(fabs(lower - 0.304) < 0.015);
	assert_true(fabs(upper - 0.658) < 0.015);
	assert_true(fabs(stats_correlation(out, latency, t.rows) - 0.093) < 0.002);
	free(ratio);
	free(out);
	free(latency);
	table_release(&t);
}

/* ---- Assertions and plots ----------------------------------------------------------------------------------- */

static void test_assertion(void **state)
{
	(void)state;
	struct request row[100];
	memset(row, 0, sizeof row);
	for (int i = 0; i < 100; i++) {
		row[i].end = 10000000 - 1;  /* 10 ms */
		row[i].high = i * 100000;   /* 0 .. 9.9 ms */
		row[i].low = row[i].high / 2;
	}
	struct requests r = { row, COUNT(row), 0, 0, 0 };
	static const struct { const char *text; bool holds; } cases[] = {
		{ "p99.provider<2ms", false }, { "p99.provider<9.9ms", true }, { "p50.provider_low<=2.5ms", true },
		{ "p99.9.provider>=9.9ms", true }, { "max.provider<=9.9ms", true }, { "max.provider<9.9ms", false },
		{ "min.customer > 90us", true }, { "p50.share<50%", true }, { "p50.share < 0.4", false },
		{ "mean.latency>9999us", true }, { "mean.high_share>=49%", true }, { "p0.provider<=0", true },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct assertion a;
		struct error err = ERROR_INIT;
		double value;
		assert_int_equal(assertion_parse(cases[i].text, &a, &err), 0);
		assert_int_equal(assertion_holds(&a, &r, &value), cases[i].holds);
	}
	static const char *const wrong[] = {
		"", "p99", "p99.provider", "p99.provider<", "p101.provider<1ms", "p.provider<1ms", "pp9.provider<1ms",
		"p99.other<1ms", "p99.provider<2 bananas", "p99.share<2ms", "99.provider<2ms", ".provider<1", "p9-.share<1",
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct assertion a;
		struct error err = ERROR_INIT;
		assert_int_equal(assertion_parse(wrong[i], &a, &err), -1);
		assert_int_equal(err.status, STATUS_USAGE);
	}
}

static char *format_percent(char *buf, size_t size, double v)
{
	snprintf(buf, size, "%.0f%%", 100 * v);
	return buf;
}

static void test_plots(void **state)
{
	(void)state;
	char bar[32];
	plot_bar(bar, sizeof bar, 10, 0.2, 0.5);
	assert_string_equal(bar, "##+++.....");
	plot_bar(bar, 4, 10, 1, 1);
	assert_string_equal(bar, "###");
	plot_bar(bar, sizeof bar, 10, 0, 0);
	assert_string_equal(bar, "..........");
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	double heat[] = { 0, 0.5, (double)NAN, 1 };
	const char *const rows[] = { "1 VM", "2 VMs" }, *const columns[] = { "g1", "g3" };
	plot_heat(f, heat, rows, 2, columns, 2, format_percent);
	fclose(f);
	assert_string_equal(text, "               g1          g3\n"
	                          " 1 VM       0%         50% ++\n"
	                          "2 VMs        -        100% @@\n");
	free(text);
	f = open_memstream(&text, &size);
	double x[] = { 0, 1e6, 1e6, 1e6 }, y[] = { 0, 5e5, 5e5, 5e5 };
	plot_scatter(f, x, y, 4, "out", "latency");
	fclose(f);
	assert_non_null(strstr(text, "latency (up to 500 us)\n"));
	assert_non_null(strstr(text, ":\n"));
	for (char *line = strtok_r(text, "\n", &(char *){ NULL }); line; line = NULL)
		assert_true(strlen(line) <= 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gp_recovers),
		cmocka_unit_test(test_gp_row_order),
		cmocka_unit_test(test_gp_file),
		cmocka_unit_test(test_gp_bounds),
		cmocka_unit_test(test_gp_trend),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_quantile),
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_soroban_clusters),
		cmocka_unit_test(test_assertion),
		cmocka_unit_test(test_plots),
	};
	return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
