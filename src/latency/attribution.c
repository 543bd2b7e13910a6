/* Measured attribution: hard bounds of the provider's part of one request's latency.
 *
 *   low   what the vCPU lost while the request itself executed: certainly the provider's;
 *   high  what the vCPU lost at any moment between start and end while the request's server thread had work
 *         (a request that waits in the server's queue is delayed too when the CPU is taken from the one before it),
 *         plus the wait of the vCPU for a pCPU that delayed the thread's waking, plus all time of which events
 *         were lost.  Nothing beyond it can be the provider's scheduling.
 *
 * "Lost" is as everywhere (struct gap, query/query.h). What was lost while the server slept delayed nobody and is in
 * neither (the confusion behind the paper's Fig. 2). On a container or plain host thread "out" is: runnable while its
 * pCPU runs, or idles for, somebody outside the container (for a plain process: outside the process).
 *
 * The window of the request is cut into pieces in which its state, its thread, the thread's status and the thread's CPU
 * are constant; in each the vCPU's states are walked over. Cost: O(p log n + k) for p such pieces and k such states. */
#include "latency/attribution.h"

#include <string.h>

#include "base/mem.h"

#define BIT(state) (1ULL << (state))

/* One request under examination, and the piece of its window reached. */
struct probe {
	const struct topo *topo;
	const struct history *h;
	struct request *r;
	bool executing;
	int64_t known;     /* since then without a break the request's state is known */
	uint32_t thread;   /* index into topo */
	int status;        /* of the thread, enum thread_state, or -1 */
	int container;     /* machine index whose threads are "own", or -1 */
	struct error *err;
};

/* A thread's status in our numbers, -1 for null. */
static int thread_state_of(const struct topo *topo, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? -1 : topo->thread_state[value];
}

