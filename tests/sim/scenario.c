/* Scenarios: machines, threads and their workloads. One function each, listed in one table. */
#include <string.h>

#include "scenario.h"

#define RESIDUAL (7 * SEC)  /* default duration of residual_timer */
#define BOOT (8 * MS)       /* time from the start of a VM's QEMU to the first thread of the guest */

static bool is_missing(const struct sim *s, const char *name)
{
	for (unsigned i = 0; i < s->opt.missings; i++)
		if (!strcmp(s->opt.missing[i], name))
			return true;
	return false;
}

/* Adds the host. idle_guest: its threads wake rarely, so that a day of trace has only millions of records. */
static struct machine *host_add_some(struct sim *s, unsigned pcpus, bool idle_guest)
{
	struct machine *m;

	if (s->opt.pcpus)
		pcpus = (unsigned)s->opt.pcpus;
	m = machine_add(s, "hypervisor", pcpus, NULL);
	m->traced = !is_missing(s, "host");
	thread_add(m, "lttng-consumerd", workload[idle_guest ? WL_LAZY_TRACER : WL_TRACER], s->begin + 100 * US, UINT64_MAX);
	thread_add(m, "sshd", workload[idle_guest ? WL_DAEMON : WL_QEMU], s->begin + rng_range(&s->rng, 1 * MS, 50 * MS),
	           UINT64_MAX);
	return m;
}

struct machine *host_add(struct sim *s, unsigned pcpus)
{
	return host_add_some(s, pcpus, false);
}

/* Adds the QEMU of a VM: running, with its CPUs, or still to be started. */
static void qemu_add(struct machine *m, const struct plan *p)
{
	struct sim *s = m->sim;
	int64_t start = s->begin + rng_range(&s->rng, 1 * MS, 90 * MS);
	struct thread *t;

	if (p->born)
		t = thread_add(m->below, "libvirtd", workload[WL_LAUNCHER], s->begin + p->born, UINT64_MAX);
	else
		t = thread_add(m->below, "qemu-system-x86", workload[p->changes ? WL_VM : p->idle ? WL_DAEMON : WL_QEMU],
		               start, UINT64_MAX);
	m->qemu_pid = t->pid;
	if (p->changes)
		t->vm = m;
	if (p->changes && !p->born)
		t->pc = WL_VM_RUNS;
	for (unsigned i = 0; i < p->vcpus && !p->born; i++)
		vcpu_thread(&m->cpu[i]);
}

struct machine *guest_add(struct sim *s, const struct plan *p)
{
	struct machine *below = p->below ? p->below : s->machine[0], *m;
	uint64_t affinity = p->affinity & (below->cpus == 64 ? UINT64_MAX : (UINT64_C(1) << below->cpus) - 1);
	int64_t boots = s->begin + (p->born ? p->born + BOOT : 0);

	m = machine_add(s, p->name, p->vcpus + p->spare, below);
	m->traced = !is_missing(s, p->name) && (below->traced || below->is_host);
	m->trace_from = s->begin + p->from > boots ? s->begin + p->from : boots;
	if (p->to)
		m->trace_to = s->begin + p->to;
	if (p->dies)
		m->dies = s->begin + p->dies;
	m->boots = boots;
	m->boot_cpus = p->vcpus;
	m->vcpu_affinity = affinity ? affinity : UINT64_MAX;
	m->vcpu_group = p->group;
	if (!m->vcpu_group && s->groups_recorded && !p->below && s->groups < GROUPS_MAX)
		m->vcpu_group = &s->group[s->groups++];
	if (m->vcpu_group)
		snprintf(m->vcpu_group->path, sizeof m->vcpu_group->path, "/machine.slice/qemu-%s.scope", p->name);
	clock_set(m, s->opt.have_offset ? s->opt.offset : p->offset, s->opt.have_drift ? s->opt.drift_ppb : p->ppb);
	qemu_add(m, p);
	thread_add(m, "lttng-consumerd", workload[p->idle ? WL_LAZY_TRACER : WL_TRACER],
	           m->trace_from + rng_range(&s->rng, 200 * US, 3 * MS), UINT64_MAX);
	thread_add(m, "kworker/0:1", workload[p->idle ? WL_DAEMON : WL_QEMU], boots + rng_range(&s->rng, 1 * MS, 90 * MS),
	           1);
	for (unsigned i = 0; i < p->vcpus && s->opt.beacon_hz; i++)
		thread_add(m, "beacon", workload[WL_BEACON], boots + rng_range(&s->rng, 2 * MS, 40 * MS),
		           UINT64_C(1) << i)->rt = true;
	return m;
}

