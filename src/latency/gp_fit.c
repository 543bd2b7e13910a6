/* Gaussian process: hyperparameters by maximum likelihood, and the factorisation.  The only file that needs GSL.
 *
 * The logarithm of every hyperparameter is free within [-6, 6] (a soft wall keeps the ascent inside: beyond it
 * the likelihood is flat and the matrix singular).  The noise has a floor, which is also the numerical jitter.
 * Likelihood and gradient: Rasmussen and Williams 2006, Eq. 2.30 and 5.9. */
#include "latency/gp.h"

bool gp_available(void)
{
#ifdef HAVE_GSL
	return true;
#else
	return false;
#endif
}

#ifndef HAVE_GSL

static int refuse(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, "build with GSL: configure --with-gsl",
	                 "prediction: this stealscope was built without the GNU Scientific Library");
}

int gp_fit(struct gp *g, unsigned steps, struct error *err)
{
	(void)g;
	(void)steps;
	return refuse(err);
}

int gp_prepare(struct gp *g, struct error *err)
{
	(void)g;
	return refuse(err);
}

#else

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>

#include "base/mem.h"

#define NOISE_FLOOR 1e-3  /* of a standard deviation of the target */
#define WALL 6.0
#define PARAMETERS (GP_FEATURES + 3)

/* Working set of one ascent.  Parameters: log length 0 .. d - 1, log signal, log trend, log noise. */
struct fit {
	const struct gp *g;
	double *square;     /* (m (m - 1) / 2) x d: squared differences of each pair of rows */
	double *dot;        /* m x m: products */
	double *exp_part;   /* m x m: the squared exponential alone */
	gsl_matrix *k, *inverse;
	gsl_vector *weight, *y;
};

static double wall(double p, double *slope)
{
	double over = p > WALL ? p - WALL : p < -WALL ? p + WALL : 0;
	*slope += 20 * over;
	return 10 * over * over;
}

static void fill(struct fit *f, const double *p)
{
	const size_t m = f->g->m, d = f->g->d;
	double inverse_square[GP_FEATURES];
	for (size_t j = 0; j < d; j++)
		inverse_square[j] = exp(-2 * p[j]);
	double signal = exp(2 * p[d]), trend = exp(2 * p[d + 1]);
	double noise = exp(2 * p[d + 2]) + NOISE_FLOOR * NOISE_FLOOR;
	const double *pair = f->square;
	for (size_t a = 0; a < m; a++) {
		for (size_t b = 0; b < a; b++, pair += d) {
			double sum = 0;
			for (size_t j = 0; j < d; j++)
				sum += pair[j] * inverse_square[j];
			double e = signal * exp(-0.5 * sum);
			f->exp_part[a * m + b] = e;
			double v = e + trend * f->dot[a * m + b];
			gsl_matrix_set(f->k, a, b, v);
			gsl_matrix_set(f->k, b, a, v);
		}
		f->exp_part[a * m + a] = signal;
		gsl_matrix_set(f->k, a, a, signal + trend * f->dot[a * m + a] + noise);
	}
}

/* Leaves the factor in k, K^-1 y in weight; *value = -log likelihood without its constant. */
static int factor(struct fit *f, const double *p, double *value)
{
	fill(f, p);
	if (gsl_linalg_cholesky_decomp1(f->k))
		return -1;
	gsl_linalg_cholesky_solve(f->k, f->y, f->weight);
	double sum = 0;
	for (size_t i = 0; i < f->g->m; i++) {
		sum += 0.5 * gsl_vector_get(f->y, i) * gsl_vector_get(f->weight, i);
		sum += log(gsl_matrix_get(f->k, i, i));
	}
	*value = sum;
	return isfinite(sum) ? 0 : -1;
}

