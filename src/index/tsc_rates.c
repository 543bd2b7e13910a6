#include "index/tsc_rates.h"

static int find_rate(const struct input *in, size_t i, const struct trace *trace, uint64_t of_host, struct error *err)
{
	uint64_t *rate = &in->spec[i].tsc_millihertz;
	const int measured = sync_tsc_rate(trace, rate, err);
	if (measured < 0)
		return -1;
	if (measured == 0)
		*rate = in->sync_options.tsc_hz ? (uint64_t)in->sync_options.tsc_hz * 1000 : of_host;
	if (*rate)
		return 0;
	return error_set(err, STATUS_INPUT, "use --tsc-hz N, record hrtimer_expire_entry as well, or use the clock mono "
	                 "(-C mono)", "%s: its times are TSC cycles of unknown frequency", trace_info(trace)->machine);
}

int tsc_rates_find(struct input *in, struct trace *const *trace, struct error *err)
{
	uint64_t of_host = 0;
	bool has_host = false, found = false;
	for (int host = 1; host >= 0; host--)
		for (size_t i = 0; i < in->specs; i++) {
			const struct trace_info *info = trace_info(trace[i]);
			if ((info->role == ROLE_HOST) != (host != 0))
				continue;
			has_host |= host != 0;
			if (!has_host || !info->in_cycles || in->spec[i].tsc_millihertz)
				continue;
			if (find_rate(in, i, trace[i], of_host, err))
				return -1;
			of_host = host ? in->spec[i].tsc_millihertz : of_host;
			found = true;
		}
	return found;
}

void tsc_rates_add_notes(const struct input *in, struct trace *const *trace, struct notes *notes)
{
	for (size_t i = 0; i < in->specs; i++)
		if (in->spec[i].tsc_millihertz)
			note_add(notes, CLOCK_FROM_RATE, trace_info(trace[i])->machine, (double)in->spec[i].tsc_millihertz / 1e9);
}