static struct machine *add_guest(struct sim *s, const char *name, unsigned vcpus, uint64_t affinity, int64_t offset,
                             int64_t ppb)
{
	struct plan p = { .name = name, .vcpus = vcpus, .affinity = affinity, .offset = offset, .ppb = ppb };

	return guest_add(s, &p);
}

static int64_t after_begin(struct sim *s, int64_t ns)
{
	return s->begin + ns + rng_range(&s->rng, 0, 900 * US);
}

static int pulse(struct sim *s)
{
	struct machine *g;

	host_add(s, 2);
	g = add_guest(s, "Debian", 1, UINT64_MAX, -5284822 * US, 58);
	thread_add(g, "wk-pulse", workload[WL_PULSE], after_begin(s, 150 * MS), UINT64_MAX);
	return 0;
}

static int fibonacci(struct sim *s)
{
	struct machine *g, *h = host_add(s, 2);

	g = add_guest(s, "Debian", 1, 2, -5422619 * US, 100000);
	thread_add(g, "sh", workload[WL_FIB_SHELL], after_begin(s, 400 * MS), UINT64_MAX);
	thread_add(h, "burnP6", workload[WL_HOG], after_begin(s, 200 * MS), 2);
	return 0;
}

/* Adds a thread that computes in [from, to], ns after the beginning, then exits. */
static void timed_hog(struct machine *m, const char *name, int64_t from, int64_t to, uint64_t affinity)
{
	thread_add(m, name, workload[WL_CC], after_begin(m->sim, from), affinity)->until = m->sim->begin + to;
}

/* Executions 1, 2 and 7 of the task run alone; 3 to 5 share the CPU, 6 for a short time. */
static int critical_task(struct sim *s)
{
	struct machine *debian, *ubuntu, *h = host_add(s, 2);

	debian = add_guest(s, "Debian", 1, 1, 3700 * MS, -41000);
	ubuntu = add_guest(s, "Ubuntu", 2, 1, -91 * SEC, 76000);
	thread_add(debian, "spawner", workload[WL_CRITICAL_SHELL], after_begin(s, 300 * MS), UINT64_MAX);
	timed_hog(ubuntu, "cc", 2100 * MS, 5360 * MS, 2);
	timed_hog(h, "burnP6", 2150 * MS, 5380 * MS, 1);
	return 0;
}

/* The task shares its CPU in the first half; in the second half a timer of the idle Ubuntu interrupts it. */
static int residual_timer(struct sim *s)
{
	int64_t half = (s->end == INT64_MAX ? RESIDUAL : s->end - s->begin) / 2;
	struct machine *debian, *ubuntu, *h = host_add(s, 2);
	struct bare *b = &s->bare[s->bares++];

	debian = add_guest(s, "Debian", 1, 1, 1200 * MS, 20000);
	ubuntu = add_guest(s, "Ubuntu", 1, 1, -2 * SEC, -64000);
	thread_add(debian, "critical_task", workload[WL_HOG], after_begin(s, half / 10), UINT64_MAX);
	timed_hog(ubuntu, "cc", half / 20, half, UINT64_MAX);
	timed_hog(h, "burnP6", half / 15, half, 1);
	b->c = &ubuntu->cpu[0];
	b->period = 3 * MS;
	queue_push(&s->queue, s->begin + half / 30, DUE_BARE, b, 0);
	return 0;
}

