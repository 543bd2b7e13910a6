/* Guest clocks: guest = ref_guest + floor((host - ref_host) * (1 + rate / 2^60)), piecewise. floor keeps the order (two
 * records may get the same guest ns, never a reversed order). The inverse, which the analysis estimates, is host =
 * ref_host + (guest - ref_guest) * alpha with alpha = 1 / (1 + rate / 2^60). */
#include "base/int128.h"
#include "sim.h"

#define ONE (INT64_C(1) << 60)

int64_t clock_guest(const struct machine *m, int64_t host)
{
	const struct clock_part *p = &m->clock[0];

	for (unsigned i = 1; i < m->clocks && m->clock[i].from <= host; i++)
		p = &m->clock[i];
	return p->ref_guest + (host - p->ref_host) + (int64_t)(((int128)(host - p->ref_host) * p->rate) >> 60);
}

/* Sets the clock: when the simulation begins it is the clock of the machine below + offset; then it runs faster than the
 * host's clock by drift_ppb parts per 10^9. */
void clock_set(struct machine *m, int64_t offset, int64_t drift_ppb)
{
	struct sim *s = m->sim;
	int64_t begin = (m->below ? clock_guest(m->below, s->begin) : s->begin) + offset;

	m->clock[0] = (struct clock_part){
		.from = INT64_MIN, .ref_host = s->begin, .ref_guest = begin, .rate = (int64_t)((int128)ONE * drift_ppb / SEC),
	};
	m->clocks = 1;
	m->boot_guest = begin - (m->is_host ? 20 : 7) * SEC;
}

/* Steps the guest's clock ahead by `by` ns at `from`. */
void clock_step(struct machine *m, int64_t from, int64_t by)
{
	int64_t guest = clock_guest(m, from);

	m->clock[m->clocks] = (struct clock_part){
		.from = from, .ref_host = from, .ref_guest = guest + by, .rate = m->clock[m->clocks - 1].rate,
	};
	m->clocks++;
}
