/* Gaussian process regression: training set and prediction (Rasmussen and Williams 2006, Algorithm 2.1).
 *
 * Training sorts the rows, standardizes them, and keeps a subset that is evenly spaced in the order of targets. So the
 * result depends neither on the order of the rows nor on random numbers. Cost: O(n log n) + O(steps m^3) for training,
 * O(m^2) per prediction; memory O(m^2). */
#include "latency/gp.h"

#include <math.h>

#include "base/base.h"

#define DEFAULT_ROWS 256
#define DEFAULT_STEPS 60
#define BATCH 32               /* predictions that share one pass over the inverse */

struct gp *gp_new(size_t d, size_t m)
{
	struct gp *g = mem_new(1, sizeof *g);
	g->d = d;
	g->m = m;
	g->x = mem_new(m * d, sizeof *g->x);
	g->y = mem_new(m, sizeof *g->y);
	return g;
}

size_t gp_inputs(const struct gp *g)
{
	return g->d;
}

const char *gp_input(const struct gp *g, size_t i)
{
	return g->in[i].name;
}

void gp_range(const struct gp *g, size_t i, double *min, double *max)
{
	*min = g->in[i].min;
	*max = g->in[i].max;
}

void gp_set_spread(struct gp *g, double spread)
{
	g->spread = spread > 0 ? spread : 0;
}

double gp_spread(const struct gp *g)
{
	return g->spread;
}

size_t gp_rows(const struct gp *g)
{
	return g->m;
}

/* ---- Training set ------------------------------------------------------------------------------------------- */

struct sample {
	const double *x;
	double y;
	size_t d;
};

static int compare_target(const void *pa, const void *pb)
{
	const struct sample *a = pa, *b = pb;
	if (a->y != b->y)
		return a->y < b->y ? -1 : 1;
	for (size_t i = 0; i < a->d; i++) {
		if (a->x[i] != b->x[i])
			return a->x[i] < b->x[i] ? -1 : 1;
	}
	return 0;
}

/* Computes the mean and an input's standard deviation; of the target if `input` is not below d. */
static void mean_and_scale(const struct sample *s, size_t n, size_t input, double *mean, double *scale)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++)
		sum += input < s[i].d ? s[i].x[input] : s[i].y;
	*mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		double v = (input < s[i].d ? s[i].x[input] : s[i].y) - *mean;
		squares += v * v;
	}
	*scale = sqrt(squares / (double)n);
	/* A constant input has no effect: it becomes 0 in all rows, apart from rounding. */
	if (!(*scale > 1e-12 * fabs(*mean)) || *scale == 0)
		*scale = 1;
}

static void standardize_rows(struct gp *g, const struct sample *s, size_t n, const char *const *name)
{
	for (size_t j = 0; j < g->d; j++) {
		struct gp_input *in = &g->in[j];
		snprintf(in->name, sizeof in->name, "%s", name[j]);
		mean_and_scale(s, n, j, &in->mean, &in->scale);
		in->length = 1;
		in->min = in->max = s[0].x[j];
		for (size_t i = 1; i < n; i++) {
			in->min = fmin(in->min, s[i].x[j]);
			in->max = fmax(in->max, s[i].x[j]);
		}
	}
	mean_and_scale(s, n, SIZE_MAX, &g->y_mean, &g->y_scale);
	for (size_t i = 0; i < g->m; i++) {
		/* Includes the first and the last row: the tails are the shift's extremes. */
		const struct sample *from = &s[g->m == 1 ? 0 : i * (n - 1) / (g->m - 1)];
		for (size_t j = 0; j < g->d; j++)
			g->x[i * g->d + j] = (from->x[j] - g->in[j].mean) / g->in[j].scale;
		g->y[i] = (from->y - g->y_mean) / g->y_scale;
	}
}

