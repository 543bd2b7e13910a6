/* Block bootstrap over time slices (Kuensch 1989; circular blocks: Politis and Romano 1992).
 *
 * Neighbouring slices are correlated, so blocks with neighbouring slices are drawn with replacement.
 * - Ratio of sums: the variance over all draws has a closed form with the residuals' block sums. Quantile: the
 *   variance is estimated by DRAWS random draws.
 * - The correlation length is unknown, and a correlation longer than a block makes the variance too small. So the
 *   variance is computed for blocks of DIFF_BLOCK and of BLOCK_LEN_MAX slices, and the larger one is used.
 * - Intervals use Student's t (Welch, Satterthwaite). A side's degrees of freedom: blocks of DIFF_BLOCK slices minus
 *   one; for rates and quantiles blocks of BLOCK_LEN_MAX slices minus one. Quantiles from a few hundred draws are too
 *   inaccurate for the extreme levels that a correction for many comparisons needs. */
#include "compare/diff/bootstrap.h"

#include <math.h>

#include "base/base.h"
#include "base/bisect.h"

#define DRAWS 1000
#define COUNT_STEP 256  /* latencies between two entries of slice_counts.below */
#define TAIL_FACTOR 10   /* latencies used for the tail, relative to those beyond the quantile */

/* Returns the residual sum's variance over all draws of `length`-slice blocks. The factor blocks / (blocks
 * - 1) corrects a sample variance's bias. */
static double ratio_variance(const double num[DIFF_SLICES], const double den[DIFF_SLICES], double ratio, unsigned length)
{
	const double blocks = (double)DIFF_SLICES / length;
	double squares = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		double sum = 0;
		for (unsigned k = 0; k < length; k++)
			sum += num[(i + k) % DIFF_SLICES] - ratio * den[(i + k) % DIFF_SLICES];
		squares += sum * sum;
	}
	return squares / DIFF_SLICES * blocks * blocks / (blocks - 1);
}

struct estimate estimate_ratio(const double num[DIFF_SLICES], const double den[DIFF_SLICES])
{
	double n = 0, d = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++) {
		n += num[i];
		d += den[i];
	}
	if (!(d > 0))
		return (struct estimate){ 0, 0, BLOCKS };
	const double ratio = n / d;
	const double typical = ratio_variance(num, den, ratio, DIFF_BLOCK);
	const double longest = ratio_variance(num, den, ratio, BLOCK_LEN_MAX);
	return (struct estimate){ ratio, sqrt(fmax(typical, longest)) / d, BLOCKS };
}

/* ---- Quantiles */

static uint64_t next_random(uint64_t *state)  /* splitmix64 */
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Sorted latencies, and below[k][slice]: the slice's latencies among the first k * COUNT_STEP. A draw's
 * latency count below that position is a sum over slices. */
struct slice_counts {
	const struct latency *sorted;
	size_t n, parts;
	uint32_t (*below)[DIFF_SLICES];
};

static void slice_counts_init(struct slice_counts *s, const struct latency *sorted, size_t n)
{
	*s = (struct slice_counts){ sorted, n, n / COUNT_STEP, mem_new(n / COUNT_STEP + 2, sizeof *s->below) };
	for (size_t k = 0; k <= s->parts; k++) {
		memcpy(s->below[k + 1], s->below[k], sizeof *s->below);
		for (size_t i = k * COUNT_STEP; i < n && i < (k + 1) * COUNT_STEP; i++)
			s->below[k + 1][sorted[i].slice]++;
	}
}

static double weight_below(const struct slice_counts *s, size_t part, const unsigned drawn[DIFF_SLICES])
{
	uint64_t all = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		all += (uint64_t)s->below[part][i] * drawn[i];
	return (double)all;
}

/* Returns the latencies' p-quantile if each is repeated drawn[slice] times. Each latency's value stands in the
 * middle of its weight; between values the quantile is interpolated. */
static double weighted_quantile(const struct slice_counts *s, const unsigned drawn[DIFF_SLICES], double p)
{
	const double goal = p * weight_below(s, s->parts + 1, drawn);
	size_t low;
	BISECT(low, s->parts + 1, weight_below(s, low, drawn) <= goal);
	low -= low > 0;
	double below_weight = weight_below(s, low, drawn), before_at = 0, before = s->sorted[0].ns;
	for (size_t i = low * COUNT_STEP; i-- > 0 && below_weight > 0 && before_at == 0;)
		if (drawn[s->sorted[i].slice]) {
			before_at = below_weight - drawn[s->sorted[i].slice] / 2.0;
			before = s->sorted[i].ns;
		}
	for (size_t i = low * COUNT_STEP; i < s->n; i++) {
		const double w = drawn[s->sorted[i].slice], at = below_weight + w / 2;
		if (w == 0)
			continue;
		if (at >= goal) {
			double part = at > before_at && below_weight > 0 ? (goal - before_at) / (at - before_at) : 1;
			return before + (s->sorted[i].ns - before) * part;
		}
		below_weight += w;
		before_at = at;
		before = s->sorted[i].ns;
	}
	return before;
}

