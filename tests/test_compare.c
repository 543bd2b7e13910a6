/* compare/diff: estimates against known figures, coverage of the confidence intervals, verdict texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/diff/bootstrap.h"
#include "test.h"

static uint64_t state;

static double random_uniform(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(state >> 11) / 9007199254740992.0;
}

/* Values from tables of Student's distribution; with many degrees of freedom those of the normal distribution. */
static void test_student(void **unused)
{
	static const struct { double p, freedom, t; } known[] = {
		{ 0.25, 1, 1 }, { 0.05, 1, 6.3137515 }, { 0.025, 10, 2.2281389 }, { 0.005, 15, 2.9467129 },
		{ 0.0005, 30, 3.6459586 }, { 0.025, 1e7, 1.9599640 }, { 1e-6, 15, 7.5170 }, { 0.1, 2.5, 1.7300 },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		double t = student_quantile(known[i].p, known[i].freedom);
		if (fabs(t - known[i].t) > (known[i].t > 7 || known[i].freedom == 2.5 ? 2e-2 : 1e-5) * known[i].t)
			fail_msg("p %g, freedom %g: %.7f, not %.7f", known[i].p, known[i].freedom, t, known[i].t);
	}
}

/* No variation: no error. A ratio of sums, not a mean of ratios. */
static void test_ratio(void **unused)
{
	double num[DIFF_SLICES], den[DIFF_SLICES];
	(void)unused;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		den[i] = 1 + i % 3;
		num[i] = 5 * den[i];
	}
	struct estimate e = estimate_ratio(num, den);
	assert_true(fabs(e.value - 5) < 1e-12 && e.error < 1e-9);
	num[7] += 64;
	e = estimate_ratio(num, den);
	double sum = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		sum += den[i];
	assert_true(fabs(e.value - (5 + 64 / sum)) < 1e-12 && e.error > 0);
	memset(den, 0, sizeof den);
	e = estimate_ratio(num, den);
	assert_true(e.value == 0 && e.error == 0);
}

/* Returns the standard error by a block bootstrap with blocks of `length` slices. */
static double bootstrap_error(const double num[DIFF_SLICES], unsigned length)
{
	enum { DRAWS = 20000 };
	const unsigned blocks = DIFF_SLICES / length;
	double sum = 0, squares = 0;
	for (int d = 0; d < DRAWS; d++) {
		double n = 0;
		for (unsigned b = 0; b < blocks; b++)
			for (unsigned k = 0, first = (unsigned)(random_uniform() * DIFF_SLICES); k < length; k++)
				n += num[(first + k) % DIFF_SLICES];
		const double ratio = n / (100.0 * DIFF_SLICES);
		sum += ratio;
		squares += ratio * ratio;
	}
	return sqrt((squares / DRAWS - sum / DRAWS * (sum / DRAWS)) * blocks / (blocks - 1));
}

/* The closed form equals the block bootstrap, for the block length with the larger error. */
static void test_ratio_is_the_bootstrap(void **unused)
{
	double num[DIFF_SLICES], den[DIFF_SLICES];
	(void)unused;
	state = 3;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		den[i] = 100;
		num[i] = 10 * random_uniform() + (i ? 0.7 * num[i - 1] : 0);
	}
	struct estimate e = estimate_ratio(num, den);
	const double drawn = fmax(bootstrap_error(num, DIFF_BLOCK), bootstrap_error(num, BLOCK_LEN_MAX));
	assert_true(fabs(drawn / e.error - 1) < 0.03);
}

