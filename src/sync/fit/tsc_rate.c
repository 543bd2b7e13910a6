#include "sync/fit/tsc_rate.h"

#include <math.h>

#include "base/base.h"
#include "base/int128.h"

#define PAIRS_MAX (1u << 20)
#define PAIRS_MIN 64
#define RATE_PAIRS 30      /* distance of two pairs of one slope, in pairs: longer than the delay of one interrupt */
#define JUMP_NS 1e6        /* ns; greater jumps of TSC minus clock end a part */

struct tsc_pair { int64_t tsc, ns; };

struct tsc_pairs {
	struct tsc_pair *pair;
	size_t len, cap;
};

static int read_pairs(const struct trace *trace, struct tsc_pairs *p, struct error *err)
{
	struct trace_cursor *c = trace_cursor_open(trace, KIND(EV_TIMER_ENTRY), -1, err);
	const struct event *ev;
	int got = c ? 0 : -1;
	while (c && p->len < PAIRS_MAX && (got = trace_cursor_borrow(c, &ev, err)) > 0)
		if (ev->timer.now > 0)
			*ARRAY_PUSH(p->pair, p->len, p->cap) = (struct tsc_pair){ ev->ts, ev->timer.now };
	trace_cursor_close(c);
	return got < 0 ? -1 : 0;
}

/* Returns the median rate, cycles/ns; 0: none. */
static double median_rate(const struct tsc_pairs *p)
{
	double *slope = mem_new(p->len, sizeof *slope), rate = 0;
	size_t n = 0;
	for (size_t i = 0; i + RATE_PAIRS < p->len; i += RATE_PAIRS / 4) {
		const struct tsc_pair a = p->pair[i], b = p->pair[i + RATE_PAIRS];
		if (b.ns > a.ns && b.tsc > a.tsc)
			slope[n++] = (double)(b.tsc - a.tsc) / (double)(b.ns - a.ns);
	}
	if (n >= 2) {
		qsort(slope, n, sizeof *slope, order_double);
		rate = slope[n / 2];
	}
	free(slope);
	return rate;
}

/* Returns how far the TSC is ahead of the clock at pair i, relative to the first pair, ns. */
static double ahead(const struct tsc_pairs *p, size_t i, double rate)
{
	return (double)(p->pair[i].tsc - p->pair[0].tsc) / rate - (double)(p->pair[i].ns - p->pair[0].ns);
}

/* Returns the pair of [from, to) at which the TSC is least ahead: its interrupt was delayed least. */
static size_t least_delayed(const struct tsc_pairs *p, size_t from, size_t to, double rate)
{
	size_t best = from;
	for (size_t i = from; i < to; i++)
		if (ahead(p, i, rate) < ahead(p, best, rate))
			best = i;
	return best;
}

/* Refines the rate over the longest part without a jump, between the least delayed pairs of its first and last sixth. */
static double refine_rate(const struct tsc_pairs *p, double rate)
{
	size_t from = 0, to = 0;
	for (size_t i = 1, begin = 0; i <= p->len; i++) {
		if (i < p->len && fabs(ahead(p, i, rate) - ahead(p, i - 1, rate)) < JUMP_NS)
			continue;
		if (i - begin > to - from) {
			from = begin;
			to = i;
		}
		begin = i;
	}
	const size_t part = (to - from) / 6;
	if (part < 5)
		return rate;
	const struct tsc_pair a = p->pair[least_delayed(p, from, from + part, rate)];
	const struct tsc_pair b = p->pair[least_delayed(p, to - part, to, rate)];
	return b.ns > a.ns ? (double)(b.tsc - a.tsc) / (double)(b.ns - a.ns) : rate;
}

int tsc_rate_line(const struct trace *trace, struct clock_line *line, struct error *err)
{
	struct tsc_pairs p = { 0 };
	int status = read_pairs(trace, &p, err);
	double rate = status == 0 && p.len >= PAIRS_MIN ? median_rate(&p) : 0;
	if (rate > 0)
		rate = refine_rate(&p, rate);
	const double drift = rate > 0 ? 1 / rate - 1 : 8;
	if (status == 0 && drift > -31.0 / 32 && drift < 7) {
		const struct tsc_pair first = p.pair[least_delayed(&p, 0, PAIRS_MIN, rate)];
		*line = (struct clock_line){ first.tsc, first.ns, (int64_t)(drift * (double)(INT64_C(1) << 60)) };
		status = 1;
	}
	free(p.pair);
	return status;
}

int sync_tsc_rate(const struct trace *trace, uint64_t *millihertz, struct error *err)
{
	struct clock_line line;
	const int status = tsc_rate_line(trace, &line, err);
	if (status > 0)
		*millihertz = (uint64_t)llround(1e12 / (1 + (double)line.drift / (double)(INT64_C(1) << 60)));
	return status;
}

struct clock_line tsc_given_line(int64_t cycles, int64_t hz)
{
	const int128 one = (int128)1 << 60;
	const int128 ns = (int128)cycles * NS_PER_S / hz, drift = one * NS_PER_S / hz - one;
	return (struct clock_line){ cycles, saturate64(ns), (int64_t)drift };
}