static int overcommit(struct sim *s)
{
	static const uint8_t mix[] = { WL_HOG, WL_BURST_HOG, WL_PERIODIC, WL_SLEEPER, WL_DISK, WL_EXITS };
	int64_t n = s->opt.number;
	char name[16];

	host_add(s, 4);
	for (int64_t i = 0; i < n; i++) {
		struct machine *g;

		snprintf(name, sizeof name, "vm%02d", (int)i);
		const int64_t ppb = rng_range(&s->rng, -90000, 90000);
		g = add_guest(s, name, 1 + (unsigned)(i % 2), UINT64_MAX, rng_range(&s->rng, -60 * SEC, 60 * SEC), ppb);
		for (int k = 0; k < 3; k++) {
			enum workload wl = mix[rng_range(&s->rng, 0, 5)];

			thread_add(g, k == 0 ? "app" : k == 1 ? "db" : "cron", workload[wl],
			           after_begin(s, rng_range(&s->rng, 1 * MS, 60 * MS)), UINT64_MAX);
		}
	}
	return 0;
}

/* A guest that sleeps most of the time. */
static int idle_guest(struct sim *s)
{
	struct plan p = { .name = "Debian", .vcpus = 2, .affinity = UINT64_MAX, .offset = 3600 * SEC, .ppb = 12500,
	                  .idle = true };
	int64_t span = s->end == INT64_MAX ? SEC : s->end - s->begin;
	struct machine *g;

	host_add_some(s, 2, true);
	if (s->opt.late) {
		p.from = rng_range(&s->fault, span / 5, span / 3);
		p.to = span - rng_range(&s->fault, span / 5, span / 3);
	}
	g = guest_add(s, &p);
	thread_add(g, "cron", workload[WL_DAEMON], after_begin(s, 5 * MS), UINT64_MAX);
	thread_add(g, "nginx", workload[WL_DAEMON], after_begin(s, 5 * MS), UINT64_MAX);
	return 0;
}

static int churn(struct sim *s)
{
	struct machine *g, *h = host_add(s, 2);

	g = add_guest(s, "Debian", 2, UINT64_MAX, 17 * SEC, 35000);
	for (int i = 0; i < 4; i++)
		thread_add(g, "make", workload[WL_FORKER], after_begin(s, 2 * MS), UINT64_MAX);
	thread_add(g, "java", workload[WL_THREADED], after_begin(s, 2 * MS), UINT64_MAX);
	for (int i = 0; i < 2; i++)
		thread_add(h, "cron", workload[WL_FORKER], after_begin(s, 2 * MS), UINT64_MAX);
	return 0;
}

static int requests(struct sim *s)
{
	struct machine *g, *h = host_add(s, 2);
	struct thread *server;

	g = add_guest(s, "Debian", 1, 2, -5357583 * US, 100000);
	server = thread_add(g, "reqserver", workload[WL_SERVER], NOTHING, UINT64_MAX);
	server_add(server);
	thread_add(g, "reqclient", workload[WL_CLIENT], after_begin(s, 100 * MS), UINT64_MAX);
	for (int64_t i = 0; i < s->opt.hogs; i++)
		thread_add(h, "burnP6", workload[s->opt.slowdown ? WL_BURST_HOG : WL_HOG], after_begin(s, 20 * MS),
		           s->opt.slowdown ? 1 : 2);  /* with --slowdown on the other CPU of the core */
	return 0;
}

/* Adds a CFS quota: `quota` ns of CPU time in each `period` ns. first: end of the first period, ns after the beginning. */
struct quota_group *quota_add(struct sim *s, int64_t quota, int64_t period, int64_t first)
{
	struct quota_group *g = &s->group[s->groups++];

	snprintf(g->path, sizeof g->path, "/limits.slice/%u", s->groups);
	g->quota = quota;
	g->period = period;
	queue_push(&s->queue, s->begin + first, DUE_PERIOD, g, 0);
	return g;
}

static bool is_included(const struct sim *s, const char *name)
{
	return !s->opt.without || strcmp(s->opt.without, name) != 0;
}

