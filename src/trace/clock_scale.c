/* What a tracer's clock counts -> ns. */
#include "base/int128.h"
#include "trace/trace.h"

/* a * b / c, rounded down; c > 0. */
static int128 ratio_down(int128 a, int64_t b, uint64_t c)
{
	const int128 x = a * b, q = x / (int128)c;
	return q - (x % (int128)c < 0);
}

static int64_t within(int128 x)
{
	return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

int64_t trace_scale_ns(const struct trace_scale *s, uint64_t count)
{
	return within(s->ns + ratio_down((int64_t)(count - s->count), TRACE_SCALE_NS, s->millihertz));
}