/* gradient[p] = 1/2 tr((K^-1 - w w^T) dK/dp), K^-1 in f->inverse. */
static void gradient(const struct fit *f, const double *p, double *grad)
{
	const size_t m = f->g->m, d = f->g->d;
	double trend = exp(2 * p[d + 1]), noise = exp(2 * p[d + 2]);
	memset(grad, 0, (d + 3) * sizeof *grad);
	const double *pair = f->square;
	for (size_t a = 0; a < m; a++) {
		const double *row = gsl_matrix_const_ptr(f->inverse, a, 0);
		double wa = gsl_vector_get(f->weight, a);
		for (size_t b = 0; b < a; b++, pair += d) {
			double c = row[b] - wa * gsl_vector_get(f->weight, b);
			double ce = c * f->exp_part[a * m + b];
			for (size_t j = 0; j < d; j++)
				grad[j] += ce * pair[j];
			grad[d] += 2 * ce;
			grad[d + 1] += 2 * c * trend * f->dot[a * m + b];
		}
		double c = row[a] - wa * wa;
		grad[d] += c * f->exp_part[a * m + a];
		grad[d + 1] += c * trend * f->dot[a * m + a];
		grad[d + 2] += c * noise;
	}
	for (size_t j = 0; j < d; j++)
		grad[j] *= exp(-2 * p[j]);
}

/* gsl_multimin's three callbacks.  A matrix that cannot be factored counts as very unlikely. */
static void evaluate(const gsl_vector *at, void *arg, double *value, gsl_vector *slope)
{
	struct fit *f = arg;
	const size_t n = f->g->d + 3;
	double p[PARAMETERS], grad[PARAMETERS] = { 0 }, v = 0;
	for (size_t i = 0; i < n; i++)
		p[i] = fmin(fmax(gsl_vector_get(at, i), -2 * WALL), 2 * WALL);
	if (factor(f, p, &v)) {
		v = 1e12;
	} else if (slope) {
		gsl_matrix_memcpy(f->inverse, f->k);
		gsl_linalg_cholesky_invert(f->inverse);
		gradient(f, p, grad);
	}
	for (size_t i = 0; i < n; i++)
		v += wall(p[i], &grad[i]);
	if (value)
		*value = v;
	for (size_t i = 0; slope && i < n; i++)
		gsl_vector_set(slope, i, grad[i]);
}

static double value_only(const gsl_vector *at, void *arg)
{
	double v;
	evaluate(at, arg, &v, NULL);
	return v;
}

static void slope_only(const gsl_vector *at, void *arg, gsl_vector *slope)
{
	evaluate(at, arg, NULL, slope);
}

static void value_and_slope(const gsl_vector *at, void *arg, double *value, gsl_vector *slope)
{
	evaluate(at, arg, value, slope);
}

/* One ascent from (length, noise); keeps the result in best[] when it beats *best_value. */
static void ascend(struct fit *f, double length, double noise, unsigned steps, double *best, double *best_value)
{
	const size_t d = f->g->d, n = d + 3;
	gsl_vector *start = gsl_vector_alloc(n);
	gsl_vector_set_all(start, log(length));
	gsl_vector_set(start, d, log(0.7));
	gsl_vector_set(start, d + 1, log(0.3));
	gsl_vector_set(start, d + 2, log(noise));
	gsl_multimin_function_fdf target = { value_only, slope_only, value_and_slope, n, f };
	gsl_multimin_fdfminimizer *s = gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, n);
	gsl_multimin_fdfminimizer_set(s, &target, start, 0.1, 0.1);
	double last = s->f;
	unsigned flat = 0;
	for (unsigned i = 0; i < steps && flat < 3; i++) {
		if (gsl_multimin_fdfminimizer_iterate(s) || gsl_multimin_test_gradient(s->gradient, 1e-3) == GSL_SUCCESS)
			break;
		flat = last - s->f < 1e-4 ? flat + 1 : 0;
		last = s->f;
	}
	if (s->f < *best_value) {
		*best_value = s->f;
		for (size_t i = 0; i < n; i++)
			best[i] = fmin(fmax(gsl_vector_get(s->x, i), -2 * WALL), 2 * WALL);
	}
	gsl_multimin_fdfminimizer_free(s);
	gsl_vector_free(start);
}

static void fit_init(struct fit *f, const struct gp *g)
{
	const size_t m = g->m, d = g->d;
	f->g = g;
	f->square = mem_new(m * (m - 1) / 2 * d, sizeof *f->square);
	f->dot = mem_new(m * m, sizeof *f->dot);
	f->exp_part = mem_new(m * m, sizeof *f->exp_part);
	double *pair = f->square;
	for (size_t a = 0; a < m; a++) {
		for (size_t b = 0; b <= a; b++) {
			double dot = 0;
			for (size_t j = 0; j < d; j++) {
				double v = g->x[a * d + j] - g->x[b * d + j];
				dot += g->x[a * d + j] * g->x[b * d + j];
				if (b < a)
					*pair++ = v * v;
			}
			f->dot[a * m + b] = f->dot[b * m + a] = dot;
		}
	}
	f->k = gsl_matrix_alloc(m, m);
	f->inverse = gsl_matrix_alloc(m, m);
	f->weight = gsl_vector_alloc(m);
	f->y = gsl_vector_alloc(m);
	for (size_t i = 0; i < m; i++)
		gsl_vector_set(f->y, i, g->y[i]);
}