static int compare_ns(const void *a, const void *b)
{
	const struct latency *x = a, *y = b;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void test_quantile(void **unused)
{
	enum { N = 4001 };
	struct latency *l = calloc(N, sizeof *l);
	(void)unused;
	state = 9;
	for (unsigned i = 0; i < N; i++)
		l[i] = (struct latency){ .ns = i, .slice = i * 29 % DIFF_SLICES };
	struct estimate e = estimate_quantile(l, N, 0.5);
	assert_true(fabs(e.value - 2000) < 1e-9);
	struct estimate again = estimate_quantile(l, N, 0.5);
	assert_memory_equal(&e, &again, sizeof e);
	/* For uniform variates the error of the p-quantile is range * sqrt(p (1 - p) / n). */
	for (unsigned i = 0; i < N; i++)
		l[i] = (struct latency){ .ns = 1e6 * random_uniform(), .slice = i % DIFF_SLICES };
	qsort(l, N, sizeof *l, compare_ns);
	static const double p[] = { 0.5, 0.9, 0.99 };
	for (size_t i = 0; i < 3; i++) {
		e = estimate_quantile(l, N, p[i]);
		const double expected = 1e6 * sqrt(p[i] * (1 - p[i]) / N);
		assert_true(fabs(e.value - 1e6 * p[i]) < 5 * expected);
		assert_true(e.error > 0.6 * expected && e.error < 1.6 * expected);
	}
	/* For exponential variates with a mean of 1 the squared error is p / (1 - p) / n. */
	double tail = 0, length = 0;
	for (int k = 0; k < 20; k++) {
		for (unsigned i = 0; i < 600; i++)
			l[i] = (struct latency){ .ns = -log(1 - random_uniform()), .slice = i % DIFF_SLICES };
		qsort(l, 600, sizeof *l, compare_ns);
		const struct tail t = quantile_tail(l, 600, 0.99);
		tail += t.error / sqrt(0.99 / 0.01 / 600) / 20;
		length += t.length / log(10) / 20;
	}
	assert_true(fabs(tail - 1) < 0.1 && fabs(length - 1) < 0.1);
	assert_true(quantile_tail(l, 1, 0.99).error == 0);
	e = estimate_quantile(l, 1, 0.99);
	assert_true(e.error == 0);
	/* For any number of values: linear interpolation, with half of each value on either side of it. */
	for (size_t n = 1; n <= 1030; n++)
		for (size_t i = 0; i < 3; i++) {
			const double at = p[i] * (double)n - 0.5;
			const size_t low = at < 0 ? 0 : (size_t)at, high = low + 1 < n ? low + 1 : n - 1;
			const double part_row = at < 0 ? 0 : at - (double)low;
			const double wanted = l[low].ns + (l[high].ns - l[low].ns) * part_row;
			if (fabs(quantile_value(l, n, p[i]) - wanted) > 1e-6)
				fail_msg("%zu, p %g: %.9f, not %.9f", n, p[i], quantile_value(l, n, p[i]), wanted);
		}
	free(l);
}

/* Returns how many of 2000 intervals for the change (at the 5 % level) exclude 0, between two sides with the same
 * distribution. `like` is the correlation of neighbouring slices. */
static unsigned count_false_alarms(double correlation)
{
	enum { TIMES = 2000 };
	struct estimate e[2];
	unsigned out = 0;
	double den[DIFF_SLICES], num[DIFF_SLICES];
	state = 77;
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		den[i] = 1;
	for (int t = 0; t < TIMES; t++) {
		for (int side = 0; side < 2; side++) {
			double before = 0;
			for (unsigned i = 0; i < DIFF_SLICES; i++)
				num[i] = before = correlation * before - log(1 - random_uniform());
			e[side] = estimate_ratio(num, den);
		}
		double change, low, high;
		estimate_change(&e[0], &e[1], 0.05, &change, &low, &high);
		out += low > 0 || high < 0;
	}
	return out;
}

/* The false alarm rate is at most 8 %, 12 % for effects that last several slices; but the intervals are not so wide that
 * it is 0. */
static void test_coverage(void **unused)
{
	static const struct { double correlation; unsigned most; } cases[] = { { 0.3, 160 }, { 0.75, 240 } };
	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const unsigned out = count_false_alarms(cases[i].correlation);
		if (out < 20 || out > cases[i].most)
			fail_msg("%g: 0 is left out in %u of 2000", cases[i].correlation, out);
	}
}

