/* Which thread of the host raised an interrupt of a guest.
 *
 * A device is served by one thread of the VM's process, or by a vhost thread.  Where the interrupt woke a halted vCPU its
 * waker is known: by such wakeups, the nearest before, it is learnt who serves the device whose handler the guest then
 * enters.  Where none was seen it is whoever of the VM's threads ran since the interrupt may have been raised, if that is
 * one alone.  One that has slept and run again since may have raised it in either run, for different causes: nobody knows.
 * Cost of a device: MOST_TRIED sleeps; of an interrupt: the threads of the host, or one. */
#include "query/irq_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "query/wakeup.h"

#define MOST_TRIED 64    /* sleeps of each vCPU before and after that are looked at to learn who serves a device */
#define MOST_SERVERS 8   /* told apart in that */
#define MOST_FAILED 4    /* devices are given up after so many times */
#define MOST_HANDLERS 64 /* intervals back to the handler of a device */
#define MOST_EXITS 400   /* times that a guest was left, looked back over */
#define INTERRUPTS_OFF 200000  /* ns of its own time for which a guest may keep interrupts off, as is believed */

/* The device that interrupted vCPU v last before t, as the id of its handler's name; HISTORY_NULL: none is near. */
static int device_before(struct raisers *k, uint32_t v, int64_t t, int64_t *device)
{
	const struct topo *topo = k->r->topo;
	struct interval iv = { .start = t + 1 };
	*device = HISTORY_NULL;
	for (int i = 0; i < MOST_HANDLERS && iv.start > history_first(topo->h) && *device == HISTORY_NULL; i++) {
		if (history_stab(topo->h, topo->cpu[v].interrupt, iv.start - 1, &iv, k->r->err) < 0)
			return -1;
		if (iv.value != HISTORY_NULL && strncmp(history_string(topo->h, iv.value), "irq/", 4) == 0)
			*device = iv.value;
	}
	return 0;
}

