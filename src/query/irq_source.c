/* Finds the host thread that raised an interrupt of a guest.
 *
 * Each device is served by one thread of the VM's process, or by a kernel thread for it (vhost, kvm-pit).
 *
 * 1. If the interrupt woke a halted vCPU, its source is the waker.
 * 2. The nearest such wakeups before and after show which thread serves a device: the guest enters the device's handler
 * right after the wakeup. The majority decides.
 * 3. Without such wakeups the source is the only thread of the VM that ran since the interrupt may have been raised. If
 * several did, or if the only one ran, slept and ran again, the source is unknown.
 *
 * Cost: SLEEPS_MAX sleeps per vCPU for each device; all threads of the host, or one, for each interrupt. */
#include "query/irq_source.h"

#include "base/base.h"
#include "base/vcpu_name.h"
#include "query/wakeup.h"

#define SLEEPS_MAX 64    /* sleeps per vCPU and direction in time that are searched for a device's server */
#define SERVERS_MAX 8   /* candidates that find_server() counts */
#define FAILURES_MAX 4    /* failed searches after which no more searches are made for a device */
#define HANDLERS_MAX 64 /* intervals that are searched backwards for a device's handler */
#define EXITS_MAX 400   /* VM exits that are searched backwards */
#define IRQS_OFF_NS 200000  /* assumed maximum guest execution time with interrupts disabled, ns */

/* Finds the device that interrupted vCPU v last before t: string id of its handler's name; HISTORY_NULL: no device near
 * t. */
static int device_before(struct irq_sources *k, uint32_t v, int64_t t, int64_t *device)
{
	const struct catalog *catalog = k->r->catalog;
	struct interval iv = { .start = t + 1 };
	*device = HISTORY_NULL;
	for (int i = 0; i < HANDLERS_MAX && iv.start > history_first(catalog->h) && *device == HISTORY_NULL; i++) {
		if (history_stab(catalog->h, catalog->cpu[v].interrupt, iv.start - 1, &iv, k->r->err) < 0)
			return -1;
		if (iv.value != HISTORY_NULL && strncmp(history_string(catalog->h, iv.value), "irq/", 4) == 0)
			*device = iv.value;
	}
	return 0;
}