/* A thread that wakes every `period` ns, +- `jitter` / 2, and then waits `waits` times for 3 ms, 1 ms apart. */
static struct variation variation_of(int64_t period, int64_t jitter, unsigned waits, double *clock)
{
	struct wait_statistics walk = { 0 };
	for (int64_t i = 1; i <= 200; i++) {
		variation_add_wakeup(&walk, i * period + (int64_t)((random_uniform() - 0.5) * (double)jitter));
		for (unsigned k = 0; k < waits; k++) {
			variation_add_wait(&walk, 1000000, k == 0);
			variation_add_wait(&walk, 2000000, false);  /* continues the same wait */
			variation_end_wait(&walk);
		}
	}
	*clock = variation_timer_rate(&walk);
	return (struct variation){ .all_waits = walk.all_waits, .timer_waits = walk.all_waits, .squared_rates = *clock * *clock };
}

/* A thread that wakes by a timer may have one wait more per wakeup in another recording: up to there a change proves
 * nothing, beyond it does. */
static void test_variation(void **unused)
{
	enum { MS = 1000000 };
	static const double duration[2] = { 200.0 * 50 * MS, 200.0 * 50 * MS };
	struct variation side[2];
	double clock;
	(void)unused;
	state = 4;
	side[0] = variation_of(50 * MS, MS, 0, &clock);
	assert_true(fabs(clock * 50 * MS - 1) < 0.01);
	side[1] = variation_of(50 * MS, MS, 1, &clock);
	assert_true(fabs(side[1].all_waits.ns - 600.0 * MS) < 1 && fabs(side[1].all_waits.squares - 600.0 * MS * 3 * MS) < 1e6);
	assert_true(fabs(variation_of_loss(side, duration) - 0.06) < 1e-3);
	assert_true(fabs(1e9 * variation_of_gaps(side) - 20) < 0.2);
	side[1] = variation_of(50 * MS, MS, 5, &clock);  /* a loss of 0.3 */
	assert_true(fabs(variation_of_loss(side, duration) - 0.06) < 1e-3);
	side[1].timer_waits.squares *= 20;                 /* waits longer than it sleeps */
	assert_true(variation_of_loss(side, duration) == 0);
	side[0] = side[1] = variation_of(50 * MS, MS, 5, &clock);
	assert_true(variation_of_loss(side, duration) == 0);  /* no difference between the sides */
	(void)variation_of(50 * MS, 60 * MS, 1, &clock);
	assert_true(clock == 0);                       /* it wakes at random times */
}

static void test_assertions(void **unused)
{
	static const char *const wrong[] = { "", "lost", "lost<", "lost<x", "lost>5%", "nothing<5%", "latency<5", "lost<2ms",
	                                     "lost<5%%", "lost<inf", "lost<nan", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<1" };
	struct diff_assertion a;
	struct error err = ERROR_INIT;
	const struct diff_row *worst;
	struct diff_row row = { .target = "Debian", .by = "", .quantity = DIFF_LOST, .before = 0.1, .after = 0.2,
	                        .change = 0.1, .low = 0.05, .high = 0.15, .explains = NAN, .found = true };
	struct diff d = { .row = &row, .rows = 1, .found = 1, .level = 0.99 };
	(void)unused;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (struct error)ERROR_INIT;
		assert_int_equal(diff_assertion_parse(wrong[i], &a, &err), -1);
		assert_int_equal(err.status, STATUS_USAGE);
	}
	static const struct { const char *text; bool holds; } right[] = {
		{ "same", false }, { "lost<+40%", false }, { "lost<+60%", true }, { "lost<0.04", false }, { "lost<0.06", true },
		{ "ran<1%", true }, { "latency_p50<+2ms", true },
	};
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		assert_int_equal(diff_assertion_parse(right[i].text, &a, &err), 0);
		if (diff_assertion_holds(&a, &d, &worst) != right[i].holds)
			fail_msg("%s", right[i].text);
		assert_true(right[i].holds == (worst == NULL));
	}
	d.found = 0;
	assert_int_equal(diff_assertion_parse("same", &a, &err), 0);
	assert_true(diff_assertion_holds(&a, &d, &worst));
}