/* Does the guest enter the handler first of all when its vCPU was woken? */
static int enters(struct raisers *k, uint32_t v, int64_t woken, int64_t device)
{
	const struct topo *topo = k->r->topo;
	struct interval iv;
	if (history_stab(topo->h, topo->cpu[v].interrupt, woken, &iv, k->r->err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL && iv.end < history_last(topo->h) &&
	    history_stab(topo->h, topo->cpu[v].interrupt, iv.end + 1, &iv, k->r->err) < 0)
		return -1;
	return iv.value == device;
}

/* Is the thread one of the VM's process, or its vhost, but no vCPU? */
static int serves(struct raisers *k, uint32_t thread, const struct who *vcpu, int64_t t)
{
	const struct topo *topo = k->r->topo;
	const struct topo_thread *th = &topo->thread[thread];
	struct interval own, iv = { .value = HISTORY_NULL };
	char vhost[32];
	if (th->role >= 0 || th->status == HISTORY_NONE || vcpu->thread < 0 || topo->thread[vcpu->thread].pid == HISTORY_NONE)
		return 0;
	if (history_stab(topo->h, topo->thread[vcpu->thread].pid, t, &own, k->r->err) < 0 ||
	    (th->pid != HISTORY_NONE && history_stab(topo->h, th->pid, t, &iv, k->r->err) < 0))
		return -1;
	if (own.value == HISTORY_NULL)
		return 0;
	snprintf(vhost, sizeof vhost, "vhost-%" PRId64, own.value);
	return iv.value == own.value || strcmp(topo_longest_name(topo, thread), vhost) == 0;
}

struct server_votes {
	uint32_t thread[MOST_SERVERS], count[MOST_SERVERS];
	unsigned threads, all;
};

static void vote(struct server_votes *votes, uint32_t thread)
{
	unsigned i = 0;
	while (i < votes->threads && votes->thread[i] != thread)
		i++;
	votes->all++;
	if (i == MOST_SERVERS)
		return;
	votes->threads += i == votes->threads;
	votes->thread[i] = thread;
	votes->count[i]++;
}

/* The sleep of vCPU v that was over before `woken`: if the guest then handled the device, whoever woke it serves that. */
static int ask_sleep(struct raisers *k, uint32_t v, struct who *host, int64_t woken, int64_t device,
                     struct server_votes *votes)
{
	struct wakeup by;
	int rc = enters(k, v, woken, device);
	if (rc <= 0 || wakeup_of(k->r, host, woken, &by) < 0)
		return rc <= 0 ? rc : -1;
	int who = by.in && strcmp(by.in, "thread") == 0 ? topo_find_thread(k->r->topo, (uint32_t)by.machine, by.tid) : -1;
	rc = who < 0 ? 0 : serves(k, (uint32_t)who, host, woken);
	if (rc > 0)
		vote(votes, (uint32_t)who);
	return rc < 0 ? -1 : 0;
}

/* The last sleeps of vCPU v before t, and the next ones after it. */
static int ask_vcpu(struct raisers *k, uint32_t v, int64_t t, int64_t device, struct server_votes *votes)
{
	const struct history *h = k->r->topo->h;
	struct who *host;
	if (resolver_host(k->r, v, t, &host) < 0)
		return -1;
	if (!host || host->thread < 0)
		return 0;
	const uint32_t status = k->r->topo->thread[host->thread].status;
	if (status == HISTORY_NONE || k->r->topo->cpu[v].interrupt == HISTORY_NONE)
		return 0;
	for (int after = 0; after < 2; after++) {
		struct interval iv = { .start = t };
		int rc = 1;
		for (int i = 0; i < MOST_TRIED && rc > 0; i++) {
			rc = (after ? history_next : history_prev)(h, status, iv.start, k->asleep, &iv, k->r->err);
			if (rc > 0 && (iv.end >= history_end(h) || ask_sleep(k, v, host, iv.end + 1, device, votes) < 0))
				rc = iv.end >= history_end(h) ? 0 : -1;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Who serves the device: its thread's index + 1; 0: nobody knows.  Two devices may have woken a vCPU at once: the one that
 * the guest handles first need not be the one whose server was seen, so it is whoever most often was. */
static int learn(struct raisers *k, uint32_t v, int64_t t, int64_t device, uint64_t *thread)
{
	const struct topo_machine *m = &k->r->topo->machine[k->r->topo->cpu[v].machine];
	struct server_votes votes = { .threads = 0 };
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++)
		if (ask_vcpu(k, c, t, device, &votes) < 0)
			return -1;
	for (unsigned i = 0; i < votes.threads; i++)
		if (votes.count[i] > 2 * (votes.all - votes.count[i]))
			*thread = (uint64_t)votes.thread[i] + 1;
	return 0;
}

/* When the thread ran last within [from, t]: 1, 0 = it did not, -1. */
static int ran(struct raisers *k, uint32_t thread, int64_t from, int64_t t, int64_t *when)
{
	const struct topo *topo = k->r->topo;
	struct interval iv;
	if (history_stab(topo->h, topo->thread[thread].status, t, &iv, k->r->err) < 0)
		return -1;
	int found = state_in(k->running, iv.value) ? 1
	          : history_prev(topo->h, topo->thread[thread].status, t, k->running, &iv, k->r->err);
	if (found <= 0 || iv.end < from)
		return found < 0 ? -1 : 0;
	*when = iv.end < t ? iv.end : t;
	return 1;
}

/* When somebody ended the last sleep of the vCPU's thread before t; INT64_MIN: there was none. */
static int woken_before(struct raisers *k, struct who *host, int64_t t, int64_t *at)
{
	const struct topo *topo = k->r->topo;
	struct interval iv;
	struct wakeup by;
	*at = INT64_MIN;
	int found = history_prev(topo->h, topo->thread[host->thread].status, t, k->asleep, &iv, k->r->err);
	if (found <= 0)
		return found;
	if (wakeup_of(k->r, host, iv.end + 1, &by) < 0)
		return -1;
	*at = by.in ? by.at : iv.end + 1;
	return 0;
}

/* Since when an interrupt that vCPU v took at t may have been raised: its guest takes one when it has executed for as long
 * as it keeps interrupts off, at the latest, and one that is raised while the vCPU is halted wakes it.  Left alone where
 * nobody knows. */
static int pending_since(struct raisers *k, uint32_t v, struct who *host, int64_t t, int64_t *since)
{
	const struct topo *topo = k->r->topo;
	const uint32_t status = topo->cpu[v].status;
	struct interval iv;
	int64_t woken;
	if (topo->thread[host->thread].status == HISTORY_NONE || status == HISTORY_NONE)
		return 0;
	if (woken_before(k, host, t, &woken) < 0 || history_stab(topo->h, status, t, &iv, k->r->err) < 0)
		return -1;
	int64_t executed = iv.value >= 0 && iv.value < HISTORY_STATES && k->executing >> iv.value & 1 ? t - iv.start : 0;
	for (int i = 0; i < MOST_EXITS && executed < INTERRUPTS_OFF && iv.start > woken; i++) {
		int found = history_prev(topo->h, status, iv.start, k->executing, &iv, k->r->err);
		if (found <= 0)
			return found;
		executed += iv.end - iv.start + 1;
	}
	if (executed >= INTERRUPTS_OFF)
		woken = iv.start + executed - INTERRUPTS_OFF > woken ? iv.start + executed - INTERRUPTS_OFF : woken;
	if (woken > *since && (executed >= INTERRUPTS_OFF || iv.start <= woken))
		*since = woken;
	return 0;
}

/* And since when if the device's interrupts were handled before: what was done until they began to be they have served. */
static int served_since(struct raisers *k, uint32_t v, int64_t t, int64_t device, int64_t *since)
{
	const struct history *h = k->r->topo->h;
	struct interval iv = { .start = t + 1 };
	bool apart = false, before = false;
	for (int i = 0; i < MOST_HANDLERS && iv.start > history_first(h); i++) {
		if (history_stab(h, k->r->topo->cpu[v].interrupt, iv.start - 1, &iv, k->r->err) < 0)
			return -1;
		if (iv.value == HISTORY_NULL && (i == 0 || before))
			break;
		apart |= iv.value == HISTORY_NULL;
		before |= apart && iv.value == device;
	}
	if (before && iv.value == HISTORY_NULL && iv.end + 1 > *since)
		*since = iv.end + 1;
	return 0;
}

/* Who serves the device, remembered. */
static int server_of(struct raisers *k, uint32_t v, int64_t t, int64_t device, uint32_t *server)
{
	const uint64_t key = (uint64_t)k->r->topo->cpu[v].machine << 32 | (uint64_t)(device & UINT32_MAX);
	uint64_t thread = 0, *known = map_put(&k->known, key, NULL);
	if (*known >> 32 >= MOST_FAILED)
		return 0;
	if (*known & UINT32_MAX)
		thread = *known;
	else if (learn(k, v, t, device, &thread) < 0)
		return -1;
	else
		*known = thread ? thread : *known + (UINT64_C(1) << 32);
	*server = (uint32_t)thread;
	return 0;
}

/* Has it slept, and run before, since the interrupt may have been raised?  Then it may have been in either run. */
static int ran_twice(struct raisers *k, uint32_t thread, int64_t since, int64_t when)
{
	const struct topo *topo = k->r->topo;
	struct interval iv;
	if (since == INT64_MIN)
		return 0;
	int found = history_prev(topo->h, topo->thread[thread].status, when, k->asleep, &iv, k->r->err);
	return found <= 0 ? found : iv.start > since;
}

int raiser_of(struct raisers *k, uint32_t v, const struct who *host, int64_t from, int64_t t, struct who **out,
              int64_t *when)
{
	const struct topo *topo = k->r->topo;
	const struct topo_machine *m = &topo->machine[host->machine];
	int64_t device;
	*out = NULL;
	*when = INT64_MAX;
	if (host->thread < 0 || topo->cpu[v].interrupt == HISTORY_NONE || device_before(k, v, t, &device) < 0)
		return host->thread < 0 || topo->cpu[v].interrupt == HISTORY_NONE ? 0 : -1;
	uint32_t server = 0;
	if (device != HISTORY_NULL && server_of(k, v, t, device, &server) < 0)
		return -1;
	int64_t since = from;
	if (pending_since(k, v, resolver_who(k->r, (uint32_t)host->machine, host->tid), t, &since) < 0 ||
	    (device != HISTORY_NULL && served_since(k, v, t, device, &since) < 0))
		return -1;
	from = server ? from : since;
	uint32_t first = server ? server - 1 : m->thread;
	uint32_t end = server ? first + 1 : m->thread + m->threads;
	unsigned some = 0;
	for (uint32_t i = first; i < end; i++) {
		int64_t at;
		int rc = server ? 1 : serves(k, i, host, t);
		if (rc > 0)
			rc = ran(k, i, from, t, &at);
		if (rc < 0)
			return -1;
		if (!rc)
			continue;
		*out = resolver_who(k->r, (uint32_t)host->machine, topo->thread[i].tid);
		*when = some++ && *when > at ? *when : at;
	}
	int twice = some == 1 ? ran_twice(k, (uint32_t)(*out)->thread, since, *when) : 0;
	*out = some == 1 && twice <= 0 ? *out : NULL;
	return twice < 0 ? -1 : 0;
}

int raiser_woke(struct raisers *k, uint32_t v, const struct wakeup *by, int64_t woken, int64_t t)
{
	int64_t device;
	uint32_t server = 0;
	if (k->r->topo->cpu[v].interrupt == HISTORY_NONE)
		return 1;
	if (device_before(k, v, t, &device) < 0)
		return -1;
	if (device == HISTORY_NULL)
		return 1;
	if (server_of(k, v, t, device, &server) < 0)
		return -1;
	if (!server)
		return enters(k, v, woken, device);
	return topo_find_thread(k->r->topo, (uint32_t)by->machine, by->tid) == (int)server - 1;
}

int raiser_outslept(struct raisers *k, struct who *host, const struct who *server, int64_t *raised)
{
	struct wakeup by;
	struct row_track *status = &resolver_own(k->r, host)[OWN_STATUS];
	int64_t value;
	if (track_at(k->r, status, *raised, &value) < 0)
		return -1;
	const int64_t over = status->iv.end;
	if (!state_in(k->asleep, value) || over >= history_last(k->r->topo->h))
		return 0;
	if (wakeup_of(k->r, host, over + 1, &by) < 0)
		return -1;
	if (by.in && strcmp(by.in, "thread") == 0 && (!server || by.tid != server->tid || by.machine != server->machine))
		*raised = over + 1;
	return 0;
}
