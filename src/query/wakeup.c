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

/* Corrects by->at if the waker acted before the sleeper was off its CPU and has fallen asleep since: then by->at becomes
 * the start of the waker's sleep. */
static int waker_set_last_action(struct resolver *r, struct wakeup *by)
{
	int64_t status;
	if (strcmp(by->in, "thread") != 0 || by->tid <= 0)
		return 0;
	struct row_track *tracks = &thread_tracks(r, resolver_thread(r, (uint32_t)by->machine, by->tid))[TRACK_STATUS];
	if (track_at(r, tracks, by->at, &status) < 0)
		return -1;
	if (status >= 0 && status < HISTORY_STATES && r->catalog->thread_state[status] == THREAD_BLOCKED)
		by->at = tracks->iv.start;
	return 0;
}

int wakeup_of(struct resolver *r, struct thread_ref *sleeper, int64_t at, struct wakeup *out)
{
	const struct catalog *catalog = r->catalog;
	struct row_track *tracks = thread_tracks(r, sleeper);
	int64_t waker, in, status;
	*out = (struct wakeup){ at, -1, -1, NULL };
	if (at > history_last(catalog->h))
		return 0;
	if (track_at(r, &tracks[TRACK_STATUS], at - 1, &status) < 0)
		return -1;
	int64_t asleep = tracks[TRACK_STATUS].iv.start;
	if (track_at(r, &tracks[TRACK_STATUS], at, &status) < 0 || track_at(r, &tracks[TRACK_WAKER], at, &waker) < 0 ||
	    track_at(r, &tracks[TRACK_WOKEN_IN], at, &in) < 0)
		return -1;
	if (status < 0 || status >= HISTORY_STATES || catalog->thread_state[status] == THREAD_UNKNOWN || in == HISTORY_NULL)
		return 0;  /* events were lost, the thread exited, or the waker's context is unknown */
	if (in != sleeper->woken_in) {
		sleeper->handler = history_string(catalog->h, in);
		sleeper->woken_in = in;
	}
	if (resolver_waker(r, waker, &out->machine, &out->tid))
		out->in = sleeper->handler;
	if (tracks[TRACK_WAKER].iv.start >= asleep)  /* the wakeup came while the thread was falling asleep */
		out->at = tracks[TRACK_WAKER].iv.start;
	return out->in && out->at == asleep ? waker_set_last_action(r, out) : 0;
}
