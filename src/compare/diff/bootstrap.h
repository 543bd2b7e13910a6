/* Standard errors of values computed from slices: block bootstrap. Private to compare/. */
#pragma once

#include "compare/diff/ledger.h"

#define BLOCKS (DIFF_SLICES / DIFF_BLOCK)
#define BLOCKS_MIN 8
#define BLOCK_LEN_MAX (DIFF_SLICES / BLOCKS_MIN)  /* slices */

struct estimate {
	double value;
	double error;   /* standard error */
	double blocks;           /* block count: degrees of freedom + 1 */
};

/* Returns the sum of num over the sum of den, and its standard error over infinitely many draws; value 0 if the sum of
 * den is 0. */
struct estimate estimate_ratio(const double num[DIFF_SLICES], const double den[DIFF_SLICES]);
/* Return the p-quantile of n > 0 latencies sorted by ns; estimate_quantile() also its standard error, by drawing blocks
 * (deterministic). */
double quantile_value(const struct latency *sorted, size_t n, double p);  /* fast: no error */
struct estimate estimate_quantile(const struct latency *sorted, size_t n, double p);
/* Returns the error of a quantile (p >= 0.9) of independent latencies with an exponential tail. The mean excess is taken
 * over TAIL times as many latencies as lie beyond the quantile, at most half of all: with few latencies the tail may
 * look shorter than it is, and draws vary too little. */
struct tail {
	double error;   /* the quantile's standard error */
	double length;  /* distance from the start of the tail to the quantile */
};
struct tail quantile_tail(const struct latency *sorted, size_t n, double p);
/* *change = after - before; the true change lies outside [*low, *high] with probability `alpha`. */
void estimate_change(const struct estimate *before, const struct estimate *after, double alpha, double *change,
                     double *low, double *high);
/* Returns the t that a Student variate with these degrees of freedom exceeds with probability p (0 < p < 0.5). */
double student_quantile(double p, double freedom);
