/* A trained Gaussian process: the model in memory, its text file, and the prediction of one row.
 *
 * Needs only libc and libm, because the marking library links it as well; training is in latency/.
 *
 * Covariance of standardized inputs a, b:
 *     k(a, b) = signal^2 exp(-1/2 sum_i ((a_i - b_i) / length_i)^2) + trend^2 (a . b)   [+ noise^2 if the same row]
 *
 * The squared exponential is the paper's kernel, with one length per input. The linear term extrapolates a proportional
 * effect proportionally, instead of returning to the mean outside the training data, and widens the interval there.
 * Its weight is learned like all others, so data without a trend switch it off. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define GP_FEATURES 32   /* most inputs of a model */
#define GP_NAME 64       /* bytes of an input's name with its NUL */
#define GP_ROWS_MAX 2048 /* most rows of a model */
#define GP_HEADER "stealscope-model 1"

struct gp_input {
	char name[GP_NAME];
	double mean, scale;      /* standardized = (raw - mean) / scale; scale 1 for a constant input */
	double min, max;         /* raw range over all training rows */
	double length;           /* kernel parameter, in standardized units */
};

struct gp {
	size_t d, m;             /* input count; number of rows kept */
	struct gp_input in[GP_FEATURES];
	double y_mean, y_scale;
	double signal, trend, noise;
	double spread;            /* deviation between runs, relative to the effect */
	double *x;               /* inputs, m x d, standardized */
	double *y;               /* targets, m, standardized */
	double *inverse;         /* the Cholesky factor's inverse, m x m, lower triangle; NULL: not in the file */
	double *weight;          /* K^-1 y, m; NULL: not in the file */
};

struct gp_prediction {
	double mean, low, high;  /* low .. high: interval that contains the target of such a row with a probability of 95 % */
	bool outside;            /* unreliable: an input lies outside the trained range */
};

/* Reads a model. Returns NULL on failure: *why is the reason and *line the line in the file; *why NULL: system error in
 * errno. The caller calls gp_free(). The file is untrusted. Sets no locale: the decimal point of the calling thread's
 * locale must be '.'. */
struct gp *gp_read(FILE *f, unsigned *line, const char **why);
void gp_free(struct gp *g);  /* NULL is allowed */

/* Returns k(a, b) of standardized inputs, without the noise. */
double gp_covariance(const struct gp *g, const double *a, const double *b);
/* Returns an effect's size, to scale the spread: |mean|, but at least 0.1 of the targets' deviation. */
double gp_effect(const struct gp *g, double mean);
/* Returns the prediction for raw inputs x from the standardized mean and variance. */
struct gp_prediction gp_interval(const struct gp *g, const double *x, double mean, double variance);
/* Predicts one row of raw inputs in O(m^2). Needs `inverse` and `weight`. Allocates no memory; takes 16 KiB of stack. */
struct gp_prediction gp_predict_row(const struct gp *g, const double *x);
