#include "sync/search/initial_offsets.h"

#include <math.h>
#include <stdlib.h>

#define SEGMENT_TIMES 120       /* a segment with less activity is made longer */
#define SEGMENT_BINS 131072
#define ROUGH_MAX 16            /* guesses in long bins that are followed, unless ... */
#define ROUGH_LEAST 0.25        /* ... their score is so small a share of the best one's */
#define FINE_EACH (GUESSES_MAX / ROUGH_MAX)  /* guesses in short bins for each of them */
#define FINE_PLACES 16
#define REACH_NS 150000         /* how far the coarse search may be off */
#define SAMPLE 300              /* events that a sweep looks at, and then ten times as many */
#define ROUGHLY_LEAST 0.8       /* covered by the first sweep: what has less never comes to SHARE_LEAST */

static struct segment segment_at(const struct activity *act, double where, int64_t length)
{
	int64_t all = act->end - act->begin;
	if (length > all)
		length = all;
	int64_t from = act->begin + (int64_t)((double)all * where) - length / 2;
	if (from < act->begin)
		from = act->begin;
	if (from > act->end - length)
		from = act->end - length;
	return (struct segment){ from, from + length };
}

/* Long enough to say something. */
static struct segment choose_segment(const struct activity *act, double where, int64_t length)
{
	for (;; length *= 2) {
		struct segment seg = segment_at(act, where, length);
		if (length >= act->end - act->begin || activity_count(act, seg) >= SEGMENT_TIMES)
			return seg;
	}
}

/* The part of a long segment with most to go by. */
static struct segment choose_fine(const struct activity *act, struct segment wide)
{
	struct segment best = { wide.from, wide.from + SEGMENT_NS };
	size_t most = 0;
	for (int i = 0; i < FINE_PLACES; i++) {
		struct segment seg = { wide.from + (wide.to - wide.from - SEGMENT_NS) / (FINE_PLACES - 1) * i, 0 };
		seg.to = seg.from + SEGMENT_NS;
		size_t n = activity_count(act, seg);
		if (n > most) {
			most = n;
			best = seg;
		}
	}
	return best;
}

/* Searches again, in short bins, about each guess of a search in long ones. */
static void refine(const struct seen *seen, struct segment wide, int64_t bin, struct guess_list *l)
{
	struct guess_list rough = *l;
	int64_t middle = l->seg.from + (l->seg.to - l->seg.from) / 2;
	l->n = 0;
	for (size_t i = 0; i < rough.n && i < ROUGH_MAX && rough.guess[i].score >= ROUGH_LEAST * rough.guess[0].score; i++) {
		const struct guess *g = &rough.guess[i];
		struct guess_list fine = { .n = 0 };
		int64_t since = middle - g->at_guest, at = g->at_host + since + (int64_t)((double)since * g->ppm / 1e6);
		double step = 4 * (double)bin / (double)(wide.to - wide.from + 1);
		int64_t room = 2 * bin + (int64_t)(fabs((double)since) * step);
		coarse_search(seen, l->seg, (struct range){ at - room, at + room }, BIN_NS, &fine);
		for (size_t k = 0; k < fine.n && k < FINE_EACH; k++)
			l->guess[l->n++] = fine.guess[k];
	}
}

static double coverage(const struct guess *g)
{
	return g->events == 0 ? 0 : (double)g->covered / g->events;
}

/* Moves each guess to where it covers most, and drops those that do not cover enough, or much less than others. */
static void sweep(const struct seen *seen, struct guess_list *l)
{
	double most = ROUGHLY_LEAST / SHARE_LEAST;
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		guess_sweep(seen, l->seg, REACH_NS, SAMPLE, &l->guess[i]);
		most = fmax(most, coverage(&l->guess[i]));
	}
	for (size_t i = 0; i < l->n; i++) {
		struct guess g = l->guess[i];
		/* A guest with short delays wants a fine drift before its events fall into place. */
		for (int64_t reach = REACH_NS / 5; reach > 500 && coverage(&g) >= SHARE_LEAST * most; reach /= 5) {
			guess_sweep(seen, l->seg, reach, 10 * SAMPLE, &g);
			if (coverage(&g) == 1)
				break;
		}
		if (coverage(&g) >= SHARE_LEAST)
			l->guess[n++] = g;
	}
	l->n = n;
}

void guess_clocks(const struct seen *seen, double where, int64_t length, int64_t lags, struct guess_list *out)
{
	const struct range any = { seen->host->begin, seen->host->end };
	int64_t bin = BIN_NS, all = any.to - any.from;
	while (all / bin > lags)
		bin *= 2;
	struct segment wide = choose_segment(seen->act, where, length * (bin / BIN_NS));
	int64_t span = wide.to - wide.from;
	while (bin > BIN_NS && span / bin < SEGMENT_BINS / 4 && all / bin < 4 * lags)
		bin /= 2;
	while (span / bin > SEGMENT_BINS)
		bin *= 2;
	out->seg = wide;
	out->n = 0;
	if (guess_nowhere(seen, wide))
		return;
	coarse_search(seen, wide, any, bin, out);
	if (bin > BIN_NS) {
		if (span > SEGMENT_NS)
			out->seg = choose_fine(seen->act, wide);
		refine(seen, wide, bin, out);
	}
	sweep(seen, out);
}
