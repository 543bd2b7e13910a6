/* Internals of the Gaussian process. Private to gp*.c.
 *
 * Covariance of standardized inputs a, b:
 *     k(a, b) = signal^2 exp(-1/2 sum_i ((a_i - b_i) / length_i)^2) + trend^2 (a . b)   [+ noise^2 if the same row]
 *
 * The squared exponential is the paper's kernel, with one length per input. The linear term extrapolates a proportional
 * effect proportionally, instead of returning to the mean outside of the training data, and widens the interval there.
 * Its weight is learned like all others, so data without a trend switch it off. */
#ifndef STEALSCOPE_LATENCY_GP_H
#define STEALSCOPE_LATENCY_GP_H

#include "latency/latency.h"

#define GP_ROWS_MAX 2048

struct gp_input {
	char name[GP_NAME];
	double mean, scale;      /* standardized = (raw - mean) / scale; scale 1 for a constant input */
	double min, max;         /* raw range over all training rows */
	double length;           /* kernel parameter, in standardized units */
};

struct gp {
	size_t d, m;             /* number of inputs; number of rows kept */
	struct gp_input in[GP_FEATURES];
	double y_mean, y_scale;
	double signal, trend, noise;
	double spread;            /* deviation between runs, relative to the effect */
	double *x;               /* inputs, m x d, standardized */
	double *y;               /* targets, m, standardized */
	double *inverse;         /* inverse of the Cholesky factor, m x m, lower triangle; derived */
	double *weight;          /* K^-1 y, m; derived */
};

struct gp *gp_new(size_t d, size_t m);
/* Returns k(a, b) of standardized inputs, without the noise. */
double gp_covariance(const struct gp *g, const double *a, const double *b);
/* Computes `inverse` and `weight` from the other members. Returns -1 if the matrix is not positive definite. */
int gp_prepare(struct gp *g, struct error *err);
/* Sets length, signal, trend and noise by maximum likelihood (gp_fit.c). */
int gp_fit(struct gp *g, unsigned steps, struct error *err);

#endif