/* A request server, and one planted change: computation of another VM on its CPU (vm), the same without pinning (crowd),
 * another CPU that the server is pinned to (pin), a task on the same CPU (light: nice 19; idle: SCHED_IDLE; weight: nice
 * 0), exits, a quota, or more computation per request (slow). */
static int planted(struct sim *s)
{
	static const char *const cause[] = {
		"none", "vm", "pin", "light", "idle", "weight", "exits", "quota", "slow", "crowd"
	};
	enum { NONE, VM, PIN, LIGHT, IDLE, WEIGHT, EXITS, QUOTA, SLOW, CROWD, CAUSES } plant = NONE;
	struct machine *g, *ubuntu, *h = host_add(s, 2);
	struct plan p = { .name = "Debian", .vcpus = 1, .offset = -5357583 * US, .ppb = 100000 };

	while (s->opt.plant && plant < CAUSES && strcmp(cause[plant], s->opt.plant))
		plant++;
	if (plant == CAUSES)
		return error_set(&s->err, STATUS_USAGE, "vm, crowd, pin, light, idle, weight, exits, quota, slow or none",
		                 "%s: no such cause", s->opt.plant);
	if (plant == QUOTA)
		p.group = quota_add(s, 6 * MS, 20 * MS, 20 * MS);
	p.affinity = s->opt.affinity ? (uint64_t)s->opt.affinity : plant == CROWD ? UINT64_MAX : plant == PIN ? 1 : 2;
	s->opt.work = plant == SLOW && !s->opt.work ? 150 : s->opt.work;
	g = guest_add(s, &p);
	if (s->opt.share)
		g->cpu[0].host->weight = WEIGHT_0 * s->opt.share / 100;
	g->cpu[0].host->nice = (int8_t)s->opt.nice;
	if (plant == EXITS)
		g->exit_mean = 60 * US;
	server_add(thread_add(g, "reqserver", workload[WL_SERVER], NOTHING, UINT64_MAX));
	thread_add(g, "reqclient", workload[WL_CLIENT], after_begin(s, 100 * MS), UINT64_MAX);
	ubuntu = add_guest(s, "Ubuntu", 1, plant == CROWD ? UINT64_MAX : 2, 77 * SEC, -30000);
	if (is_included(s, "cc"))
		thread_add(ubuntu, "cc", workload[plant == VM || plant == CROWD ? WL_HOG : WL_DAEMON], after_begin(s, 30 * MS),
		           UINT64_MAX);
	if (is_included(s, "burnP6"))
		thread_add(h, "burnP6", workload[WL_HOG], after_begin(s, 20 * MS), plant == CROWD ? UINT64_MAX : 1);
	if ((plant == LIGHT || plant == IDLE || plant == WEIGHT) && is_included(s, "make")) {
		struct thread *beside = thread_add(h, "make", workload[WL_HOG], after_begin(s, 20 * MS), 2);
		beside->nice = plant == LIGHT ? 19 : 0;
		beside->weight = plant == IDLE ? 3 : 0;
	}
	return 0;
}

/* A VM inside a VM. In the four quarters its critical_task runs alone, then shares its CPU with another thread of its
 * VM, then the VM shares its CPU with a task of the outer VM, then the outer VM with a task of the host. */
static int nested(struct sim *s)
{
	int64_t quarter = (s->end == INT64_MAX ? 4 * SEC : s->end - s->begin) / 4;
	struct machine *outer, *inner, *h = host_add(s, 2);
	struct plan p = { .name = "Inner", .vcpus = 1, .affinity = 1, .offset = 4100 * MS, .ppb = -33000 };

	outer = p.below = add_guest(s, "Outer", 2, UINT64_MAX, -77 * SEC, 52000);
	inner = guest_add(s, &p);
	thread_add(inner, "critical_task", workload[WL_HOG], after_begin(s, 3 * MS), UINT64_MAX);
	timed_hog(inner, "cc", quarter, 2 * quarter, UINT64_MAX);
	timed_hog(outer, "make", 2 * quarter, 3 * quarter, 1);
	timed_hog(h, "burnP6", 3 * quarter, 4 * quarter, 1);
	timed_hog(h, "burnP6", 3 * quarter, 4 * quarter, 2);
	return 0;
}

