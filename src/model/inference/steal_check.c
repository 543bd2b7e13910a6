#include "model/inference/steal_check.h"

#include "model/state/state.h"

#define ALLOWED_NS (3 * NS_PER_MS)  /* difference that is no contradiction: a tick, or ... */
#define ALLOWED_SHARE 0.02          /* ... this share of the larger value */

static bool is_delay(uint8_t state)
{
	return state == HOST_RUNNABLE || state == HOST_WOKEN || state == HOST_CLAIMS;
}

/* Adds the time since the last change. A woken thread may have slept a part of HOST_QUEUED. */
static void advance(struct steal_check *c, int64_t now)
{
	const int64_t ns = now > c->since ? now - c->since : 0;
	c->delay += is_delay(c->host_state) ? ns : 0;
	c->unknown += c->host_state == HOST_UNKNOWN || c->host_state == HOST_QUEUED ? ns : 0;
	c->since = now;
}

void steal_check_set_host_state(struct steal_check *c, uint8_t host_state, int64_t now)
{
	if (host_state == c->host_state)
		return;
	advance(c, now);
	c->host_state = host_state;
}

void steal_check_read(struct steal_check *c, int64_t value, int64_t now)
{
	if (c->has_reads && value < c->last)
		return;  /* a stale read */
	advance(c, now);
	if (!c->has_reads) {
		c->first = value;
		c->delay_first = c->delay;
		c->unknown_first = c->unknown;
	}
	c->has_reads = true;
	c->last = value;
	c->delay_last = c->delay;
	c->unknown_last = c->unknown;
}

void steal_check_add_notes(const struct model *m, const struct machine *mc, struct notes *notes)
{
	double all_rose = 0, all_delay = 0;
	unsigned vcpus = 0, last = 0;
	char which[32];
	for (uint32_t i = 0; i < m->vcpus; i++) {
		const struct vcpu *v = &m->vcpu[i];
		const struct steal_check *c = &v->steal_check;
		if (v->vm != mc || !c->has_reads || !v->mapped || c->last == 0)  /* 0: the hypervisor offers no clock */
			continue;
		const double rose = (double)c->last - (double)c->first, delay = (double)(c->delay_last - c->delay_first);
		const double unknown = (double)(c->unknown_last - c->unknown_first);
		const double larger = rose > delay ? rose : delay, share = ALLOWED_SHARE * larger;
		const double allowed = unknown + (share > ALLOWED_NS ? share : ALLOWED_NS);
		if (rose > delay + allowed || delay > rose + allowed) {
			note_add(notes, STEAL_CLOCK_DIFFERS, mc->name, v->number, rose / 1e6, delay / 1e6, unknown / 1e6);
			continue;
		}
		all_rose += rose;
		all_delay += delay;
		last = v->number;
		vcpus++;
	}
	if (vcpus == 1)
		snprintf(which, sizeof which, "vCPU%u", last);
	else
		snprintf(which, sizeof which, "%u vCPUs", vcpus);
	if (vcpus)
		note_add(notes, STEAL_CLOCK_CHECK, mc->name, which, all_rose / 1e6, all_delay / 1e6);
}
