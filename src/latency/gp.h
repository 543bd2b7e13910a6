/* Inside of the Gaussian process: private to gp*.c.
 *
 * Covariance of standardised inputs a, b:
 *     k(a, b) = signal^2 exp(-1/2 sum_i ((a_i - b_i) / length_i)^2) + trend^2 (a . b)   [+ noise^2 if the same row]
 * The squared exponential is the paper's kernel, with one length per input; the linear term lets a proportional
 * effect go on proportionally instead of falling back to the mean beyond the training data, and widens the interval
 * there.  Its weight is learned like all others, so data without a trend switch it off. */
#ifndef STEALSCOPE_LATENCY_GP_H
#define STEALSCOPE_LATENCY_GP_H

#include "latency/latency.h"

#define GP_ROWS_MAX 2048

struct gp_input {
	char name[GP_NAME];
	double mean, scale;  /* standardised = (raw - mean) / scale; scale 1 for a constant input */
	double min, max;     /* raw, of all training rows */
	double length;       /* of the kernel, in standardised units */
};

struct gp {
	size_t d, m;              /* inputs, rows kept */
	struct gp_input in[GP_FEATURES];
	double y_mean, y_scale;
	double signal, trend, noise;
	double spread;            /* between runs, relative to the effect */
	double *x;                /* m x d, standardised */
	double *y;                /* m, standardised */
	double *inverse;          /* m x m: inverse of the Cholesky factor, lower triangle; derived */
	double *weight;           /* m: K^-1 y; derived */
};

struct gp *gp_new(size_t d, size_t m);
/* k(a, b) of standardised inputs, without the noise. */
double gp_covariance(const struct gp *g, const double *a, const double *b);
/* Computes `inverse` and `weight` from the rest.  -1 when the matrix is not positive definite. */
int gp_prepare(struct gp *g, struct error *err);
/* Sets lengths, signal, trend and noise to those of the highest likelihood (gp_fit.c). */
int gp_fit(struct gp *g, unsigned steps, struct error *err);

#endif
