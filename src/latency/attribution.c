/* Measured attribution: hard bounds of the provider's part of one request's latency.
 *
 * - low: loss of the vCPU while the request itself executed. The provider certainly caused it.
 * - high: loss of the vCPU at any time between start and end while the server thread had work (a request in the server's
 *   queue is also delayed when the request before it loses the CPU), plus the wait of the vCPU for a pCPU that delayed a
 *   wakeup of the thread, plus all time with lost events. The provider's scheduling cannot have caused more. In a guest
 *   with neither a host trace nor a steal clock, all time in which the server thread had work is unknown.
 *
 * "Lost" is defined as in query/query.h, struct gap. Loss while the server slept delayed no request and is part of
 * neither bound (the paper's Fig. 2 includes it). In a container or for a plain host thread, loss means: runnable while
 * its pCPU runs, or idles for, an actor outside the container (for a plain process: outside the process).
 *
 * The request's window is cut into parts with constant request state, thread, thread status and CPU; in each part
 * the vCPU's states are read. Cost: O(p log n + k) for p parts and k states. */
#include "latency/attribution.h"

#include "base/base.h"

#define HANDLER_MAX NS_PER_MS  /* longest time from an interrupt to a thread's wakeup */

/* The examined request, and the state of the current part of its window. */
struct attribution {
	const struct catalog *catalog;
	const struct history *h;
	struct request *r;
	bool executing;
	int64_t known_from;      /* time since which the request's state is known without interruption, ns */
	uint32_t thread;         /* server thread, index into catalog */
	int status;              /* the thread's status, enum thread_state; -1: null */
	int container;           /* the thread's container, a machine's index: loss to its threads is not the provider's;
	                          * -1: none */
	request_part_fn *on_part;  /* called for each part of the window; NULL: none */
	void *arg;
	struct error *err;
};

static void emit(const struct attribution *p, enum request_part part, int64_t t0, int64_t t1)
{
	if (p->on_part)
		p->on_part(p->arg, part, t0, t1);
}

/* Converts a thread status of the history to enum thread_state; -1: null. */
static int thread_state(const struct catalog *catalog, int64_t value)
{
	return value < 0 || value >= HISTORY_STATES ? -1 : catalog->thread_state[value];
}

/* Sums the ns per state of a vCPU within [t0, t1], by enum vcpu_state; null counts as UNKNOWN. */
static int vcpu_state_sums(const struct catalog *catalog, const struct catalog_cpu *cpu, int64_t t0, int64_t t1,
                        int64_t ns[VCPU_STATE_COUNT], struct error *err)
{
	int64_t sums[HISTORY_STATES];
	memset(ns, 0, VCPU_STATE_COUNT * sizeof *ns);
	if (history_sums(catalog->h, cpu->status, t0, t1, sums, err))
		return -1;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		if (sums[i])
			ns[i == HISTORY_STATES - 1 ? VCPU_UNKNOWN : catalog->vcpu_state[i]] += sums[i];
	}
	return 0;
}

static void count_unknown(struct attribution *p, int64_t ns)
{
	p->r->unknown += ns;
	p->r->high += ns;
}

static void add_unknown(struct attribution *p, int64_t t0, int64_t t1)
{
	count_unknown(p, t1 - t0 + 1);
	emit(p, PART_UNKNOWN, t0, t1);
}

static void add_blocked(struct attribution *p, int64_t t0, int64_t t1)
{
	p->r->feature.blocked += t1 - t0 + 1;
	emit(p, PART_BETWEEN, t0, t1);
}

/* ---- Inside a virtual machine ------------------------------------------------------------------------------- */

