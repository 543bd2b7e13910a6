#include "sync/search/initial_offsets.h"

#include <math.h>
#include <stdlib.h>

#define SEGMENT_TIMES 120       /* fewest events in an interval; an interval with fewer is extended */
#define SEGMENT_BINS 131072
#define ROUGH_MAX 16            /* most estimates from long bins that are refined ... */
#define ROUGH_MIN 0.25        /* ... if their score is at least this share of the best score */
#define FINE_EACH (ESTIMATES_MAX / ROUGH_MAX)  /* estimates in short bins for each refined estimate */
#define FINE_POSITIONS 16
#define SEARCH_REACH_NS 150000         /* greatest error of the cross-correlation, ns */
#define SAMPLE 300              /* events in the first sweep; later sweeps use 10 times as many */

static struct ns_interval segment_at(const struct activity *activity, double center, int64_t length)
{
	int64_t all = activity->end - activity->begin;
	if (length > all)
		length = all;
	int64_t from = activity->begin + (int64_t)((double)all * center) - length / 2;
	if (from < activity->begin)
		from = activity->begin;
	if (from > activity->end - length)
		from = activity->end - length;
	return (struct ns_interval){ from, from + length };
}

/* Returns an interval around `center` that is at least `length` long and has enough activity. */
static struct ns_interval choose_segment(const struct activity *activity, double center, int64_t length)
{
	for (;; length *= 2) {
		struct ns_interval interval = segment_at(activity, center, length);
		if (length >= activity->end - activity->begin || activity_count(activity, interval) >= SEGMENT_TIMES)
			return interval;
	}
}

/* Returns the SEGMENT_NS of a long interval with most activity. */
static struct ns_interval choose_fine(const struct activity *activity, struct ns_interval wide)
{
	struct ns_interval best = { wide.from, wide.from + SEGMENT_NS };
	size_t most = 0;
	for (int i = 0; i < FINE_POSITIONS; i++) {
		struct ns_interval interval = { wide.from + (wide.to - wide.from - SEGMENT_NS) / (FINE_POSITIONS - 1) * i, 0 };
		interval.to = interval.from + SEGMENT_NS;
		size_t n = activity_count(activity, interval);
		if (n > most) {
			most = n;
			best = interval;
		}
	}
	return best;
}

/* Replaces estimates from long bins: searches again, in short bins, around each of them. */
static void refine_estimates(const struct evidence *evidence, struct ns_interval wide, int64_t bin, struct offset_list *l)
{
	struct offset_list rough = *l;
	int64_t middle = l->interval.from + (l->interval.to - l->interval.from) / 2;
	l->n = 0;
	for (size_t i = 0; i < rough.n && i < ROUGH_MAX && rough.estimate[i].score >= ROUGH_MIN * rough.estimate[0].score;
	     i++) {
		const struct offset_estimate *g = &rough.estimate[i];
		struct offset_list fine = { .n = 0 };
		int64_t since = middle - g->at_guest, at = g->at_host + since + (int64_t)((double)since * g->ppm / 1e6);
		double step = 4 * (double)bin / (double)(wide.to - wide.from + 1);
		int64_t tolerance = 2 * bin + (int64_t)(fabs((double)since) * step);
		cross_correlate(evidence, l->interval, (struct ns_interval){ at - tolerance, at + tolerance }, BIN_NS, &fine);
		for (size_t k = 0; k < fine.n && k < FINE_EACH; k++)
			l->estimate[l->n++] = fine.estimate[k];
	}
}

static double covered_share(const struct offset_estimate *g)
{
	return g->events == 0 ? 0 : (double)g->covered / g->events;
}

/* Moves each estimate to the offset with most events in guest mode, and drops estimates with too few. */
static void sweep_estimates(const struct evidence *evidence, struct offset_list *l)
{
	double most = FIRST_SWEEP_SHARE_MIN / CANDIDATE_SHARE_MIN;
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		refine_offset(evidence, l->interval, SEARCH_REACH_NS, SAMPLE, &l->estimate[i]);
		most = fmax(most, covered_share(&l->estimate[i]));
	}
	for (size_t i = 0; i < l->n; i++) {
		struct offset_estimate g = l->estimate[i];
		/* If a guest's delays are short, its drift must be refined before its events fall into the windows. */
		const double least = CANDIDATE_SHARE_MIN * most;
		for (int64_t reach = SEARCH_REACH_NS / 5; reach > 500 && covered_share(&g) >= least; reach /= 5) {
			refine_offset(evidence, l->interval, reach, 10 * SAMPLE, &g);
			if (covered_share(&g) == 1)
				break;
		}
		if (covered_share(&g) >= CANDIDATE_SHARE_MIN)
			l->estimate[n++] = g;
	}
	l->n = n;
}

void find_initial_offsets(const struct evidence *evidence, double center, int64_t length, int64_t lags,
                          struct offset_list *out)
{
	const struct ns_interval any = { evidence->host->begin, evidence->host->end };
	int64_t bin = BIN_NS, all = any.to - any.from;
	while (all / bin > lags)
		bin *= 2;
	struct ns_interval wide = choose_segment(evidence->activity, center, length * (bin / BIN_NS));
	int64_t span = wide.to - wide.from;
	while (bin > BIN_NS && span / bin < SEGMENT_BINS / 4 && all / bin < 4 * lags)
		bin /= 2;
	while (span / bin > SEGMENT_BINS)
		bin *= 2;
	out->interval = wide;
	out->n = 0;
	if (offset_precheck_rejects(evidence, wide))
		return;
	cross_correlate(evidence, wide, any, bin, out);
	if (bin > BIN_NS) {
		if (span > SEGMENT_NS)
			out->interval = choose_fine(evidence->activity, wide);
		refine_estimates(evidence, wide, bin, out);
	}
	sweep_estimates(evidence, out);
}
