/* Gaussian process: parameters by maximum likelihood, and the factorization. Only this file uses LAPACK (linear algebra)
 * and NLopt (optimizer, L-BFGS).
 *
 * Matrices are stored by rows; for LAPACK, which reads columns, their lower triangle is the upper one ('U').
 *
 * The logarithm of every parameter is free within [-6, 6]; a quadratic penalty keeps the optimizer inside, because
 * outside the likelihood is flat and the matrix singular. The noise has a minimum, which also serves as numerical
 * jitter. Likelihood and gradient: Rasmussen and Williams 2006, Eq. 2.30 and 5.9. */
#include "base/base.h"
#include "latency/gp.h"

#include <math.h>

#include <lapacke.h>
#include <nlopt.h>

#include "base/dlopen_library.h"

#define NOISE_FLOOR 1e-3  /* the noise's minimum, relative to the target's standard deviation */
#define PARAMETER_LIMIT 6.0
#define PARAMETERS (GP_FEATURES + 3)
#define UNLIKELY 1e12
#define EVALUATIONS 4      /* average number of evaluations of the likelihood per step */

#define LAPACK_CALLS(CALL) \
	CALL(LAPACKE_, dpotrf) CALL(LAPACKE_, dpotri) CALL(LAPACKE_, dpotrs) CALL(LAPACKE_, dtrtri)
#define NLOPT_CALLS(CALL) \
	CALL(nlopt_, create) CALL(nlopt_, destroy) CALL(nlopt_, optimize) CALL(nlopt_, set_ftol_abs) \
	CALL(nlopt_, set_lower_bounds1) CALL(nlopt_, set_maxeval) CALL(nlopt_, set_min_objective) \
	CALL(nlopt_, set_upper_bounds1)

static struct { LAPACK_CALLS(LIBRARY_POINTER) } lapack;  /* after load_lapack() succeeded */
static struct { NLOPT_CALLS(LIBRARY_POINTER) } nlopt;

static int load_lapack(struct error *err)
{
	static const char *const name[] = { LAPACK_CALLS(LIBRARY_NAME) NULL };
	return library_load(LAPACK_FILE, "LAPACKE", name, &lapack, err);
}

static int load_nlopt(struct error *err)
{
	static const char *const name[] = { NLOPT_CALLS(LIBRARY_NAME) NULL };
	return library_load(NLOPT_FILE, "NLopt", name, &nlopt, err);
}

/* Working memory of one optimization. Parameters: log length 0 .. d - 1, log signal, log trend, log noise. */
struct fit {
	const struct gp *g;
	double *square;          /* squared differences of each pair of rows, (m (m - 1) / 2) x d */
	double *dot;             /* the rows' scalar products, m x m */
	double *exp_part;        /* the squared exponential alone, m x m */
	double *k;               /* the covariance's lower triangle, then of its Cholesky factor, then of its inverse, m x m */
	double *weight;          /* K^-1 y, m */
	double best[PARAMETERS];
	double best_value;  /* -log likelihood of best[] */
};

static double limit_penalty(double p, double *slope)
{
	double over = p > PARAMETER_LIMIT ? p - PARAMETER_LIMIT : p < -PARAMETER_LIMIT ? p + PARAMETER_LIMIT : 0;
	*slope += 20 * over;
	return 10 * over * over;
}

static void fill_covariance(struct fit *f, const double *p)
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
			f->k[a * m + b] = e + trend * f->dot[a * m + b];
		}
		f->exp_part[a * m + a] = signal;
		f->k[a * m + a] = signal + trend * f->dot[a * m + a] + noise;
	}
}

/* Replaces k by its Cholesky factor and computes `weight` = K^-1 y. Returns -1 if k is not positive definite. */
static int factor_matrix(double *k, const double *y, double *weight, size_t m)
{
	const lapack_int n = (lapack_int)m;
	memcpy(weight, y, m * sizeof *weight);
	return lapack.dpotrf(LAPACK_COL_MAJOR, 'U', n, k, n) != 0 ||
	       lapack.dpotrs(LAPACK_COL_MAJOR, 'U', n, 1, k, n, weight, n) != 0 ? -1 : 0;
}

/* Computes *value = -log likelihood without its constant; leaves the Cholesky factor in f->k and K^-1 y in f->weight.
 * Returns -1 if it is not finite. */
static int log_likelihood(struct fit *f, const double *p, double *value)
{
	const size_t m = f->g->m;
	fill_covariance(f, p);
	if (factor_matrix(f->k, f->g->y, f->weight, m))
		return -1;
	double sum = 0;
	for (size_t i = 0; i < m; i++)
		sum += 0.5 * f->g->y[i] * f->weight[i] + log(f->k[i * m + i]);
	*value = sum;
	return isfinite(sum) ? 0 : -1;
}