/* Emits [t0, t1], for which the vCPU was out: throttled by a quota, or stolen. */
static int emit_out(const struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1)
{
	struct history_cursor c;
	struct interval iv;
	int more;
	if (!p->on_part || cpu->out_by == HISTORY_NONE) {
		emit(p, PART_STOLEN, t0, t1);
		return 0;
	}
	if (history_range(&c, p->h, cpu->out_by, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		const int reason = iv.value >= 0 && iv.value < HISTORY_STATES ? p->catalog->out_reason[iv.value] : OUT_REASON_COUNT;
		emit(p, reason == OUT_QUOTA || reason == OUT_PROVIDER_QUOTA ? PART_THROTTLED : PART_STOLEN, max64(iv.start, t0),
		     min64(iv.end, t1));
	}
	return more;
}

/* Emits a state of the thread's vCPU. */
static int emit_vcpu_state(const struct attribution *p, const struct catalog_cpu *cpu, unsigned state, int64_t t0,
                           int64_t t1)
{
	if (state == VCPU_UNKNOWN)
		emit(p, PART_UNKNOWN, t0, t1);
	else if (p->status == THREAD_PREEMPTED)
		emit(p, PART_WAIT, t0, t1);
	else if (state == VCPU_PREEMPTED || state == VCPU_HOST_BLOCKED || state == VCPU_WAKING)
		return emit_out(p, cpu, t0, t1);
	else
		emit(p, PART_SERVICE, t0, t1);
	return 0;
}

/* Sums the ns per state of a vCPU within [t0, t1], by enum vcpu_state; null counts as UNKNOWN. Counts the intervals off
 * the CPU (feature switches) and the VM exits (feature exits) that begin there. */
static int sum_vcpu_states(struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1,
                           int64_t ns[VCPU_STATE_COUNT])
{
	const struct history *h = p->h;
	const uint64_t out = BIT64(VCPU_PREEMPTED) | BIT64(VCPU_HOST_BLOCKED) | BIT64(VCPU_WAKING);
	const uint64_t in = BIT64(VCPU_RUNNING) | BIT64(VCPU_IDLE);
	struct history_cursor c;
	struct interval iv;
	uint64_t before = 0;
	int more;
	/* Starts one ns earlier: the first interval then contains the previous state. */
	int64_t from = t0 > history_first(h) ? t0 - 1 : t0;
	if (history_range(&c, h, cpu->status, from, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		const bool known = iv.value >= 0 && iv.value < HISTORY_STATES;
		const unsigned state = known ? p->catalog->vcpu_state[iv.value] : VCPU_UNKNOWN;
		const uint64_t now = known ? BIT64(state) : 0;
		if (iv.end >= t0)
			ns[state] += min64(iv.end, t1) - max64(iv.start, t0) + 1;
		if (iv.end >= t0 && emit_vcpu_state(p, cpu, state, max64(iv.start, t0), min64(iv.end, t1)))
			return -1;
		if (iv.start >= t0 && (now & out) && !(before & out))
			p->r->feature.switches++;
		if (iv.start >= t0 && now == BIT64(VCPU_VMM) && (before & in))
			p->r->feature.exits++;
		before = now;
	}
	return more;
}

static int add_vcpu_interval(struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1)
{
	int64_t ns[VCPU_STATE_COUNT] = { 0 };
	struct request *r = p->r;
	if (p->status == THREAD_BLOCKED) {
		add_blocked(p, t0, t1);
		return 0;
	}
	if (p->catalog->machine[cpu->machine].hides_stolen_time) {
		add_unknown(p, t0, t1);
		return 0;
	}
	if (sum_vcpu_states(p, cpu, t0, t1, ns))
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

static int vcpu_state_of(const struct attribution *p, const struct interval *iv)
{
	return iv->value < 0 || iv->value >= HISTORY_STATES ? VCPU_UNKNOWN : p->catalog->vcpu_state[iv->value];
}

/* As add_wakeup_wait(), by the guest's steal clock: the idle vCPU was taken until the wakeup's interrupt. The
 * handler of the interrupt executed for up to HANDLER_MAX. */
static int add_stolen_wakeup(struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1)
{
	struct interval iv;
	if (history_stab(p->h, cpu->status, t1, &iv, p->err))
		return -1;
	if (vcpu_state_of(p, &iv) == VCPU_IDLE && iv.start > t0 && t1 - iv.start < HANDLER_MAX &&
	    history_stab(p->h, cpu->status, iv.start - 1, &iv, p->err))
		return -1;
	if (vcpu_state_of(p, &iv) == VCPU_WAKING)
		p->r->high += min64(t1, iv.end) - max64(t0, iv.start) + 1;
	return 0;
}

/* For a thread that sleeps during [t0, t1] and is woken at t1 + 1: adds to `high` the time for which the waking vCPU
 * waited for a pCPU before. Goes back over the states of the vCPU's host thread to its last sleep. */
static int add_wakeup_wait(struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1)
{
	const struct history *h = p->h;
	struct interval iv;
	uint32_t attr = cpu->host < 0 ? HISTORY_NONE : p->catalog->thread[cpu->host].status;
	if (cpu->status == HISTORY_NONE)
		return 0;
	if (cpu->host < 0 && cpu->steal_bound != HISTORY_NONE)
		return add_stolen_wakeup(p, cpu, t0, t1);
	if (attr == HISTORY_NONE)
		return 0;
	for (int64_t t = t1; t >= t0; t = iv.start - 1) {
		if (history_stab(h, attr, t, &iv, p->err))
			return -1;
		int state = thread_state(p->catalog, iv.value);
		if (state != THREAD_RUNNING && state != THREAD_PREEMPTED)
			break;
		if (state == THREAD_PREEMPTED) {
			int64_t ns[VCPU_STATE_COUNT];
			if (vcpu_state_sums(p->catalog, cpu, max64(t0, iv.start), min64(t1, iv.end), ns, p->err))
				return -1;
			p->r->high += ns[VCPU_WAKING];
		}
	}
	return 0;
}

/* ---- On the host: containers and plain processes ------------------------------------------------------------ */

static int is_own_work(struct attribution *p, int64_t tid, int64_t t, bool *attributed)
{
	const struct catalog *catalog = p->catalog;
	const struct catalog_thread *mine = &catalog->thread[p->thread];
	*attributed = tid == mine->tid;
	if (*attributed || tid <= 0 || tid > INT32_MAX)
		return 0;
	if (p->container >= 0) {
		*attributed = catalog_find_thread(catalog, (uint32_t)p->container, (int32_t)tid) >= 0;
		return 0;
	}
	int other = catalog_find_thread(catalog, mine->machine, (int32_t)tid);
	if (other < 0 || mine->pid == HISTORY_NONE || catalog->thread[other].pid == HISTORY_NONE)
		return 0;
	struct interval a, b;
	if (history_stab(p->h, mine->pid, t, &a, p->err) || history_stab(p->h, catalog->thread[other].pid, t, &b, p->err))
		return -1;
	*attributed = a.value == b.value && a.value != HISTORY_NULL;
	return 0;
}

static int add_host_interval(struct attribution *p, const struct catalog_cpu *cpu, int64_t t0, int64_t t1)
{
	struct request *r = p->r;
	if (p->status == THREAD_BLOCKED)
		add_blocked(p, t0, t1);
	else if (p->status != THREAD_PREEMPTED)
		emit(p, PART_SERVICE, t0, t1);
	if (p->status != THREAD_PREEMPTED)
		return 0;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (history_range(&c, p->h, cpu->current, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t ns = min64(iv.end, t1) - max64(iv.start, t0) + 1;
		bool attributed = false;
		if (iv.value == HISTORY_NULL) {
			add_unknown(p, max64(iv.start, t0), min64(iv.end, t1));
			continue;
		}
		if (is_own_work(p, iv.value, max64(iv.start, t0), &attributed))
			return -1;
		emit(p, attributed ? PART_WAIT : PART_STOLEN, max64(iv.start, t0), min64(iv.end, t1));
		if (attributed) {
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

/* Index of a CPU by the thread's CPU number, which in a container is a number of the host; -1: none. */
static int cpu_index(const struct attribution *p, int64_t number)
{
	uint32_t machine = p->catalog->thread[p->thread].machine;
	if (p->catalog->machine[machine].kind == MACHINE_CONTAINER) {
		int host = catalog_find_machine(p->catalog, "host");
		if (host < 0)
			return -1;
		machine = (uint32_t)host;
	}
	return number < 0 || number > UINT32_MAX ? -1 : catalog_find_cpu(p->catalog, machine, (unsigned)number);
}

static int attribute_by_cpu(struct attribution *p, int64_t t0, int64_t t1)
{
	const struct catalog_thread *thread = &p->catalog->thread[p->thread];
	bool vm = p->catalog->machine[thread->machine].kind == MACHINE_VM;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (thread->cpu == HISTORY_NONE) {
		if (p->status == THREAD_BLOCKED)
			emit(p, PART_BETWEEN, t0, t1);
		else
			add_unknown(p, t0, t1);
		return 0;
	}
	if (history_range(&c, p->h, thread->cpu, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t from = max64(iv.start, t0), to = min64(iv.end, t1);
		int at = iv.value == HISTORY_NULL ? -1 : cpu_index(p, iv.value);
		const struct catalog_cpu *cpu = at < 0 ? NULL : &p->catalog->cpu[at];
		if (cpu && vm && cpu->status != HISTORY_NONE) {
			if (add_vcpu_interval(p, cpu, from, to))
				return -1;
		} else if (cpu && !vm && cpu->current != HISTORY_NONE) {
			if (add_host_interval(p, cpu, from, to))
				return -1;
		} else if (p->status == THREAD_BLOCKED) {
			add_blocked(p, from, to);
		} else {
			add_unknown(p, from, to);
		}
	}
	return more;
}

/* Handles a wakeup after a sleep that ends at t, with the vCPU on which the thread wakes. */
static int add_wakeup(struct attribution *p, int64_t t0, int64_t t)
{
	const struct catalog_thread *thread = &p->catalog->thread[p->thread];
	struct interval cpu;
	if (p->catalog->machine[thread->machine].kind != MACHINE_VM || thread->cpu == HISTORY_NONE)
		return 0;
	if (history_stab(p->h, thread->cpu, t, &cpu, p->err))
		return -1;
	int at = cpu.value == HISTORY_NULL ? -1 : cpu_index(p, cpu.value);
	return at < 0 ? 0 : add_wakeup_wait(p, &p->catalog->cpu[at], t0, t);
}

static int attribute_by_status(struct attribution *p, int64_t t0, int64_t t1)
{
	const struct catalog_thread *thread = &p->catalog->thread[p->thread];
	uint32_t attr = thread->status;
	bool vm = p->catalog->machine[thread->machine].kind == MACHINE_VM;
	struct history_cursor c;
	struct interval iv;
	int more;
	if (attr == HISTORY_NONE) {
		add_unknown(p, t0, t1);
		return 0;
	}
	if (history_range(&c, p->h, attr, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		int64_t from = max64(iv.start, t0), to = min64(iv.end, t1);
		p->status = thread_state(p->catalog, iv.value);
		if (p->status < 0) {
			count_unknown(p, to - from + 1);  /* the thread does not exist: no part */
			continue;
		}
		if (p->status == THREAD_UNKNOWN) {
			add_unknown(p, from, to);
			continue;
		}
		if (attribute_by_cpu(p, from, to))
			return -1;
		if (!vm && p->status == THREAD_PREEMPTED && iv.start == from)
			p->r->feature.switches++;
		if (p->status == THREAD_BLOCKED && iv.end < p->r->end && iv.end <= t1) {
			p->r->feature.wakeups++;
			if (add_wakeup(p, max64(iv.start, p->known_from), iv.end))
				return -1;
		}
	}
	return more;
}

static void set_server(struct request *r, const struct catalog *catalog, int32_t tid, int container)
{
	if (r->tid < 0)
		r->tid = tid;
	if (container >= 0 && !r->container)
		r->container = mem_dup(catalog->machine[container].name);
}

/* Thread of a value of the attribute Thread: index into catalog; -1: none. */
static int find_thread_value(const struct catalog *catalog, int machine, int64_t value)
{
	return machine < 0 || value < 0 || value > INT32_MAX ? -1
	                                                     : catalog_find_thread(catalog, (uint32_t)machine, (int32_t)value);
}

int attribute_server(const struct catalog *catalog, struct request *r, struct error *err)
{
	const int machine = catalog_find_machine(catalog, r->machine);
	struct history_cursor c;
	struct interval iv;
	int more = 0;
	r->tid = -1;
	if (machine < 0 || r->thread == HISTORY_NONE)
		return 0;
	if (history_range(&c, catalog->h, r->thread, r->start, r->end, err))
		return -1;
	while (r->tid < 0 && (more = history_range_next(&c, &iv, err)) > 0)
		if (find_thread_value(catalog, machine, iv.value) >= 0)
			set_server(r, catalog, (int32_t)iv.value, request_container(catalog, (uint32_t)machine, (int32_t)iv.value));
	return more < 0 ? -1 : 0;
}

static int attribute_by_thread(struct attribution *p, int64_t t0, int64_t t1)
{
	const struct catalog *catalog = p->catalog;
	struct history_cursor c;
	struct interval iv;
	int machine = catalog_find_machine(catalog, p->r->machine), more;
	if (machine < 0 || p->r->thread == HISTORY_NONE) {
		count_unknown(p, t1 - t0 + 1);
		return 0;
	}
	if (history_range(&c, p->h, p->r->thread, t0, t1, p->err))
		return -1;
	while ((more = history_range_next(&c, &iv, p->err)) > 0) {
		const int thread = find_thread_value(catalog, machine, iv.value);
		if (thread < 0) {
			count_unknown(p, min64(iv.end, t1) - max64(iv.start, t0) + 1);
			continue;
		}
		p->thread = (uint32_t)thread;
		p->container = request_container(catalog, (uint32_t)machine, (int32_t)iv.value);
		set_server(p->r, catalog, (int32_t)iv.value, p->container);
		if (attribute_by_status(p, max64(iv.start, t0), min64(iv.end, t1)))
			return -1;
	}
	return more;
}

/* Number of a request state in this history; -2, which no value equals, if there is no such state. */
static int64_t request_state(const struct history *h, uint32_t attr, const char *name)
{
	unsigned n = history_state_count(h, attr);
	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(history_state_name(h, attr, i), name))
			return i;
	}
	return -2;
}

int attribute_request(const struct catalog *catalog, struct request *r, struct error *err)
{
	struct attribution p = { .catalog = catalog, .h = catalog->h, .r = r, .container = -1,
	                         .known_from = r->start, .err = err };
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
			p.known_from = iv.end + 1;
		} else if (attribute_by_thread(&p, iv.start, iv.end)) {
			return -1;
		}
	}
	return more;
}

int attribute_thread(const struct catalog *catalog, uint32_t thread, bool executing, struct request *r, struct error *err)
{
	const struct catalog_thread *t = &catalog->thread[thread];
	struct attribution p = { .catalog = catalog, .h = catalog->h, .r = r, .executing = executing, .known_from = r->start,
	                         .thread = thread, .err = err };
	p.container = request_container(catalog, t->machine, t->tid);
	r->tid = -1;
	set_server(r, catalog, t->tid, p.container);
	if (executing)
		r->executing += r->end - r->start + 1;
	return attribute_by_status(&p, r->start, r->end);
}

int attribute_parts(const struct catalog *catalog, uint32_t thread, int64_t start, int64_t end, request_part_fn *on_part,
                    void *arg, struct error *err)
{
	const struct catalog_thread *t = &catalog->thread[thread];
	struct request r = { .start = start, .end = end };
	struct attribution p = { .catalog = catalog, .h = catalog->h, .r = &r, .executing = true, .known_from = start,
	                         .thread = thread, .on_part = on_part, .arg = arg, .err = err };
	p.container = request_container(catalog, t->machine, t->tid);
	return attribute_by_status(&p, start, end);
}
