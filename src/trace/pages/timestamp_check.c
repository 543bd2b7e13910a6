#include "trace/pages/timestamp_check.h"

#include "base/base.h"

#define ROUNDING_NS 1000  /* maximum decrease of the time that is not damage, ns: corrected times are rounded */

void timestamp_check_open(struct timestamp_check *g, struct event_sink *out, int64_t limit)
{
	*g = (struct timestamp_check){ .out = out, .limit = limit, .last_passed = INT64_MIN };
}

/* Returns how many held events, from the first one on, are possible if the next page begins at time `next`. */
static size_t count_possible(const struct timestamp_check *g, int64_t next)
{
	if (g->last_passed != INT64_MIN && g->pending[0].ts < g->last_passed - ROUNDING_NS)
		return 0;
	size_t n = 0;
	while (n < g->len && g->pending[n].ts <= next)
		n++;
	return n;
}

static int drop_damaged_rest(struct timestamp_check *g, uint16_t cpu, int64_t next)
{
	if (event_sink_report_damage(g->out, "impossible time stamp", true))
		return -1;
	if (g->last_passed == INT64_MIN || next <= g->last_passed || next == INT64_MAX)
		return 0;
	return event_sink_put(g->out, &(struct event){ .ts = g->last_passed, .kind = EV_LOST, .cpu = cpu, .tid = -1, .pid = -1,
		.lost = { next, EVENT_ABSENT } });
}

/* Passes the possible events of the held page on, and reports the others. The next page begins at time `next`. Returns 0
 * or -1. */
static int put_page(struct timestamp_check *g, int64_t next)
{
	if (!g->len)
		return 0;
	const bool next_is_damaged = g->last_passed != INT64_MIN && next < g->last_passed - ROUNDING_NS;
	const size_t n = count_possible(g, next_is_damaged ? g->limit : next < g->limit ? next : g->limit), len = g->len;
	g->len = 0;
	for (size_t i = 0; i < n; i++) {
		struct event *ev = &g->pending[i];
		if (ev->kind == EV_LOST && ev->lost.end > next && !next_is_damaged)
			ev->lost.end = next;
		if (event_sink_put(g->out, ev))
			return -1;
		g->last_passed = ev->ts > g->last_passed ? ev->ts : g->last_passed;
	}
	return n < len ? drop_damaged_rest(g, g->pending[0].cpu, next_is_damaged ? g->last_passed : next) : 0;
}

int timestamp_check_put(struct timestamp_check *g, uint64_t page, const struct event *ev)
{
	if (page != g->page && put_page(g, ev->ts))
		return -1;
	g->page = page;
	*ARRAY_PUSH(g->pending, g->len, g->cap) = *ev;
	return 0;
}

int timestamp_check_close(struct timestamp_check *g)
{
	const int status = put_page(g, g->limit);
	free(g->pending);
	*g = (struct timestamp_check){ 0 };
	return status;
}
