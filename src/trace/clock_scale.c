/* Conversion of a tracer's clock to ns. */
#include "base/int128.h"
#include "base/number.h"
#include "trace/trace.h"

/* Returns a * b / c, rounded down; c > 0. */
static int128 ratio_down(int128 a, int64_t b, uint64_t c)
{
	const int128 x = a * b, q = x / (int128)c;
	return q - (x % (int128)c < 0);
}

int64_t clock_scale_ns(const struct clock_scale *s, uint64_t count)
{
	return saturate64(s->ns + ratio_down((int64_t)(count - s->count), CLOCK_SCALE_NS, s->millihertz));
}
