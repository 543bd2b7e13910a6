#include "trace/pages/timestamp_check.h"

#include <stdlib.h>

#include "base/mem.h"

#define SLACK 1000  /* ns that a time may go back: of corrected times, which were rounded */

void guard_open(struct guard *g, struct outlet *out, int64_t limit)
{
	*g = (struct guard){ .out = out, .limit = limit, .good = INT64_MIN };
}

/* How many of the held events, from the first on, can be true if what follows begins at `next`. */
static size_t count_good(const struct guard *g, int64_t next)
{
	if (g->good != INT64_MIN && g->held[0].ts < g->good - SLACK)
		return 0;
	size_t n = 0;
	while (n < g->len && g->held[n].ts <= next)
		n++;
	return n;
}

static int drop(struct guard *g, uint16_t cpu, int64_t next)
{
	if (outlet_damaged(g->out, "a time stamp that cannot be", true))
		return -1;
	if (g->good == INT64_MIN || next <= g->good || next == INT64_MAX)
		return 0;
	return outlet_put(g->out, &(struct event){ .ts = g->good, .kind = EV_LOST, .cpu = cpu, .tid = -1, .pid = -1,
		.lost = { next, EVENT_ABSENT } });
}

/* The page is over; what follows begins at `next`. */
static int let_go(struct guard *g, int64_t next)
{
	if (!g->len)
		return 0;
	const bool is_back = g->good != INT64_MIN && next < g->good - SLACK;  /* then it is the next page that is damaged */
	const size_t n = count_good(g, is_back ? g->limit : next < g->limit ? next : g->limit), len = g->len;
	g->len = 0;
	for (size_t i = 0; i < n; i++) {
		struct event *ev = &g->held[i];
		if (ev->kind == EV_LOST && ev->lost.end > next && !is_back)
			ev->lost.end = next;
		if (outlet_put(g->out, ev))
			return -1;
		g->good = ev->ts > g->good ? ev->ts : g->good;
	}
	return n < len ? drop(g, g->held[0].cpu, is_back ? g->good : next) : 0;
}

int guard_put(struct guard *g, uint64_t page, const struct event *ev)
{
	if (page != g->page && let_go(g, ev->ts))
		return -1;
	g->page = page;
	*ARRAY_PUSH(g->held, g->len, g->cap) = *ev;
	return 0;
}

int guard_close(struct guard *g)
{
	const int status = let_go(g, g->limit);
	free(g->held);
	*g = (struct guard){ 0 };
	return status;
}