static struct diff_row total_row(const char *target, enum diff_kind kind, enum diff_quantity q, double before, double after)
{
	const double change = after - before, reach = fabs(change) / 2;
	return (struct diff_row){ .target = target, .by = "", .kind = (uint8_t)kind, .quantity = (uint8_t)q, .before = before,
		.after = after, .change = change, .low = change - reach, .high = change + reach, .explains = NAN, .found = true };
}

static struct diff_row part_row(struct diff_row r, const char *by, double after, double explains, bool found)
{
	r.by = by;
	r.before = 0;
	r.after = r.change = after;
	r.low = after / 2;
	r.high = 2 * after;
	r.explains = explains;
	r.found = found;
	return r;
}

/* Checks that the verdict contains the words of `keys` (separated by '|') in order, but not `absent` (NULL: any). */
static void assert_verdict(const struct diff_row *row, size_t rows, size_t found, const char *keys, const char *absent)
{
	const struct diff d = { .row = (struct diff_row *)row, .rows = rows, .found = found, .totals = rows, .targets = rows,
	                        .level = 0.99 };
	char *text = diff_verdict(&d), *rest = text;
	for (const char *key = keys; rest && *key; key += strcspn(key, "|"), key += *key == '|') {
		char word[64];
		snprintf(word, sizeof word, "%.*s", (int)strcspn(key, "|"), key);
		rest = strstr(rest, word);
		if (!rest)
			fail_msg("\"%s\" does not contain \"%s\"", text, keys);
		rest += strlen(word);
	}
	if (absent && strstr(text, absent))
		fail_msg("\"%s\" contains \"%s\"", text, absent);
	free(text);
}

/* If nothing explains a change, the verdict mentions the thread that runs more than before, without blaming it. */
static void test_unexplained(void **unused)
{
	struct diff_row row[] = {
		total_row("Debian/synio", DIFF_OF_THREAD, DIFF_LOST, 0.1, 0.3),
		total_row("host/cron", DIFF_OF_THREAD, DIFF_RAN, 0, 0.02),
		total_row("host/rtburst", DIFF_OF_THREAD, DIFF_RAN, 0, 0.375),
		total_row("host/burnP6", DIFF_OF_THREAD, DIFF_RAN, 0.5, 0),
		part_row(row[0], "host/cron", 0.02, NAN, false),
	};
	(void)unused;
	assert_verdict(row, 5, 4, "Debian/synio lost 30.0%|10.0%|+20.0%|+10.0%|+30.0%|\nNo part of it|runs more|"
	               "host/rtburst|37.5%|0.00%|+18.8%|+56.2%", "% of the change");
	/* The change has no parts. */
	assert_verdict(row, 4, 4, "Debian/synio|runs more|host/rtburst|37.5%", "No part");
	assert_verdict(row, 1, 1, "Debian/synio lost|\n", "host/");
	row[1] = row[4];
	assert_verdict(row, 2, 1, "Debian/synio lost|\nNo part of it", "host/");
	/* The part exceeds the change, because others took less. */
	row[1] = part_row(row[0], "host/cron", 0.23, 1.15, true);
	assert_verdict(row, 2, 2, "Debian/synio lost|115%|host/cron|23.0%|0.00%", "No part");
}