/* ns per state of a vCPU within [t0, t1], in our numbers; null counts as UNKNOWN. */
static int sums_of_vcpu(const struct topo *topo, const struct topo_cpu *cpu, int64_t t0, int64_t t1,
                        int64_t ns[VCPU_STATE_COUNT], struct error *err)
{
	int64_t sums[HISTORY_STATES];
	memset(ns, 0, VCPU_STATE_COUNT * sizeof *ns);
	if (history_sums(topo->h, cpu->status, t0, t1, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		if (sums[i])
			ns[i == HISTORY_STATES - 1 ? VCPU_UNKNOWN : topo->vcpu_state[i]] += sums[i];
	}
	return 0;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void count_unknown(struct probe *p, int64_t ns)
{
	p->r->unknown += ns;
	p->r->high += ns;
}

/* ---- Inside a virtual machine ------------------------------------------------------------------------------- */

/* Walks over a vCPU's states within [t0, t1]: ns in each, null being UNKNOWN; and counts scheduling out (switches) and
 * leaving guest mode (exits) that begin there. */
static int walk_vcpu(struct probe *p, uint32_t attr, int64_t t0, int64_t t1, int64_t ns[VCPU_STATE_COUNT])
{
	const struct history *h = p->h;
	const uint64_t out = BIT(VCPU_PREEMPTED) | BIT(VCPU_HOST_BLOCKED) | BIT(VCPU_WAKING);
	const uint64_t in = BIT(VCPU_RUNNING) | BIT(VCPU_IDLE);
	struct history_cursor c;
	struct interval iv;
	uint64_t before = 0;
	int more;
	/* One ns earlier, so that the first interval tells from which state the window was entered. */
	int64_t from = t0 > history_first(h) ? t0 - 1 : t0;
	if (history_range(&c, h, attr, from, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		const bool known = iv.value >= 0 && iv.value < HISTORY_STATES;
		const unsigned state = known ? p->topo->vcpu_state[iv.value] : VCPU_UNKNOWN;
		const uint64_t now = known ? BIT(state) : 0;
		if (iv.end >= t0)
			ns[state] += sooner(iv.end, t1) - later(iv.start, t0) + 1;
		if (iv.start >= t0 && (now & out) && !(before & out))
			p->r->feature.switches++;
		if (iv.start >= t0 && now == BIT(VCPU_VMM) && (before & in))
			p->r->feature.exits++;
		before = now;
	}
	return more;
}

static int vcpu_piece(struct probe *p, const struct topo_cpu *cpu, int64_t t0, int64_t t1)
{
	int64_t ns[VCPU_STATE_COUNT] = { 0 };
	struct request *r = p->r;
	if (p->status == THREAD_BLOCKED) {
		r->feature.blocked += t1 - t0 + 1;
		return 0;
	}
	if (walk_vcpu(p, cpu->status, t0, t1, ns))
		return -1;
	int64_t out = ns[VCPU_PREEMPTED] + ns[VCPU_HOST_BLOCKED] + ns[VCPU_WAKING];
	if (p->status == THREAD_PREEMPTED) {
		r->feature.wait += t1 - t0 + 1 - out - ns[VCPU_UNKNOWN];
	} else if (p->executing) {
		r->low += out;
		r->feature.out_own += out;
	}
	r->high += out;
	r->feature.out_flight += out;
	r->feature.vmm += ns[VCPU_VMM];
	count_unknown(p, ns[VCPU_UNKNOWN]);
	return 0;
}

/* The thread sleeps during [t0, t1] and is woken at t1 + 1. How long did the vCPU that woke it wait for a pCPU first?
 * Walks back over its host thread's intervals to the moment when that slept. */
static int add_late_wakeup(struct probe *p, const struct topo_cpu *cpu, int64_t t0, int64_t t1)
{
	const struct history *h = p->h;
	struct interval iv;
	uint32_t attr = cpu->host < 0 ? HISTORY_NONE : p->topo->thread[cpu->host].status;
	if (attr == HISTORY_NONE || cpu->status == HISTORY_NONE)
		return 0;
	for (int64_t t = t1; t >= t0; t = iv.start - 1) {
		if (history_stab(h, attr, t, &iv, p->err))
			return -1;
		int state = thread_state_of(p->topo, iv.value);
		if (state != THREAD_RUNNING && state != THREAD_PREEMPTED)
			break;
		if (state == THREAD_PREEMPTED) {
			int64_t ns[VCPU_STATE_COUNT];
			if (sums_of_vcpu(p->topo, cpu, later(t0, iv.start), sooner(t1, iv.end), ns, p->err))
				return -1;
			p->r->high += ns[VCPU_WAKING];
		}
	}
	return 0;
}

/* ---- On the host: containers and plain processes ------------------------------------------------------------ */

static int is_own(struct probe *p, int64_t tid, int64_t t, bool *own)
{
	const struct topo *topo = p->topo;
	const struct topo_thread *mine = &topo->thread[p->thread];
	*own = tid == mine->tid;
	if (*own || tid <= 0 || tid > INT32_MAX)
		return 0;
	if (p->container >= 0) {
		*own = topo_find_thread(topo, (uint32_t)p->container, (int32_t)tid) >= 0;
		return 0;
	}
	int other = topo_find_thread(topo, mine->machine, (int32_t)tid);
	if (other < 0 || mine->pid == HISTORY_NONE || topo->thread[other].pid == HISTORY_NONE)
		return 0;
	struct interval a, b;
	if (history_stab(p->h, mine->pid, t, &a, p->err) || history_stab(p->h, topo->thread[other].pid, t, &b, p->err))
		return -1;
	*own = a.value == b.value && a.value != HISTORY_NULL;
	return 0;
}

static int host_piece(struct probe *p, const struct topo_cpu *cpu, int64_t t0, int64_t t1)
{
	struct request *r = p->r;
	if (p->status == THREAD_BLOCKED)
		r->feature.blocked += t1 - t0 + 1;
	if (p->status != THREAD_PREEMPTED)
		return 0;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (history_range(&c, p->h, cpu->current, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t ns = sooner(iv.end, t1) - later(iv.start, t0) + 1;
		bool own = false;
		if (iv.value == HISTORY_NULL) {
			count_unknown(p, ns);
			continue;
		}
		if (is_own(p, iv.value, later(iv.start, t0), &own))
			return -1;
		if (own) {
			r->feature.wait += ns;
			continue;
		}
		r->high += ns;
		r->feature.out_flight += ns;
		if (p->executing) {
			r->low += ns;
			r->feature.out_own += ns;
		}
	}
	return more;
}

/* ---- Cutting the window ------------------------------------------------------------------------------------- */

/* The machine whose CPUs the thread's CPU numbers mean. */
static int cpu_index(const struct probe *p, int64_t number)
{
	uint32_t machine = p->topo->thread[p->thread].machine;
	if (p->topo->machine[machine].kind == MACHINE_CONTAINER) {
		int host = topo_find_machine(p->topo, "host");
		if (host < 0)
			return -1;
		machine = (uint32_t)host;
	}
	return number < 0 || number > UINT32_MAX ? -1 : topo_find_cpu(p->topo, machine, (unsigned)number);
}

static int by_cpu(struct probe *p, int64_t t0, int64_t t1)
{
	const struct topo_thread *thread = &p->topo->thread[p->thread];
	bool vm = p->topo->machine[thread->machine].kind == MACHINE_VM;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (thread->cpu == HISTORY_NONE) {
		count_unknown(p, p->status == THREAD_BLOCKED ? 0 : t1 - t0 + 1);
		return 0;
	}
	if (history_range(&c, p->h, thread->cpu, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t from = later(iv.start, t0), to = sooner(iv.end, t1);
		int at = iv.value == HISTORY_NULL ? -1 : cpu_index(p, iv.value);
		const struct topo_cpu *cpu = at < 0 ? NULL : &p->topo->cpu[at];
		if (cpu && vm && cpu->status != HISTORY_NONE) {
			if (vcpu_piece(p, cpu, from, to))
				return -1;
		} else if (cpu && !vm && cpu->current != HISTORY_NONE) {
			if (host_piece(p, cpu, from, to))
				return -1;
		} else if (p->status == THREAD_BLOCKED) {
			p->r->feature.blocked += to - from + 1;
		} else {
			count_unknown(p, to - from + 1);
		}
	}
	return more;
}

/* The vCPU on which the thread wakes after a sleep that ends at t. */
static int late_wakeup(struct probe *p, int64_t t0, int64_t t)
{
	const struct topo_thread *thread = &p->topo->thread[p->thread];
	struct interval cpu;
	if (p->topo->machine[thread->machine].kind != MACHINE_VM || thread->cpu == HISTORY_NONE)
		return 0;
	if (history_stab(p->h, thread->cpu, t, &cpu, p->err))
		return -1;
	int at = cpu.value == HISTORY_NULL ? -1 : cpu_index(p, cpu.value);
	return at < 0 ? 0 : add_late_wakeup(p, &p->topo->cpu[at], t0, t);
}

static int by_status(struct probe *p, int64_t t0, int64_t t1)
{
	const struct topo_thread *thread = &p->topo->thread[p->thread];
	uint32_t attr = thread->status;
	bool vm = p->topo->machine[thread->machine].kind == MACHINE_VM;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (attr == HISTORY_NONE) {
		count_unknown(p, t1 - t0 + 1);
		return 0;
	}
	if (history_range(&c, p->h, attr, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t from = later(iv.start, t0), to = sooner(iv.end, t1);
		p->status = thread_state_of(p->topo, iv.value);
		if (p->status < 0 || p->status == THREAD_UNKNOWN) {
			count_unknown(p, to - from + 1);
			continue;
		}
		if (by_cpu(p, from, to))
			return -1;
		if (!vm && p->status == THREAD_PREEMPTED && iv.start == from)
			p->r->feature.switches++;
		if (p->status == THREAD_BLOCKED && iv.end < p->r->end && iv.end <= t1) {
			p->r->feature.wakeups++;
			if (late_wakeup(p, later(iv.start, p->known), iv.end))
				return -1;
		}
	}
	return more;
}

static void set_server(struct request *r, const struct topo *topo, int32_t tid, int container)
{
	if (r->tid < 0)
		r->tid = tid;
	if (container >= 0 && !r->container)
		r->container = mem_dup(topo->machine[container].name);
}

/* The thread that a value of the attribute Thread stands for: index into topo, or -1. */
static int thread_named(const struct topo *topo, int machine, int64_t value)
{
	return machine < 0 || value < 0 || value > INT32_MAX ? -1 : topo_find_thread(topo, (uint32_t)machine, (int32_t)value);
}

int attribute_server(const struct topo *topo, struct request *r, struct error *err)
{
	const int machine = topo_find_machine(topo, r->machine);
	struct history_cursor c;
	struct interval iv;
	int more = 0;
	r->tid = -1;
	if (machine < 0 || r->thread == HISTORY_NONE)
		return 0;
	if (history_range(&c, topo->h, r->thread, r->start, r->end, err))
		return -1;
	while (r->tid < 0 && (more = history_range_next(&c, &iv, err)) > 0)
		if (thread_named(topo, machine, iv.value) >= 0)
			set_server(r, topo, (int32_t)iv.value, request_container(topo, (uint32_t)machine, (int32_t)iv.value));
	return more < 0 ? -1 : 0;
}

static int by_thread(struct probe *p, int64_t t0, int64_t t1)
{
	const struct topo *topo = p->topo;
	struct history_cursor c;
	struct interval iv;
	int machine = topo_find_machine(topo, p->r->machine), more;
	if (machine < 0 || p->r->thread == HISTORY_NONE) {
		count_unknown(p, t1 - t0 + 1);
		return 0;
	}
	if (history_range(&c, p->h, p->r->thread, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		const int thread = thread_named(topo, machine, iv.value);
		if (thread < 0) {
			count_unknown(p, sooner(iv.end, t1) - later(iv.start, t0) + 1);
			continue;
		}
		p->thread = (uint32_t)thread;
		p->container = request_container(topo, (uint32_t)machine, (int32_t)iv.value);
		set_server(p->r, topo, (int32_t)iv.value, p->container);
		if (by_status(p, later(iv.start, t0), sooner(iv.end, t1)))
			return -1;
	}
	return more;
}

/* The number of a request's state; -2, which no value is, when this history has no such state. */
static int64_t request_state(const struct history *h, uint32_t attr, const char *name)
{
	unsigned n = history_state_count(h, attr);
	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(history_state_name(h, attr, i), name))
			return i;
	}
	return -2;
}

int attribute_request(const struct topo *topo, struct request *r, struct error *err)
{
	struct probe p = { .topo = topo, .h = topo->h, .r = r, .container = -1, .known = r->start, .err = err };
	int64_t running = request_state(p.h, r->state, "running"), unknown = request_state(p.h, r->state, "unknown");
	struct history_cursor c;
	struct interval iv;
	int more;
	r->tid = -1;
	if (history_range(&c, p.h, r->state, r->start, r->end, err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0) {
		p.executing = iv.value == running;
		if (p.executing)
			r->executing += iv.end - iv.start + 1;
		if (iv.value == unknown) {
			count_unknown(&p, iv.end - iv.start + 1);
			p.known = iv.end + 1;
		} else if (by_thread(&p, iv.start, iv.end)) {
			return -1;
		}
	}
	return more;
}
