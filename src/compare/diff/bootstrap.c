/* Block bootstrap over slices of time (Kuensch 1989; circular blocks: Politis and Romano 1992).
 *
 * Neighbouring slices resemble each other, so what is drawn with replacement are blocks of neighbours.  For a ratio of
 * sums the variance over all draws is known in closed form, from the blocks' sums of its residuals; a quantile's is
 * found by drawing.  How long neighbours resemble each other is not known: what lasts longer than a block makes the
 * variance too small, so it is that of DIFF_BLOCK slices, or of LONGEST_BLOCK where that is larger.  Intervals are
 * Student's with as many degrees of freedom as there are blocks of the usual length, of rates and quantiles of the longest,
 * less one on each side (Welch, Satterthwaite): the extreme levels that a correction for many comparisons asks for are
 * not to be had from the tails of a few hundred draws. */
#include "compare/diff/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"

#define DRAWS 1000
#define PART 256  /* latencies */
#define TAIL 10   /* times as many latencies as lie beyond a quantile */

/* Of the sum of residuals, over all draws of as many blocks of `length` slices as there are.  Their mean square is
 * blocks / (blocks - 1) too small, as any sample's. */
static double variance_by(const double num[DIFF_SLICES], const double den[DIFF_SLICES], double ratio, unsigned length)
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
	const double usual = variance_by(num, den, ratio, DIFF_BLOCK), longest = variance_by(num, den, ratio, LONGEST_BLOCK);
	return (struct estimate){ ratio, sqrt(fmax(usual, longest)) / d, BLOCKS };
}

/* ---- Quantiles */

static uint64_t next(uint64_t *state)  /* splitmix64 */
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Latencies, and how many of each slice come before every PART-th of them: what a draw counts up to there is a sum over the
 * slices. */
struct counted {
	const struct latency *sorted;
	size_t n, parts;
	uint32_t (*before)[DIFF_SLICES];
};

static void counted_begin(struct counted *s, const struct latency *sorted, size_t n)
{
	*s = (struct counted){ sorted, n, n / PART, mem_new(n / PART + 2, sizeof *s->before) };
	for (size_t k = 0; k <= s->parts; k++) {
		memcpy(s->before[k + 1], s->before[k], sizeof *s->before);
		for (size_t i = k * PART; i < n && i < (k + 1) * PART; i++)
			s->before[k + 1][sorted[i].slice]++;
	}
}

static double weight_before(const struct counted *s, size_t part, const unsigned times[DIFF_SLICES])
{
	uint64_t all = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		all += (uint64_t)s->before[part][i] * times[i];
	return (double)all;
}

/* Of latencies that count times[slice] each; half of the weight of one lies on either side of its value. */
static double weighted_quantile(const struct counted *s, const unsigned times[DIFF_SLICES], double p)
{
	const double goal = p * weight_before(s, s->parts + 1, times);
	size_t low;
	BISECT(low, s->parts + 1, weight_before(s, low, times) <= goal);
	low -= low > 0;
	double upto = weight_before(s, low, times), before_at = 0, before = s->sorted[0].ns;
	for (size_t i = low * PART; i-- > 0 && upto > 0 && before_at == 0;)
		if (times[s->sorted[i].slice]) {
			before_at = upto - times[s->sorted[i].slice] / 2.0;
			before = s->sorted[i].ns;
		}
	for (size_t i = low * PART; i < s->n; i++) {
		const double w = times[s->sorted[i].slice], at = upto + w / 2;
		if (w == 0)
			continue;
		if (at >= goal) {
			double part = at > before_at && upto > 0 ? (goal - before_at) / (at - before_at) : 1;
			return before + (s->sorted[i].ns - before) * part;
		}
		upto += w;
		before_at = at;
		before = s->sorted[i].ns;
	}
	return before;
}

/* Of the p-quantile, by drawing blocks of `length` slices. */
static double quantile_variance(const struct counted *s, double p, double value, unsigned length)
{
	const unsigned blocks = DIFF_SLICES / length;
	unsigned times[DIFF_SLICES];
	uint64_t seed = s->n;
	double sum = 0, squares = 0;
	for (size_t d = 0; d < DRAWS; d++) {
		memset(times, 0, sizeof times);
		for (unsigned b = 0; b < blocks; b++)
			for (unsigned k = 0, first = (unsigned)(next(&seed) % DIFF_SLICES); k < length; k++)
				times[(first + k) % DIFF_SLICES]++;
		const double off = weighted_quantile(s, times, p) - value;
		sum += off;
		squares += off * off;
	}
	const double variance = squares / DRAWS - sum / DRAWS * (sum / DRAWS);
	return variance > 0 ? variance * blocks / (blocks - 1) : 0;
}

/* All count once. */
static double plain_quantile(const struct counted *s, double p)
{
	unsigned times[DIFF_SLICES];
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		times[i] = 1;
	return weighted_quantile(s, times, p);
}

double quantile_value(const struct latency *sorted, size_t n, double p)
{
	struct counted s;
	counted_begin(&s, sorted, n);
	const double value = plain_quantile(&s, p);
	free(s.before);
	return value;
}

struct estimate estimate_quantile(const struct latency *sorted, size_t n, double p)
{
	struct counted s;
	counted_begin(&s, sorted, n);
	const double value = plain_quantile(&s, p);
	const double usual = quantile_variance(&s, p, value, DIFF_BLOCK);
	const double longest = quantile_variance(&s, p, value, LONGEST_BLOCK);
	free(s.before);
	return (struct estimate){ value, sqrt(fmax(usual, longest)), FEWEST_BLOCKS };
}

struct tail quantile_tail(const struct latency *sorted, size_t n, double p)
{
	const size_t tail = (size_t)(fmin(TAIL * (1 - p), 0.5) * (double)n);
	double excess = 0;
	if (tail == 0)
		return (struct tail){ 0, 0 };
	const double begins = sorted[n - tail - 1].ns;
	for (size_t i = n - tail; i < n; i++)
		excess += sorted[i].ns - begins;
	return (struct tail){ excess / (double)tail * sqrt(p / ((1 - p) * (double)n)), quantile_value(sorted, n, p) - begins };
}

/* ---- Student's t */

/* The regularized incomplete beta function by its continued fraction (DLMF 8.17.22), for x < (a + 1) / (a + b + 2). */
static double beta_part(double x, double a, double b)
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
	return 0.5 * (x < (a + 1) / (a + b + 2) ? beta_part(x, a, b) : 1 - beta_part(1 - x, b, a));
}

double student_beyond(double p, double freedom)
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
	const double own = before->blocks - 1, other = after->blocks - 1;
	const double freedom = a + b > 0 ? (a + b) * (a + b) / (a * a / own + b * b / other) : own;
	const double reach = a + b > 0 ? student_beyond(alpha / 2, freedom) * sqrt(a + b) : 0;
	*change = after->value - before->value;
	*low = *change - reach;
	*high = *change + reach;
}