/* Computes gradient[p] = 1/2 tr((K^-1 - w w^T) dK/dp); f->k must be K^-1. */
static void likelihood_gradient(const struct fit *f, const double *p, double *grad)
{
	const size_t m = f->g->m, d = f->g->d;
	double trend = exp(2 * p[d + 1]), noise = exp(2 * p[d + 2]);
	memset(grad, 0, (d + 3) * sizeof *grad);
	const double *pair = f->square;
	for (size_t a = 0; a < m; a++) {
		const double *row = f->k + a * m;
		double wa = f->weight[a];
		for (size_t b = 0; b < a; b++, pair += d) {
			double c = row[b] - wa * f->weight[b];
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

/* Callback of NLopt: returns -log likelihood with the penalty; UNLIKELY if the matrix cannot be factored. */
static double evaluate_likelihood(unsigned n, const double *p, double *slope, void *arg)
{
	struct fit *f = arg;
	const lapack_int m = (lapack_int)f->g->m;
	double grad[PARAMETERS] = { 0 }, value = 0;
	if (log_likelihood(f, p, &value))
		value = UNLIKELY;
	else if (slope && lapack.dpotri(LAPACK_COL_MAJOR, 'U', m, f->k, m) == 0)
		likelihood_gradient(f, p, grad);
	for (unsigned i = 0; i < n; i++)
		value += limit_penalty(p[i], &grad[i]);
	if (slope)
		memcpy(slope, grad, n * sizeof *slope);
	if (value < f->best_value) {
		f->best_value = value;
		memcpy(f->best, p, n * sizeof *p);
	}
	return value;
}

/* Runs one optimization from (length, noise). f->best is the best point, whatever the optimizer's result. */
static void maximize_likelihood(struct fit *f, double length, double noise, unsigned steps)
{
	const unsigned d = (unsigned)f->g->d, n = d + 3;
	double at[PARAMETERS], value;
	for (unsigned i = 0; i < d; i++)
		at[i] = log(length);
	at[d] = log(0.7);
	at[d + 1] = log(0.3);
	at[d + 2] = log(noise);
	nlopt_opt ascent = nlopt.create(NLOPT_LD_LBFGS, n);
	nlopt.set_min_objective(ascent, evaluate_likelihood, f);
	nlopt.set_lower_bounds1(ascent, -2 * PARAMETER_LIMIT);
	nlopt.set_upper_bounds1(ascent, 2 * PARAMETER_LIMIT);
	nlopt.set_ftol_abs(ascent, 1e-4);
	nlopt.set_maxeval(ascent, EVALUATIONS * (int)steps);
	nlopt.optimize(ascent, at, &value);
	nlopt.destroy(ascent);
}

static void fit_init(struct fit *f, const struct gp *g)
{
	const size_t m = g->m, d = g->d;
	*f = (struct fit){ .g = g };
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
	f->k = mem_new(m * m, sizeof *f->k);
	f->weight = mem_new(m, sizeof *f->weight);
	f->best_value = UNLIKELY;
}

static void fit_release(struct fit *f)
{
	free(f->square);
	free(f->dot);
	free(f->exp_part);
	free(f->k);
	free(f->weight);
}

/* Returns true if all targets are equal. Then there is no likelihood to maximize, and the prediction is this value. */
static bool is_constant_target(const struct gp *g)
{
	for (size_t i = 0; i < g->m; i++) {
		if (g->y[i] != g->y[0])
			return false;
	}
	return true;
}

int gp_fit(struct gp *g, unsigned steps, struct error *err)
{
	if (is_constant_target(g)) {
		g->y_scale = 0;
		g->signal = g->trend = 0;
		g->noise = 1;
		return 0;
	}
	if (load_lapack(err) || load_nlopt(err))
		return -1;
	struct fit f;
	fit_init(&f, g);
	/* The likelihood has several maxima: for smooth and rough functions, with much and little noise. */
	static const double length[] = { 0.3, 0.9, 2.7 }, noise[] = { 0.1, 0.02, 0.004 };
	for (size_t i = 0; i < 9; i++)
		maximize_likelihood(&f, length[i / 3], noise[i % 3], steps);
	fit_release(&f);
	if (f.best_value >= UNLIKELY)
		return error_set(err, STATUS_INPUT, NULL, "training: the regression does not fit the %zu rows", g->m);
	for (size_t j = 0; j < g->d; j++)
		g->in[j].length = exp(f.best[j]);
	g->signal = exp(f.best[g->d]);
	g->trend = exp(f.best[g->d + 1]);
	g->noise = sqrt(exp(2 * f.best[g->d + 2]) + NOISE_FLOOR * NOISE_FLOOR);
	return 0;
}

int gp_prepare(struct gp *g, struct error *err)
{
	const size_t m = g->m, d = g->d;
	if (load_lapack(err))
		return -1;
	g->inverse = mem_resize(g->inverse, m * m, sizeof *g->inverse);
	g->weight = mem_resize(g->weight, m, sizeof *g->weight);
	memset(g->inverse, 0, m * m * sizeof *g->inverse);
	for (size_t a = 0; a < m; a++) {
		for (size_t b = 0; b <= a; b++)
			g->inverse[a * m + b] = gp_covariance(g, g->x + a * d, g->x + b * d);
		g->inverse[a * m + a] += g->noise * g->noise;
	}
	if (factor_matrix(g->inverse, g->y, g->weight, m) ||
	    lapack.dtrtri(LAPACK_COL_MAJOR, 'U', 'N', (lapack_int)m, g->inverse, (lapack_int)m) != 0)
		return error_set(err, STATUS_INPUT, "train the model again", "model: its covariance is not positive definite");
	return 0;
}