/* Returns 1 if the first handler that the guest enters after its vCPU was woken is the device's. */
static int guest_enters_handler(struct irq_sources *k, uint32_t v, int64_t woken, int64_t device)
{
	const struct catalog *catalog = k->r->catalog;
	struct interval iv;
	if (history_stab(catalog->h, catalog->cpu[v].interrupt, woken, &iv, k->r->err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL && iv.end < history_last(catalog->h) &&
	    history_stab(catalog->h, catalog->cpu[v].interrupt, iv.end + 1, &iv, k->r->err) < 0)
		return -1;
	return iv.value == device;
}

/* Returns 1 if the thread belongs to the VM's process and is no vCPU, or is a kernel thread that works for it. */
static int thread_may_serve(struct irq_sources *k, uint32_t thread, const struct thread_ref *vcpu, int64_t t)
{
	const struct catalog *catalog = k->r->catalog;
	const struct catalog_thread *th = &catalog->thread[thread];
	struct interval vcpu_pid, iv = { .value = HISTORY_NULL };
	if (th->role >= 0 || th->status == HISTORY_NONE || vcpu->thread < 0 ||
	    catalog->thread[vcpu->thread].pid == HISTORY_NONE)
		return 0;
	if (history_stab(catalog->h, catalog->thread[vcpu->thread].pid, t, &vcpu_pid, k->r->err) < 0 ||
	    (th->pid != HISTORY_NONE && history_stab(catalog->h, th->pid, t, &iv, k->r->err) < 0))
		return -1;
	if (vcpu_pid.value == HISTORY_NULL)
		return 0;
	return iv.value == vcpu_pid.value || vm_worker_pid(catalog_longest_name(catalog, thread)) == vcpu_pid.value;
}

struct server_votes {
	uint32_t thread[SERVERS_MAX], count[SERVERS_MAX];
	unsigned threads, all;
};

static void votes_add(struct server_votes *votes, uint32_t thread)
{
	unsigned i = 0;
	while (i < votes->threads && votes->thread[i] != thread)
		i++;
	votes->all++;
	if (i == SERVERS_MAX)
		return;
	votes->threads += i == votes->threads;
	votes->thread[i] = thread;
	votes->count[i]++;
}

/* Adds the vote of one sleep of vCPU v, which ended before `woken`: if the guest then handled the device, the waker serves
 * it. */
static int vote_by_sleep(struct irq_sources *k, uint32_t v, struct thread_ref *host, int64_t woken, int64_t device,
                         struct server_votes *votes)
{
	struct wakeup by;
	int rc = guest_enters_handler(k, v, woken, device);
	if (rc <= 0 || wakeup_of(k->r, host, woken, &by) < 0)
		return rc <= 0 ? rc : -1;
	int waker = by.in && strcmp(by.in, "thread") == 0
	          ? catalog_find_thread(k->r->catalog, (uint32_t)by.machine, by.tid) : -1;
	rc = waker < 0 ? 0 : thread_may_serve(k, (uint32_t)waker, host, woken);
	if (rc > 0)
		votes_add(votes, (uint32_t)waker);
	return rc < 0 ? -1 : 0;
}

/* Adds the votes of the last sleeps of vCPU v before t, and of the next ones after it. */
static int vote_by_vcpu(struct irq_sources *k, uint32_t v, int64_t t, int64_t device, struct server_votes *votes)
{
	const struct history *h = k->r->catalog->h;
	struct thread_ref *host;
	if (resolver_vcpu_thread(k->r, v, t, &host) < 0)
		return -1;
	if (!host || host->thread < 0)
		return 0;
	const uint32_t status = k->r->catalog->thread[host->thread].status;
	if (status == HISTORY_NONE || k->r->catalog->cpu[v].interrupt == HISTORY_NONE)
		return 0;
	for (int after = 0; after < 2; after++) {
		struct interval iv = { .start = t };
		int rc = 1;
		for (int i = 0; i < SLEEPS_MAX && rc > 0; i++) {
			rc = (after ? history_next : history_prev)(h, status, iv.start, k->asleep, &iv, k->r->err);
			if (rc > 0 && (iv.end >= history_last(h) || vote_by_sleep(k, v, host, iv.end + 1, device, votes) < 0))
				rc = iv.end >= history_last(h) ? 0 : -1;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Finds the thread that serves the device: *thread is its index + 1, or unchanged if unknown. Two devices may wake a vCPU
 * at the same time, and the device that the guest handles first need not be the waker's; so a clear majority decides. */
static int find_server(struct irq_sources *k, uint32_t v, int64_t t, int64_t device, uint64_t *thread)
{
	const struct catalog_machine *m = &k->r->catalog->machine[k->r->catalog->cpu[v].machine];
	struct server_votes votes = { .threads = 0 };
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++)
		if (vote_by_vcpu(k, c, t, device, &votes) < 0)
			return -1;
	for (unsigned i = 0; i < votes.threads; i++)
		if (votes.count[i] > 2 * (votes.all - votes.count[i]))
			*thread = (uint64_t)votes.thread[i] + 1;
	return 0;
}

/* Finds the time at which the thread ran last within [from, t]. Returns 1, 0 if it did not run, -1 on error. */
static int thread_last_ran(struct irq_sources *k, uint32_t thread, int64_t from, int64_t t, int64_t *when)
{
	const struct catalog *catalog = k->r->catalog;
	struct interval iv;
	if (history_stab(catalog->h, catalog->thread[thread].status, t, &iv, k->r->err) < 0)
		return -1;
	int found = state_is_in(k->running, iv.value) ? 1
	          : history_prev(catalog->h, catalog->thread[thread].status, t, k->running, &iv, k->r->err);
	if (found <= 0 || iv.end < from)
		return found < 0 ? -1 : 0;
	*when = iv.end < t ? iv.end : t;
	return 1;
}

/* Finds the time at which the last sleep of the vCPU's thread before t was ended; INT64_MIN: no sleep. */
static int last_wakeup_before(struct irq_sources *k, struct thread_ref *host, int64_t t, int64_t *at)
{
	const struct catalog *catalog = k->r->catalog;
	struct interval iv;
	struct wakeup by;
	*at = INT64_MIN;
	int found = history_prev(catalog->h, catalog->thread[host->thread].status, t, k->asleep, &iv, k->r->err);
	if (found <= 0)
		return found;
	if (wakeup_of(k->r, host, iv.end + 1, &by) < 0)
		return -1;
	*at = by.in ? by.at : iv.end + 1;
	return 0;
}

/* Moves *since to the earliest time at which an interrupt that vCPU v handled at t may have been raised. A guest handles
 * an interrupt at the latest after it has executed for IRQS_OFF_NS, and an interrupt that is raised during a halt ends
 * the halt. *since is unchanged if that time is unknown. */
static int pending_since(struct irq_sources *k, uint32_t v, struct thread_ref *host, int64_t t, int64_t *since)
{
	const struct catalog *catalog = k->r->catalog;
	const uint32_t status = catalog->cpu[v].status;
	struct interval iv;
	int64_t woken;
	if (catalog->thread[host->thread].status == HISTORY_NONE || status == HISTORY_NONE)
		return 0;
	if (last_wakeup_before(k, host, t, &woken) < 0 || history_stab(catalog->h, status, t, &iv, k->r->err) < 0)
		return -1;
	int64_t executed = iv.value >= 0 && iv.value < HISTORY_STATES && k->executing >> iv.value & 1 ? t - iv.start : 0;
	for (int i = 0; i < EXITS_MAX && executed < IRQS_OFF_NS && iv.start > woken; i++) {
		int found = history_prev(catalog->h, status, iv.start, k->executing, &iv, k->r->err);
		if (found <= 0)
			return found;
		executed += iv.end - iv.start + 1;
	}
	if (executed >= IRQS_OFF_NS)
		woken = iv.start + executed - IRQS_OFF_NS > woken ? iv.start + executed - IRQS_OFF_NS : woken;
	if (woken > *since && (executed >= IRQS_OFF_NS || iv.start <= woken))
		*since = woken;
	return 0;
}

/* Moves *since further if interrupts of the device were handled before: those handlers cover all interrupts raised
 * before their start. */
static int handled_before_since(struct irq_sources *k, uint32_t v, int64_t t, int64_t device, int64_t *since)
{
	const struct history *h = k->r->catalog->h;
	struct interval iv = { .start = t + 1 };
	bool outside_handlers = false, device_handled = false;
	for (int i = 0; i < HANDLERS_MAX && iv.start > history_first(h); i++) {
		if (history_stab(h, k->r->catalog->cpu[v].interrupt, iv.start - 1, &iv, k->r->err) < 0)
			return -1;
		if (iv.value == HISTORY_NULL && (i == 0 || device_handled))
			break;
		outside_handlers |= iv.value == HISTORY_NULL;
		device_handled |= outside_handlers && iv.value == device;
	}
	if (device_handled && iv.value == HISTORY_NULL && iv.end + 1 > *since)
		*since = iv.end + 1;
	return 0;
}

/* Finds the server of the device (index + 1, or 0), and caches the result. */
static int device_server(struct irq_sources *k, uint32_t v, int64_t t, int64_t device, uint32_t *server)
{
	const uint64_t key = (uint64_t)k->r->catalog->cpu[v].machine << 32 | (uint64_t)(device & UINT32_MAX);
	uint64_t thread = 0, *known = map_put(&k->known, key, NULL);
	if (*known >> 32 >= FAILURES_MAX)
		return 0;
	if (*known & UINT32_MAX)
		thread = *known;
	else if (find_server(k, v, t, device, &thread) < 0)
		return -1;
	else
		*known = thread ? thread : *known + (UINT64_C(1) << 32);
	*server = (uint32_t)thread;
	return 0;
}

/* Returns 1 if the thread ran, slept, and ran again since the interrupt may have been raised: either run may be the
 * source. */
static int ran_twice(struct irq_sources *k, uint32_t thread, int64_t since, int64_t when)
{
	const struct catalog *catalog = k->r->catalog;
	struct interval iv;
	if (since == INT64_MIN)
		return 0;
	int found = history_prev(catalog->h, catalog->thread[thread].status, when, k->asleep, &iv, k->r->err);
	return found <= 0 ? found : iv.start > since;
}

int irq_source_find(struct irq_sources *k, uint32_t v, const struct thread_ref *host, int64_t from, int64_t t,
                    struct thread_ref **out, int64_t *when)
{
	const struct catalog *catalog = k->r->catalog;
	const struct catalog_machine *m = &catalog->machine[host->machine];
	int64_t device;
	*out = NULL;
	*when = INT64_MAX;
	if (host->thread < 0 || catalog->cpu[v].interrupt == HISTORY_NONE || device_before(k, v, t, &device) < 0)
		return host->thread < 0 || catalog->cpu[v].interrupt == HISTORY_NONE ? 0 : -1;
	uint32_t server = 0;
	if (device != HISTORY_NULL && device_server(k, v, t, device, &server) < 0)
		return -1;
	int64_t since = from;
	if (pending_since(k, v, resolver_thread(k->r, (uint32_t)host->machine, host->tid), t, &since) < 0 ||
	    (device != HISTORY_NULL && handled_before_since(k, v, t, device, &since) < 0))
		return -1;
	from = server ? from : since;
	uint32_t first = server ? server - 1 : m->thread;
	uint32_t end = server ? first + 1 : m->thread + m->threads;
	unsigned candidates = 0;
	for (uint32_t i = first; i < end; i++) {
		int64_t at;
		int rc = server ? 1 : thread_may_serve(k, i, host, t);
		if (rc > 0)
			rc = thread_last_ran(k, i, from, t, &at);
		if (rc < 0)
			return -1;
		if (!rc)
			continue;
		*out = resolver_thread(k->r, (uint32_t)host->machine, catalog->thread[i].tid);
		*when = candidates++ && *when > at ? *when : at;
	}
	int twice = candidates == 1 ? ran_twice(k, (uint32_t)(*out)->thread, since, *when) : 0;
	*out = candidates == 1 && twice <= 0 ? *out : NULL;
	return twice < 0 ? -1 : 0;
}

int irq_source_woke_vcpu(struct irq_sources *k, uint32_t v, const struct wakeup *by, int64_t woken, int64_t t)
{
	int64_t device;
	uint32_t server = 0;
	if (k->r->catalog->cpu[v].interrupt == HISTORY_NONE)
		return 1;
	if (device_before(k, v, t, &device) < 0)
		return -1;
	if (device == HISTORY_NULL)
		return 1;
	if (device_server(k, v, t, device, &server) < 0)
		return -1;
	if (!server)
		return guest_enters_handler(k, v, woken, device);
	return catalog_find_thread(k->r->catalog, (uint32_t)by->machine, by->tid) == (int)server - 1;
}

int irq_source_skip_sleep(struct irq_sources *k, struct thread_ref *host, const struct thread_ref *server, int64_t *raised)
{
	struct wakeup by;
	struct row_track *status = &thread_tracks(k->r, host)[TRACK_STATUS];
	int64_t value;
	if (track_at(k->r, status, *raised, &value) < 0)
		return -1;
	const int64_t over = status->iv.end;
	if (!state_is_in(k->asleep, value) || over >= history_last(k->r->catalog->h))
		return 0;
	if (wakeup_of(k->r, host, over + 1, &by) < 0)
		return -1;
	if (by.in && strcmp(by.in, "thread") == 0 && (!server || by.tid != server->tid || by.machine != server->machine))
		*raised = over + 1;
	return 0;
}
