#include "query/wakeup.h"

#include <string.h>

bool wakeup_is_timer(const char *in)
{
	return strcmp(in, "timer") == 0 || strcmp(in, "softirq/1-TIMER") == 0 || strcmp(in, "softirq/8-HRTIMER") == 0;
}

bool wakeup_is_network(const char *in)
{
	return strcmp(in, "softirq/2-NET_TX") == 0 || strcmp(in, "softirq/3-NET_RX") == 0;
}

bool wakeup_is_device(const char *in)
{
	return strncmp(in, "irq/", 4) == 0 || strcmp(in, "softirq/4-BLOCK") == 0 || wakeup_is_network(in);
}

/* A waker that acted before the sleeper was gone may itself have fallen asleep since: then it acted until that. */
static int since_it_acted(struct resolver *r, struct wakeup *by)
{
	int64_t status;
	if (strcmp(by->in, "thread") != 0 || by->tid <= 0)
		return 0;
	struct row_track *own = &resolver_own(r, resolver_who(r, (uint32_t)by->machine, by->tid))[OWN_STATUS];
	if (track_at(r, own, by->at, &status) < 0)
		return -1;
	if (status >= 0 && status < HISTORY_STATES && r->topo->thread_state[status] == THREAD_BLOCKED)
		by->at = own->iv.start;
	return 0;
}

int wakeup_of(struct resolver *r, struct who *sleeper, int64_t at, struct wakeup *out)
{
	const struct topo *topo = r->topo;
	struct row_track *own = resolver_own(r, sleeper);
	int64_t waker, in, status;
	*out = (struct wakeup){ at, -1, -1, NULL };
	if (at > history_last(topo->h))
		return 0;
	if (track_at(r, &own[OWN_STATUS], at - 1, &status) < 0)
		return -1;
	int64_t asleep = own[OWN_STATUS].iv.start;
	if (track_at(r, &own[OWN_STATUS], at, &status) < 0 || track_at(r, &own[OWN_WAKER], at, &waker) < 0 ||
	    track_at(r, &own[OWN_WOKEN_IN], at, &in) < 0)
		return -1;
	if (status < 0 || status >= HISTORY_STATES || topo->thread_state[status] == THREAD_UNKNOWN || in == HISTORY_NULL)
		return 0;  /* events were lost, or it did not live longer, or nothing tells in what its waker acted */
	if (in != sleeper->woken_in) {
		sleeper->handler = history_string(topo->h, in);
		sleeper->woken_in = in;
	}
	if (resolver_waker(r, waker, &out->machine, &out->tid))
		out->in = sleeper->handler;
	if (own[OWN_WAKER].iv.start >= asleep)  /* at once: it was being woken as it fell asleep */
		out->at = own[OWN_WAKER].iv.start;
	return out->in && out->at == asleep ? since_it_acted(r, out) : 0;
}