/* ---- random: everything drawn from the seed */

void random_threads(struct sim *s, struct machine *m)
{
	static const struct { const char *name; uint8_t wl; } kinds[] = {
		{ "burnP6", WL_HOG }, { "cc", WL_BURST_HOG }, { "make", WL_FORKER }, { "nginx", WL_SLEEPER },
		{ "audio", WL_PERIODIC },
		{ "dd", WL_DISK }, { "fio", WL_BLOCKIO }, { "perf", WL_EXITS }, { "java", WL_THREADED }, { "lazy", WL_QEMU },
	};
	int64_t n = rng_range(&s->rng, m->is_host ? 0 : 1, 4), born = m->boots - s->begin;

	if (rng_chance(&s->rng, 350000)) {  /* a small pid_max: ids are reused soon */
		m->next_tid = m->next_tid < 290 ? 290 : m->next_tid;
		m->tids = 300 + (int32_t)rng_range(&s->rng, 60, 100);
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t k = rng_range(&s->rng, 0, sizeof kinds / sizeof *kinds - 1);
		uint64_t affinity = rng_chance(&s->rng, 300000) ? UINT64_C(1) << rng_range(&s->rng, 0, (int64_t)m->cpus - 1)
		                                                : UINT64_MAX;

		const bool rt = kinds[k].wl == WL_PERIODIC && rng_chance(&s->rng, 300000);
		const int64_t start = born + after_begin(s, rng_range(&s->rng, 1 * MS, 80 * MS));

		thread_add(m, kinds[k].name, workload[kinds[k].wl], start, affinity)->rt = rt;
	}
}

static struct quota_group *random_group(struct sim *s)
{
	const int64_t period = rng_range(&s->rng, 5, 40) * MS;

	return quota_add(s, period * rng_range(&s->rng, 20, 90) / 100, period, period);
}

static struct plan random_plan(struct sim *s, const char *name)
{
	struct plan p = { .name = name };
	int64_t span = s->end == INT64_MAX ? SEC : s->end - s->begin;

	p.vcpus = (unsigned)rng_range(&s->rng, 1, 3);
	p.affinity = rng_chance(&s->rng, 300000) ? rng_next(&s->rng) : UINT64_MAX;
	p.offset = rng_range(&s->rng, -3600 * SEC, 3600 * SEC);
	p.ppb = rng_range(&s->rng, -150000, 150000);
	p.group = rng_chance(&s->rng, 250000) ? random_group(s) : NULL;
	if (s->opt.late && rng_chance(&s->fault, 400000))
		p.from = rng_range(&s->fault, 0, span / 4);
	if (s->opt.late && rng_chance(&s->fault, 400000))
		p.to = span - rng_range(&s->fault, 0, span / 4);
	p.changes = s->opt.hotplug && rng_chance(&s->rng, 700000);
	if (!p.changes)
		return p;
	p.spare = (unsigned)rng_range(&s->rng, 0, 2);
	if (rng_chance(&s->rng, 400000))
		p.born = rng_range(&s->rng, span / 50, span / 3);
	if (rng_chance(&s->rng, 400000))
		p.dies = rng_range(&s->rng, span / 2, span);
	return p;
}

/* Puts some threads of the host into a container: a pid namespace of their own, or a cgroup namespace alone. */
static void random_container(struct sim *s, struct machine *h)
{
	uint32_t ns = (uint32_t)(4026532000 + rng_range(&s->rng, 1, 900));

	for (int64_t n = rng_range(&s->rng, 1, 3); n > 0; n--) {
		const int64_t start = after_begin(s, rng_range(&s->rng, 1 * MS, 50 * MS));
		const int kind = rng_chance(&s->rng, 500000) ? WL_SLEEPER : WL_FORKER;
		struct thread *t = thread_add(h, "nginx", workload[kind], start, UINT64_MAX);

		*(s->opt.seed % 2 ? &t->cgroup_ns : &t->ns) = ns;
	}
}