/* Returns the p-quantile's variance over DRAWS random draws of `length`-slice blocks. */
static double quantile_variance(const struct slice_counts *s, double p, double value, unsigned length)
{
	const unsigned blocks = DIFF_SLICES / length;
	unsigned drawn[DIFF_SLICES];
	uint64_t seed = s->n;
	double sum = 0, squares = 0;
	for (size_t d = 0; d < DRAWS; d++) {
		memset(drawn, 0, sizeof drawn);
		for (unsigned b = 0; b < blocks; b++)
			for (unsigned k = 0, first = (unsigned)(next_random(&seed) % DIFF_SLICES); k < length; k++)
				drawn[(first + k) % DIFF_SLICES]++;
		const double off = weighted_quantile(s, drawn, p) - value;
		sum += off;
		squares += off * off;
	}
	const double variance = squares / DRAWS - sum / DRAWS * (sum / DRAWS);
	return variance > 0 ? variance * blocks / (blocks - 1) : 0;
}

/* Returns all latencies' p-quantile, each counted once. */
static double plain_quantile(const struct slice_counts *s, double p)
{
	unsigned drawn[DIFF_SLICES];
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		drawn[i] = 1;
	return weighted_quantile(s, drawn, p);
}

double quantile_value(const struct latency *sorted, size_t n, double p)
{
	struct slice_counts s;
	slice_counts_init(&s, sorted, n);
	const double value = plain_quantile(&s, p);
	free(s.below);
	return value;
}

struct estimate estimate_quantile(const struct latency *sorted, size_t n, double p)
{
	struct slice_counts s;
	slice_counts_init(&s, sorted, n);
	const double value = plain_quantile(&s, p);
	const double typical = quantile_variance(&s, p, value, DIFF_BLOCK);
	const double longest = quantile_variance(&s, p, value, BLOCK_LEN_MAX);
	free(s.below);
	return (struct estimate){ value, sqrt(fmax(typical, longest)), BLOCKS_MIN };
}

struct tail quantile_tail(const struct latency *sorted, size_t n, double p)
{
	const size_t tail = (size_t)(fmin(TAIL_FACTOR * (1 - p), 0.5) * (double)n);
	double excess = 0;
	if (tail == 0)
		return (struct tail){ 0, 0 };
	const double begins = sorted[n - tail - 1].ns;
	for (size_t i = n - tail; i < n; i++)
		excess += sorted[i].ns - begins;
	return (struct tail){ excess / (double)tail * sqrt(p / ((1 - p) * (double)n)), quantile_value(sorted, n, p) - begins };
}

/* ---- Student's t */

/* Evaluates the regularized incomplete beta function by its continued fraction (DLMF 8.17.22), for x < (a + 1) / (a + b
 * + 2). */
static double beta_fraction(double x, double a, double b)
{
	double f = 1, c = 1, d = 0;
	for (int i = 0; i <= 300; i++) {
		const int m = i / 2;
		double term = i == 0 ? 1
			: i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
			: -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 + term * d;
		d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
		c = 1 + term / c;
		c = fabs(c) < 1e-300 ? 1e-300 : c;
		f *= c * d;
		if (i && fabs(1 - c * d) < 1e-14)
			break;
	}
	return exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a * (f - 1);
}

static double student_tail(double t, double freedom)
{
	const double x = freedom / (freedom + t * t), a = freedom / 2, b = 0.5;
	return 0.5 * (x < (a + 1) / (a + b + 2) ? beta_fraction(x, a, b) : 1 - beta_fraction(1 - x, b, a));
}

double student_quantile(double p, double freedom)
{
	double low = 0, high = 1e6;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		const double mid = low > 0 && high / low > 4 ? sqrt(low * high) : (low + high) / 2;
		if (student_tail(mid, freedom) > p)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

void estimate_change(const struct estimate *before, const struct estimate *after, double alpha, double *change,
                     double *low, double *high)
{
	const double a = before->error * before->error, b = after->error * after->error;
	const double before_freedom = before->blocks - 1, after_freedom = after->blocks - 1;
	const double freedom = a + b > 0 ? (a + b) * (a + b) / (a * a / before_freedom + b * b / after_freedom)
	                                 : before_freedom;
	const double half_width = a + b > 0 ? student_quantile(alpha / 2, freedom) * sqrt(a + b) : 0;
	*change = after->value - before->value;
	*low = *change - half_width;
	*high = *change + half_width;
}