/* No part of a change of requests is significant: the verdict names the culprit of the machine that answers them. */
static void test_latency_by_loss(void **unused)
{
	struct diff_row row[] = {
		total_row("Debian/GET", DIFF_OF_REQUESTS, DIFF_P90, 7e6, 14e6),
		total_row("Debian", DIFF_OF_MACHINE, DIFF_LOST, 0.03, 0.13), part_row(row[1], "host/burnP6", 0.11, 1.1, true),
		total_row("host/cron", DIFF_OF_THREAD, DIFF_RAN, 0, 0.5), part_row(row[0], "host/burnP6", 4e6, NAN, false),
	};
	(void)unused;
	row[4].quantity = DIFF_LATENCY;
	assert_verdict(row, 5, 4, "Debian/GET|\nNo part of the mean|Debian lost 13.0%|3.00%|11.0%|host/burnP6|0.00%",
	               "runs more");
	/* A part is significant, too. */
	assert_verdict(row, 5, 5, "Debian/GET|The mean did not change|Debian lost 13.0%|host/burnP6", "No part");
	/* Requests take longer, but their machine lost less. */
	row[1] = total_row("Debian", DIFF_OF_MACHINE, DIFF_LOST, 0.13, 0.03);
	assert_verdict(row, 5, 4, "Debian/GET|runs more|host/cron", "Debian lost");
}

static void test_alone(void **unused)
{
	struct diff_row row = total_row("Ubuntu", DIFF_OF_MACHINE, DIFF_RAN, 0, 1.226);
	(void)unused;
	row.alone = 2;
	assert_verdict(&row, 1, 1, "Ubuntu|122.6%|not there before", NULL);
	row = total_row("Ubuntu", DIFF_OF_MACHINE, DIFF_RAN, 0.5, 0);
	row.alone = 1;
	assert_verdict(&row, 1, 1, "Ubuntu|50.0%|not there any more", NULL);
	/* Threads of the machine that is gone are no further news; another machine is. */
	struct diff_row rows[] = { row, total_row("Debian/cc", DIFF_OF_THREAD, DIFF_RAN, 0, 0.9), row,
	                           total_row("Ubuntu/cc", DIFF_OF_THREAD, DIFF_RAN, 0, 0.95) };
	assert_verdict(rows, 4, 4, "Ubuntu|50.0%|not there any more|\n|runs more|Debian/cc", "Ubuntu/cc");
	rows[2] = total_row("Debian", DIFF_OF_MACHINE, DIFF_RAN, 0, 1);
	rows[2].alone = 2;
	assert_verdict(rows, 4, 4, "Ubuntu|not there any more|\nDebian|100.0%|not there before", "/cc");
}

/* Requests that are not answered any more do not appear in any latency. */
static void test_vanished(void **unused)
{
	struct diff_row row[] = {
		total_row("Debian/GET", DIFF_OF_REQUESTS, DIFF_LATENCY, 7e6, 14e6),
		total_row("Debian/GET", DIFF_OF_REQUESTS, DIFF_REQUESTS, 50, 10),
		total_row("Debian/PUT", DIFF_OF_REQUESTS, DIFF_REQUESTS, 20, 0),
		total_row("Debian/AND", DIFF_OF_REQUESTS, DIFF_REQUESTS, 0, 20),
	};
	(void)unused;
	assert_verdict(row, 4, 4, "No requests of Debian/PUT|20.0/s", "Debian/GET");
	assert_verdict(row, 2, 2, "Debian/GET|+3.50 ms|+10.5 ms|10.0/s|50.0/s", NULL);
	assert_verdict(row, 1, 1, "Debian/GET|+3.50 ms|+10.5 ms", "/s");
	assert_verdict(&row[3], 1, 1, "Debian/AND|20.0/s|0.0/s", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student), cmocka_unit_test(test_ratio), cmocka_unit_test(test_ratio_is_the_bootstrap),
		cmocka_unit_test(test_quantile), cmocka_unit_test(test_coverage), cmocka_unit_test(test_variation),
		cmocka_unit_test(test_assertions),
		cmocka_unit_test(test_unexplained), cmocka_unit_test(test_latency_by_loss), cmocka_unit_test(test_alone),
		cmocka_unit_test(test_vanished),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