static struct machine *random_guest(struct sim *s, const struct plan *p)
{
	struct machine *g = guest_add(s, p);

	g->exit_mean = rng_range(&s->rng, 200 * US, 8 * MS);
	random_threads(s, g);
	if (rng_chance(&s->rng, 350000)) {
		server_add(thread_add(g, "reqserver", workload[WL_SERVER], NOTHING, UINT64_MAX));
		thread_add(g, "reqclient", workload[WL_CLIENT], g->boots - s->begin + after_begin(s, 10 * MS), UINT64_MAX);
	}
	return g;
}

static int random_scenario(struct sim *s)
{
	static const char *const name[] = { "Debian", "Ubuntu", "Fedora" };
	unsigned pcpus = (unsigned)rng_range(&s->rng, 1, 4);
	int64_t guests = rng_range(&s->rng, 1, 3);
	struct machine *h = host_add(s, pcpus), *g = NULL;

	random_threads(s, h);
	if (s->opt.containers)
		random_container(s, h);
	for (int64_t i = 0; i < guests; i++) {
		struct plan p = random_plan(s, name[i]);

		g = random_guest(s, &p);
	}
	for (const char *inner = "Inner"; s->opt.nested && inner; inner = strcmp(inner, "Inner") ? NULL : "Innermost") {
		struct plan p = random_plan(s, inner);

		p.below = g;
		p.group = NULL;  /* only VMs of the host have a quota group */
		p.born = p.born ? p.born + g->boots - s->begin : 0;
		if (rng_chance(&s->rng, 500000))
			g = random_guest(s, &p);
	}
	return 0;
}

/* Waits of all kinds: for locks, for a disk served by a thread of QEMU, for a server in another VM, with hogs. */
static int chain(struct sim *s)
{
	struct machine *h = host_add(s, 3), *g[2];
	struct thread *net[2], *disk[2], *t;
	char name[32];

	for (int i = 0; i < 2; i++) {
		g[i] = add_guest(s, i ? "Ubuntu" : "Debian", i ? 1 : 2, i ? 4 : 3, i * SEC, 1000 * (1 - 2 * i));
		snprintf(name, sizeof name, "vhost-%d", (int)g[i]->qemu_pid);
		net[i] = carrier_add(g[i], name, false, UINT64_MAX);
		disk[i] = carrier_add(g[i], "IO io0", true, UINT64_MAX);
		for (int k = 0; k < 2 + 2 * !i; k++)
			thread_add(g[i], "locker", workload[WL_LOCKER], after_begin(s, 2 * MS), UINT64_MAX);
		t = thread_add(g[i], "synio", workload[WL_ASKER], after_begin(s, 2 * MS), UINT64_MAX);
		t->sends_by = disk[i];
		t->sends_to = t;
	}
	t = thread_add(g[0], "client", workload[WL_ASKER], after_begin(s, 20 * MS), UINT64_MAX);
	t->sends_by = net[0];
	t->sends_to = thread_add(g[1], "server", workload[WL_ANSWERER], after_begin(s, 1 * MS), UINT64_MAX);
	t->sends_to->sends_by = net[1];
	t->sends_to->sends_to = t;
	thread_add(h, "kjournald", workload[WL_DISK], after_begin(s, 1 * MS), UINT64_MAX);
	for (int i = 0; i < 3; i++)
		thread_add(h, "burnP6", workload[i == 1 ? WL_HOG : WL_BURST_HOG], after_begin(s, 5 * MS), UINT64_C(1) << i);
	return 0;
}

/* Like chain, with IPIs: waking a thread for another idle vCPU sends an interrupt to that vCPU, which completes the
 * wakeup. */
static int ipi(struct sim *s)
{
	s->far_wakes = true;
	return chain(s);
}