static int check_rows(size_t d, const double *x, const double *y, size_t n, struct error *err)
{
	if (d == 0 || d > GP_FEATURES)
		return error_set(err, STATUS_INPUT, NULL, "training: %zu inputs (allowed: 1 to %d)", d,
		                 GP_FEATURES);
	if (n < 8)
		return error_set(err, STATUS_INPUT, "record a longer run", "training: %zu rows are too few (minimum: 8)",
		                 n);
	for (size_t i = 0; i < n * d; i++) {
		if (!isfinite(x[i]))
			return error_set(err, STATUS_INPUT, NULL, "training: row %zu: input %zu is not a finite number",
			                 i / d + 1, i % d + 1);
	}
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(y[i]))
			return error_set(err, STATUS_INPUT, NULL, "training: row %zu: the target is not a finite number",
			                 i + 1);
	}
	return 0;
}

struct gp *gp_train(const char *const *name, size_t d, const double *x, const double *y, size_t n,
                    const struct gp_options *options, struct error *err)
{
	if (check_rows(d, x, y, n, err))
		return NULL;
	size_t m = options && options->rows ? options->rows : DEFAULT_ROWS;
	if (m > GP_ROWS_MAX)
		m = GP_ROWS_MAX;
	if (m > n)
		m = n;
	if (m < 8)
		m = 8;
	struct sample *s = mem_new(n, sizeof *s);
	for (size_t i = 0; i < n; i++)
		s[i] = (struct sample){ x + i * d, y[i], d };
	qsort(s, n, sizeof *s, compare_target);
	struct gp *g = gp_new(d, m);
	standardize_rows(g, s, n, name);
	free(s);
	if (gp_fit(g, options && options->steps ? options->steps : DEFAULT_STEPS, err) || gp_prepare(g, err)) {
		gp_free(g);
		return NULL;
	}
	return g;
}

/* ---- Prediction --------------------------------------------------------------------------------------------- */

/* Predicts n <= BATCH rows with one pass over the inverse. k: scratch memory, m x BATCH. */
static void predict_batch(const struct gp *g, const double *x, size_t n, struct gp_prediction *out, double *k)
{
	double z[BATCH][GP_FEATURES] = { { 0 } }, mean[BATCH] = { 0 }, variance[BATCH];
	for (size_t r = 0; r < n; r++) {
		for (size_t j = 0; j < g->d; j++)
			z[r][j] = (x[r * g->d + j] - g->in[j].mean) / g->in[j].scale;
		variance[r] = gp_covariance(g, z[r], z[r]) + g->noise * g->noise;
	}
	memset(k, 0, g->m * BATCH * sizeof *k);
	for (size_t i = 0; i < g->m; i++) {
		for (size_t r = 0; r < n; r++) {
			k[i * BATCH + r] = gp_covariance(g, g->x + i * g->d, z[r]);
			mean[r] += k[i * BATCH + r] * g->weight[i];
		}
	}
	for (size_t i = 0; i < g->m; i++) {
		double v[BATCH] = { 0 };
		const double *row = g->inverse + i * g->m;
		for (size_t c = 0; c <= i; c++) {
			for (size_t r = 0; r < BATCH; r++)
				v[r] += row[c] * k[c * BATCH + r];
		}
		for (size_t r = 0; r < n; r++)
			variance[r] -= v[r] * v[r];
	}
	for (size_t r = 0; r < n; r++)
		out[r] = gp_interval(g, x + r * g->d, mean[r], variance[r]);
}

int gp_predict(const struct gp *g, const double *x, size_t n, struct gp_prediction *out, struct error *err)
{
	for (size_t i = 0; i < n * g->d; i++) {
		if (!isfinite(x[i]))
			return error_set(err, STATUS_INPUT, NULL, "prediction: row %zu: input %s is not a finite number",
			                 i / g->d + 1, g->in[i % g->d].name);
	}
	double *k = mem_new(g->m * BATCH, sizeof *k);
	for (size_t at = 0; at < n; at += BATCH)
		predict_batch(g, x + at * g->d, n - at < BATCH ? n - at : BATCH, out + at, k);
	free(k);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(out[i].mean) || !isfinite(out[i].low) || !isfinite(out[i].high))
			return error_set(err, STATUS_INPUT, "train the model again", "prediction: row %zu: the result is not a number",
			                 i + 1);
	return 0;
}
