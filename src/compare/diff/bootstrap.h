/* How far a figure of slices may be off: block bootstrap.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_DIFF_BOOTSTRAP_H
#define STEALSCOPE_COMPARE_DIFF_BOOTSTRAP_H

#include "compare/diff/ledger.h"

#define BLOCKS (DIFF_SLICES / DIFF_BLOCK)
#define FEWEST_BLOCKS 8
#define LONGEST_BLOCK (DIFF_SLICES / FEWEST_BLOCKS)  /* slices */

struct estimate {
	double value;
	double error;   /* standard error */
	double blocks;  /* by which it was found */
};

/* The sum of num over the sum of den, 0 where that is 0; its error is that of infinitely many resamples. */
struct estimate estimate_ratio(const double num[DIFF_SLICES], const double den[DIFF_SLICES]);
/* The p-quantile of n latencies sorted by ns (n > 0), by drawing blocks; the same each time. */
double quantile_value(const struct latency *sorted, size_t n, double p);  /* without the error, which costs more */
struct estimate estimate_quantile(const struct latency *sorted, size_t n, double p);
/* Of a quantile (p >= 0.9), as if latencies were independent and their tail exponential, with the mean excess of more than
 * lie beyond the quantile, to half of all: a tail of a few may look shorter than it is, and draws from it then vary less,
 * too. */
struct tail {
	double error;   /* the quantile's standard error */
	double length;  /* from where the tail begins to the quantile */
};
struct tail quantile_tail(const struct latency *sorted, size_t n, double p);
/* after - before, with the interval in which the difference lies but for a chance of `alpha`. */
void estimate_change(const struct estimate *before, const struct estimate *after, double alpha, double *change,
                     double *low, double *high);
/* t such that a Student variate of so many degrees of freedom lies beyond it with a chance of p (0 < p < 0.5). */
double student_beyond(double p, double freedom);

#endif
