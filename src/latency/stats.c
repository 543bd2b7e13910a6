/* Distributions: quantiles, the percentile shift, clusters.  Deterministic; no state; O(n log n) at most. */
#include "latency/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

void stats_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof *v, by_value);
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
	/* Equal neighbours give their very value: no rounding where nothing is to be interpolated. */
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

/* Number of values of sorted[] below v, and below or equal. */
static void rank(const double *sorted, size_t n, double v, size_t *below, size_t *upto)
{
	BISECT(*below, n, sorted[*below] < v);
	BISECT(*upto, n, sorted[*upto] <= v);
}

void stats_shift(const double *latency, size_t n, const double *baseline, size_t baselines, double *shift)
{
	double *own = mem_new(n, sizeof *own), *base = mem_new(baselines, sizeof *base);
	memcpy(own, latency, n * sizeof *own);
	memcpy(base, baseline, baselines * sizeof *base);
	stats_sort(own, n);
	stats_sort(base, baselines);
	for (size_t i = 0; i < n; i++) {
		size_t below, upto;
		rank(own, n, latency[i], &below, &upto);
		/* Position in the baseline, (below + upto) / 2 / n, kept in integers so that equal sizes hit exactly. */
		size_t twice = (below + upto) * baselines;  /* / (2 n) = rank + 1/2 */
		double p = (double)twice / (double)(2 * n * baselines);
		double at = stats_quantile(base, baselines, p);
		if (baselines == n) {
			/* The same number of rows: the middle of the tied ranks, without rounding. */
			size_t lo = (below + upto - 1) / 2, hi = (below + upto) / 2;
			at = base[lo] == base[hi] ? base[lo] : 0.5 * (base[lo] + base[hi]);
		}
		shift[i] = latency[i] - at;
	}
	free(own);
	free(base);
}

/* ---- Clusters ----------------------------------------------------------------------------------------------- */

#define BINS 64
#define DEEP 0.25  /* a valley parts two peaks when it is lower than this part of the lower peak */

static int by_share(const void *pa, const void *pb)
{
	const struct cluster *a = pa, *b = pb;
	return (a->share < b->share) - (a->share > b->share);
}

/* Histogram of the inner 99 % (outliers fall into the end bins), smoothed once by 1-2-1. */
static void histogram(const double *sorted, size_t n, double *origin, double *width, double bin[BINS])
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
	/* Mirrored at the ends: a peak at the very edge must not lose half of its height. */
	raw[0] = raw[1];
	raw[BINS + 1] = raw[BINS];
	for (size_t b = 0; b < BINS; b++)
		bin[b] = 0.25 * raw[b] + 0.5 * raw[b + 1] + 0.25 * raw[b + 2];
}

/* Bins at which a new cluster begins: the lowest bin of every deep valley.  Returns their number. */
static size_t valleys(const double bin[BINS], size_t cut[BINS])
{
	size_t cuts = 0, lowest = 0;
	double peak = bin[0];  /* of the cluster so far */
	for (size_t b = 1; b < BINS; b++) {
		if (bin[b] < bin[lowest])
			lowest = b;
		/* Is [lowest] a valley between the peak before it and a rise up to here? */
		if (lowest < b && bin[lowest] < DEEP * peak && bin[lowest] < DEEP * bin[b]) {
			/* Worth a cut only when the rise goes on to be a peak: the next bin is no higher, or the end. */
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

size_t stats_clusters(const double *v, size_t n, struct cluster *out, size_t room)
{
	if (n == 0 || room == 0)
		return 0;
	double *sorted = mem_new(n, sizeof *sorted), bin[BINS], origin, width;
	memcpy(sorted, v, n * sizeof *sorted);
	stats_sort(sorted, n);
	histogram(sorted, n, &origin, &width, bin);
	size_t cut[BINS], cuts = width > 0 ? valleys(bin, cut) : 0, found = 0, from = 0;
	struct cluster all[BINS + 1];
	for (size_t c = 0; c <= cuts; c++) {
		size_t to = n, below;
		if (c < cuts)
			rank(sorted, n, origin + (double)cut[c] * width, &to, &below);
		if (to > from) {
			all[found++] = (struct cluster){ stats_quantile(sorted + from, to - from, 0.5),
			                                 (double)(to - from) / (double)n };
		}
		from = to;
	}
	free(sorted);
	qsort(all, found, sizeof *all, by_share);
	if (found > room)
		found = room;
	memcpy(out, all, found * sizeof *all);
	return found;
}
