#include "sync/fit/tsc.h"

#include "base/int128.h"

#define FREQUENCY_RATIO_MIN 100  /* the frequencies of both sides may differ by 1 in FREQUENCY_RATIO_MIN */

/* Host cycles = (guest cycles - offset) * 2^bits / ratio; each side's scale then converts its cycles to ns. */
bool tsc_line(const struct trace_info *host, const struct trace_info *guest, const struct sync_hint *hint,
              struct clock_line *line)
{
	const struct clock_scale *h = &host->scale, *g = &guest->scale;
	if (!h->is_tsc || !g->is_tsc)
		return false;
	if (host->has_vcpu_states && !(hint && hint->has_tsc)) {  /* paravirtualized guests read the TSC itself */
		*line = (struct clock_line){ g->ns, clock_scale_ns(h, g->count), 0 };
		return h->millihertz == g->millihertz;
	}
	if (!hint || !hint->has_tsc)
		return false;
	if (h->millihertz > INT64_MAX || g->millihertz > INT64_MAX)
		return false;
	const uint64_t shifted = g->count - (uint64_t)hint->tsc_offset;
	const uint128 cycles = ((uint128)shifted << hint->tsc_bits) / hint->tsc_ratio;
	const int128 ours = (int128)h->millihertz * (int128)hint->tsc_ratio, theirs = (int128)g->millihertz << hint->tsc_bits;
	const int128 gap = theirs - ours, far = gap < 0 ? -gap : gap;
	if (cycles > UINT64_MAX || far > ours / FREQUENCY_RATIO_MIN)
		return false;
	/* The frequencies' difference is a rounding error of 1e-12, so double is exact enough. */
	const double drift = (double)gap / (double)ours * (double)(INT64_C(1) << 60);
	*line = (struct clock_line){ g->ns, clock_scale_ns(h, (uint64_t)cycles), (int64_t)drift };
	return true;
}
