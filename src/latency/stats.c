/* Distributions: quantiles, percentile shift, clusters. Deterministic, without state, at most O(n log n). */
#include "base/base.h"
#include "latency/latency.h"

#include <math.h>

#include "base/bisect.h"

void stats_sort(double *v, size_t n)
{
	ARRAY_SORT(v, n, order_double);
}

double stats_quantile(const double *sorted, size_t n, double p)
{
	double at = p * (double)n - 0.5;
	if (!(at > 0))
		return sorted[0];
	if (at >= (double)(n - 1))
		return sorted[n - 1];
	size_t i = (size_t)at;
	double part = at - (double)i;
	/* Equal neighbours have exactly this quantile, without rounding. */
	return part == 0 || sorted[i] == sorted[i + 1] ? sorted[i] : sorted[i] + part * (sorted[i + 1] - sorted[i]);
}

double stats_correlation(const double *a, const double *b, size_t n)
{
	double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
	for (size_t i = 0; i < n; i++) {
		ma += a[i];
		mb += b[i];
	}
	ma /= (double)n;
	mb /= (double)n;
	for (size_t i = 0; i < n; i++) {
		aa += (a[i] - ma) * (a[i] - ma);
		bb += (b[i] - mb) * (b[i] - mb);
		ab += (a[i] - ma) * (b[i] - mb);
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* *below: number of values in sorted[] below v; *upto: number of those below or equal. */
static void count_below(const double *sorted, size_t n, double v, size_t *below, size_t *upto)
{
	BISECT(*below, n, sorted[*below] < v);
	BISECT(*upto, n, sorted[*upto] <= v);
}

void stats_shift(const double *latency, size_t n, const double *baseline, size_t baselines, double *shift)
{
	double *sorted = mem_new(n, sizeof *sorted), *base = mem_new(baselines, sizeof *base);
	memcpy(sorted, latency, n * sizeof *sorted);
	memcpy(base, baseline, baselines * sizeof *base);
	stats_sort(sorted, n);
	stats_sort(base, baselines);
	for (size_t i = 0; i < n; i++) {
		size_t below, upto;
		count_below(sorted, n, latency[i], &below, &upto);
		/* Position in the baseline, (below + upto) / 2 / n, in integers: with equal sizes it is exact. */
		size_t twice = (below + upto) * baselines;  /* divided by 2 n: rank + 1/2 */
		double p = (double)twice / (double)(2 * n * baselines);
		double at = stats_quantile(base, baselines, p);
		if (baselines == n) {
			/* Equal numbers of rows: the tied ranks' middle, without rounding. */
			size_t lo = (below + upto - 1) / 2, hi = (below + upto) / 2;
			at = base[lo] == base[hi] ? base[lo] : 0.5 * (base[lo] + base[hi]);
		}
		shift[i] = latency[i] - at;
	}
	free(sorted);
	free(base);
}

/* ---- Clusters ----------------------------------------------------------------------------------------------- */

#define BINS 64
#define VALLEY_HEIGHT_MAX 0.25  /* maximum height of a valley that separates two peaks, relative to the lower peak */

ORDER_BY(compare_share, struct cluster, FALLING(share))

/* Fills a histogram of the inner 99 % (outliers count in the end bins), smoothed once by 1-2-1. */
static void fill_histogram(const double *sorted, size_t n, double *origin, double *width, double bin[BINS])
{
	double raw[BINS + 2] = { 0 };
	double lo = stats_quantile(sorted, n, 0.005), hi = stats_quantile(sorted, n, 0.995);
	*origin = lo;
	*width = (hi - lo) / BINS;
	for (size_t i = 0; i < n; i++) {
		double at = *width > 0 ? (sorted[i] - lo) / *width : 0;
		size_t b = at <= 0 ? 0 : at >= BINS - 1 ? BINS - 1 : (size_t)at;
		raw[b + 1]++;
	}
	/* Mirrored at the ends: a peak at the edge must keep its height. */
	raw[0] = raw[1];
	raw[BINS + 1] = raw[BINS];
	for (size_t b = 0; b < BINS; b++)
		bin[b] = 0.25 * raw[b] + 0.5 * raw[b + 1] + 0.25 * raw[b + 2];
}

/* Finds the lowest bin of every deep valley: a new cluster begins there. Returns their number. */
static size_t find_valleys(const double bin[BINS], size_t cut[BINS])
{
	size_t cuts = 0, lowest = 0;
	double peak = bin[0];  /* peak of the current cluster */
	for (size_t b = 1; b < BINS; b++) {
		if (bin[b] < bin[lowest])
			lowest = b;
		/* bin[lowest] is a valley between the previous peak and bin b, ... */
		if (lowest < b && bin[lowest] < VALLEY_HEIGHT_MAX * peak && bin[lowest] < VALLEY_HEIGHT_MAX * bin[b]) {
			/* ... and a new peak has been reached: the next bin is not higher, or there is none. */
			if (b + 1 == BINS || bin[b + 1] <= bin[b]) {
				cut[cuts++] = lowest;
				peak = bin[b];
				lowest = b;
			}
		} else if (bin[b] > peak) {
			peak = bin[b];
			lowest = b;
		}
	}
	return cuts;
}

size_t stats_clusters(const double *v, size_t n, struct cluster *out, size_t max_clusters)
{
	if (n == 0 || max_clusters == 0)
		return 0;
	double *sorted = mem_new(n, sizeof *sorted), bin[BINS], origin, width;
	memcpy(sorted, v, n * sizeof *sorted);
	stats_sort(sorted, n);
	fill_histogram(sorted, n, &origin, &width, bin);
	size_t cut[BINS], cuts = width > 0 ? find_valleys(bin, cut) : 0, found = 0, from = 0;
	struct cluster all[BINS + 1];
	for (size_t c = 0; c <= cuts; c++) {
		size_t to = n, below;
		if (c < cuts)
			count_below(sorted, n, origin + (double)cut[c] * width, &to, &below);
		if (to > from) {
			all[found++] = (struct cluster){ stats_quantile(sorted + from, to - from, 0.5),
			                                 (double)(to - from) / (double)n };
		}
		from = to;
	}
	free(sorted);
	qsort(all, found, sizeof *all, compare_share);
	if (found > max_clusters)
		found = max_clusters;
	memcpy(out, all, found * sizeof *all);
	return found;
}