/* Two threads on separate vCPUs spin for one lock; hogs of the host preempt these vCPUs. */
static int spin(struct sim *s)
{
	struct machine *h = host_add(s, 2), *g = add_guest(s, "Debian", 2, 3, 1 * SEC, 1000);

	for (int i = 0; i < 2; i++) {
		thread_add(g, "spinner", workload[WL_SPINNER], after_begin(s, 2 * MS), UINT64_C(1) << i);
		thread_add(h, "burnP6", workload[WL_BURST_HOG], after_begin(s, 5 * MS), UINT64_C(1) << i);
	}
	return 0;
}

static const struct scenario {
	const char *name;
	int (*build)(struct sim *s);
	int64_t duration;
	const char *description;
} scenario[] = {
	{ "pulse", pulse, 7 * SEC, "a periodic guest thread on an idle host (paper, Fig. 3-4)" },
	{ "fibonacci", fibonacci, 6 * SEC, "a computation beside burnP6 on one pCPU (Fig. 6-9)" },
	{ "critical_task", critical_task, 7 * SEC, "one task a second, disturbed by a VM and the host (Fig. 10-14)" },
	{ "residual_timer", residual_timer, RESIDUAL, "another VM computes, then leaves a forgotten timer (Fig. 15)" },
	{ "overcommit", overcommit, 2 * SEC, "N VMs on four pCPUs" },
	{ "idle", idle_guest, 60 * SEC, "a guest that mostly sleeps: for long traces" },
	{ "churn", churn, 2 * SEC, "many short-lived threads" },
	{ "requests", requests, 6 * SEC, "a request server with marks (Soroban)" },
	{ "planted", planted, 6 * SEC, "a request server, and one planted change (--plant)" },
	{ "nested", nested, 4 * SEC, "a VM inside a VM, disturbed on each level" },
	{ "chain", chain, 1 * SEC, "threads that wait for locks, a disk, a server in another VM" },
	{ "ipi", ipi, 1 * SEC, "the same, with wakeups through interrupts between vCPUs" },
	{ "spin", spin, 1 * SEC, "threads that spin for a lock whose holder's vCPU may be out" },
	{ "tenant", scenario_tenant, 2 * SEC, "a guest with a steal clock, and one reason or more why it waits (--plant)" },
	{ "groups", scenario_groups, 600 * MS, "a host without VMs: groups with quotas on busy CPUs (--quota-facts)" },
	{ "victims", scenario_victims, 2 * SEC, "one worst victim, and another target that lost more (--plant)" },
	{ "random", random_scenario, 700 * MS, "everything drawn from the seed" },
};

void scenario_list(FILE *out)
{
	for (size_t i = 0; i < sizeof scenario / sizeof *scenario; i++)
		fprintf(out, "  %-15s %s\n", scenario[i].name, scenario[i].description);
}

int scenario_build(struct sim *s)
{
	for (size_t i = 0; i < sizeof scenario / sizeof *scenario; i++) {
		if (strcmp(s->opt.scenario, scenario[i].name))
			continue;
		const int64_t length = s->opt.duration ? s->opt.duration : scenario[i].duration;
		s->end = s->opt.events && !s->opt.duration ? INT64_MAX : s->begin + length;
		s->groups_recorded = s->opt.quota_facts != QUOTA_DEFAULT;
		if (scenario[i].build(s) < 0)
			return -1;
		if (s->groups_recorded && s->opt.quota_facts == QUOTA_DEFAULT)
			s->opt.quota_facts = QUOTA_SWITCHES;
		if (s->opt.quota_facts == QUOTA_STAT)
			queue_push(&s->queue, s->begin + MS, DUE_SAMPLE, NULL, 0);
		for (unsigned k = 1; k < s->machines && s->opt.step; k++)
			clock_step(s->machine[k], s->begin + length / 1000 * s->opt.step_at / 1000, s->opt.step);
		return 0;
	}
	return error_set(&s->err, STATUS_USAGE, "stealscope-sim --help lists them", "%s: no such scenario", s->opt.scenario);
}