static void fit_release(struct fit *f)
{
	free(f->square);
	free(f->dot);
	free(f->exp_part);
	gsl_matrix_free(f->k);
	gsl_matrix_free(f->inverse);
	gsl_vector_free(f->weight);
	gsl_vector_free(f->y);
}

/* Targets that are all the same (no shift at all) have no likelihood worth climbing: the answer is that value. */
static bool constant(const struct gp *g)
{
	for (size_t i = 0; i < g->m; i++) {
		if (g->y[i] != g->y[0])
			return false;
	}
	return true;
}

int gp_fit(struct gp *g, unsigned steps, struct error *err)
{
	if (constant(g)) {
		g->y_scale = 0;
		g->signal = g->trend = 0;
		g->noise = 1;
		return 0;
	}
	gsl_error_handler_t *before = gsl_set_error_handler_off();
	struct fit f;
	fit_init(&f, g);
	double best[PARAMETERS] = { 0 }, value = 1e11;
	/* Two starts: a smooth function with much noise, and a wiggly one with little. */
	ascend(&f, 3.0, 0.5, steps, best, &value);
	ascend(&f, 1.0, 0.05, steps, best, &value);
	fit_release(&f);
	gsl_set_error_handler(before);
	if (value >= 1e11)
		return error_set(err, STATUS_INPUT, NULL, "training: no likely parameters found for %zu rows", g->m);
	for (size_t j = 0; j < g->d; j++)
		g->in[j].length = exp(best[j]);
	g->signal = exp(best[g->d]);
	g->trend = exp(best[g->d + 1]);
	g->noise = sqrt(exp(2 * best[g->d + 2]) + NOISE_FLOOR * NOISE_FLOOR);
	return 0;
}

static double kernel(const struct gp *g, size_t a, size_t b)
{
	double square = 0, dot = 0;
	for (size_t j = 0; j < g->d; j++) {
		double va = g->x[a * g->d + j], vb = g->x[b * g->d + j], v = (va - vb) / g->in[j].length;
		square += v * v;
		dot += va * vb;
	}
	return g->signal * g->signal * exp(-0.5 * square) + g->trend * g->trend * dot;
}

int gp_prepare(struct gp *g, struct error *err)
{
	const size_t m = g->m;
	gsl_error_handler_t *before = gsl_set_error_handler_off();
	gsl_matrix *k = gsl_matrix_alloc(m, m);
	gsl_vector *y = gsl_vector_alloc(m), *weight = gsl_vector_alloc(m);
	for (size_t a = 0; a < m; a++) {
		for (size_t b = 0; b <= a; b++) {
			double v = kernel(g, a, b) + (a == b ? g->noise * g->noise : 0);
			gsl_matrix_set(k, a, b, v);
			gsl_matrix_set(k, b, a, v);
		}
		gsl_vector_set(y, a, g->y[a]);
	}
	int failed = gsl_linalg_cholesky_decomp1(k);
	if (!failed) {
		gsl_linalg_cholesky_solve(k, y, weight);
		failed = gsl_linalg_tri_invert(CblasLower, CblasNonUnit, k);
	}
	if (!failed) {
		g->inverse = mem_resize(g->inverse, m * m, sizeof *g->inverse);
		g->weight = mem_resize(g->weight, m, sizeof *g->weight);
		for (size_t a = 0; a < m; a++) {
			g->weight[a] = gsl_vector_get(weight, a);
			for (size_t b = 0; b < m; b++)
				g->inverse[a * m + b] = b <= a ? gsl_matrix_get(k, a, b) : 0;
		}
	}
	gsl_matrix_free(k);
	gsl_vector_free(y);
	gsl_vector_free(weight);
	gsl_set_error_handler(before);
	if (failed)
		return error_set(err, STATUS_INPUT, "train the model again", "model: its covariance is not positive definite");
	return 0;
}

#endif
