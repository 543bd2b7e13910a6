/* Flows, gaps and the steal matrix of random histories against a resolver that knows nothing but arrays: one value
 * per attribute and ns.  The histories are mostly nonsense (threads that wait for themselves, CPUs that nobody had),
 * which is the point: whatever a file says, the answers tile the window, add up and agree. */
#include "flow_world.h"
#include "test.h"

#include <inttypes.h>
#include <unistd.h>

#define SPAN 48
#define WORLDS 600
#define NUL HISTORY_NULL

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	uint64_t z = seed += 0x9E3779B97F4A7C15ULL;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return (uint32_t)((z ^ (z >> 31)) % n);
}

struct row { int64_t v[SPAN]; };

enum { HOST, VM_A, VM_B, CONTAINER, MACHINES };
static const char *const machine_name[MACHINES] = { "host", "A", "B", "box" };
static const char *const machine_root[MACHINES] = { "/Host", "/Virtual Machines/A", "/Virtual Machines/B",
	"/Containers/box" };

/* Host threads 1..3 (3 is the container's), the vCPUs A/0 = 10, A/1 = 11, B/0 = 20; guest threads. */
static const struct who { int machine, tid, vm, vcpu; } threads[] = {
	{ HOST, 1, -1, -1 }, { HOST, 2, -1, -1 }, { CONTAINER, 3, -1, -1 }, { HOST, 10, VM_A, 0 }, { HOST, 11, VM_A, 1 },
	{ HOST, 20, VM_B, 0 }, { VM_A, 5, -1, -1 }, { VM_A, 6, -1, -1 }, { VM_B, 7, -1, -1 },
};
#define THREADS ((int)COUNT(threads))
static const struct vcpu { int vm, number, host_tid; } vcpus[] = { { VM_A, 0, 10 }, { VM_A, 1, 11 }, { VM_B, 0, 20 } };
#define VCPUS ((int)COUNT(vcpus))
#define PCPUS 2

static const char *const names[] = { "alpha", "beta", "gamma" };
static const char *const handlers[] = { "irq/1-a", "softirq/7-SCHED" };
static const char *const wakers[] = { "host/1", "A/5", "A/0", "B/7", "host/3", "nonsense", "host/77" };

static struct {
	struct row status[THREADS], cpu[THREADS], waker[THREADS], name[THREADS];
	struct row vstatus[VCPUS], vcurrent[VCPUS], virq[VCPUS], vpcpu[VCPUS];
	struct row pcurrent[PCPUS], pirq[PCPUS];
	bool b_traced, folded;
} m;

/* Runs of values from a list, each lasting 1..longest ns. */
static void fill(struct row *r, const int64_t *value, uint32_t n, uint32_t longest)
{
	for (int t = 0; t < SPAN;) {
		int64_t v = value[rnd(n)];
		for (uint32_t k = 1 + rnd(longest); k > 0 && t < SPAN; k--)
			r->v[t++] = v;
	}
}
#define FILL(row, longest, ...) fill(row, (const int64_t[]){ __VA_ARGS__ }, \
	(uint32_t)COUNT(((const int64_t[]){ __VA_ARGS__ })), longest)

static void make_model(void)
{
	m.b_traced = rnd(2);
	bool paper = rnd(3) == 0;
	m.folded = true;
	for (int i = 0; i < THREADS; i++) {
		bool guest = threads[i].machine == VM_A || threads[i].machine == VM_B;
		FILL(&m.status[i], 9, THREAD_RUNNING, THREAD_RUNNING, THREAD_PREEMPTED, THREAD_PREEMPTED, THREAD_BLOCKED,
		     guest ? THREAD_VIRT_PREEMPTED : THREAD_PREEMPTED, guest ? THREAD_VIRT_PREEMPTED : THREAD_RUNNING,
		     THREAD_UNKNOWN, NUL);
		FILL(&m.cpu[i], 20, 0, 0, 1, threads[i].machine == VM_A ? 1 : 0, 9, NUL);
		FILL(&m.waker[i], 9, 0, 1, 2, 3, 4, 5, 6, NUL);
		FILL(&m.name[i], 40, 0, 1, 2, NUL);
	}
	for (int i = 0; i < VCPUS; i++) {
		FILL(&m.vstatus[i], 7, VCPU_RUNNING, VCPU_RUNNING, VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_VMM, VCPU_IDLE,
		     paper ? VCPU_PREEMPTED : VCPU_HOST_BLOCKED, VCPU_WAKING, VCPU_UNKNOWN, NUL);
		for (int t = 0; t < SPAN; t++)
			m.folded = m.folded && m.vstatus[i].v[t] != VCPU_HOST_BLOCKED;
		if (vcpus[i].vm == VM_A)
			FILL(&m.vcurrent[i], 9, 5, 5, 6, 0, 8, NUL);
		else if (m.b_traced)
			FILL(&m.vcurrent[i], 9, 7, 7, 0, NUL);
		else
			FILL(&m.vcurrent[i], 9, NUL);
		FILL(&m.virq[i], 4, NUL, NUL, NUL, 0, 1);
		FILL(&m.vpcpu[i], 15, 0, 0, 1, 1, NUL, 7);
	}
	for (int i = 0; i < PCPUS; i++) {
		FILL(&m.pcurrent[i], 6, 0, 1, 2, 3, 10, 11, 20, 99, NUL);
		FILL(&m.pirq[i], 4, NUL, NUL, NUL, NUL, 0, 1);
	}
}

/* ---- the history of the model */

struct sink { struct world *w; struct { uint32_t attr; const struct row *row; const char *const *text; } entry[128]; int n; };

static void declare(struct sink *s, const struct row *row, enum history_type type, unsigned set,
                    const char *const *text, const char *fmt, ...)
{
	struct error err = ERROR_INIT;
	char path[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof path, fmt, ap);
	va_end(ap);
	s->entry[s->n].attr = history_attribute(s->w->b, path, type, set, &err);
	s->entry[s->n].row = row;
	s->entry[s->n++].text = text;
	assert_int_not_equal(s->entry[s->n - 1].attr, HISTORY_NONE);
}

static void declare_thread(struct sink *s, int i, const char *root)
{
	struct world *w = s->w;
	int tid = threads[i].tid;
	declare(s, &m.status[i], HISTORY_STATE, w->thread_set, NULL, "%s/Threads/%d/Status", root, tid);
	declare(s, &m.cpu[i], HISTORY_INT, 0, NULL, "%s/Threads/%d/CPU", root, tid);
	declare(s, &m.waker[i], HISTORY_STRING, 0, wakers, "%s/Threads/%d/Waker", root, tid);
	declare(s, &m.name[i], HISTORY_STRING, 0, names, "%s/Threads/%d/Name", root, tid);
}

static void make_history(struct world *w)
{
	static const struct row zero;
	static const char *const vm_of[] = { "A/0" }, *const vm_of1[] = { "A/1" }, *const vm_of2[] = { "B/0" };
	struct error err = ERROR_INIT;
	struct sink s = { .w = w };
	world_open(w);
	for (int i = 0; i < THREADS; i++) {
		declare_thread(&s, i, machine_root[threads[i].machine]);
		if (threads[i].machine == CONTAINER)
			declare_thread(&s, i, "/Host");
	}
	for (int i = 0; i < VCPUS; i++) {
		const char *root = machine_root[vcpus[i].vm];
		int n = vcpus[i].number;
		declare(&s, &m.vstatus[i], HISTORY_STATE, w->vcpu_set, NULL, "%s/CPUs/CPU%d/Status", root, n);
		declare(&s, &m.vcurrent[i], HISTORY_INT, 0, NULL, "%s/CPUs/CPU%d/Current Thread", root, n);
		declare(&s, &m.virq[i], HISTORY_STRING, 0, handlers, "%s/CPUs/CPU%d/Interrupt", root, n);
		declare(&s, &m.vpcpu[i], HISTORY_INT, 0, NULL, "%s/CPUs/CPU%d/pCPU", root, n);
		declare(&s, &zero, HISTORY_STRING, 0, i == 0 ? vm_of : i == 1 ? vm_of1 : vm_of2, "/Host/Threads/%d/VM",
		        vcpus[i].host_tid);
	}
	for (int i = 0; i < PCPUS; i++) {
		declare(&s, &m.pcurrent[i], HISTORY_INT, 0, NULL, "/Host/CPUs/CPU%d/Current Thread", i);
		declare(&s, &m.pirq[i], HISTORY_STRING, 0, handlers, "/Host/CPUs/CPU%d/Interrupt", i);
	}
	for (int t = 0; t < SPAN; t++)
		for (int k = 0; k < s.n; k++) {
			int64_t v = s.entry[k].row->v[t];
			if (t && v == s.entry[k].row->v[t - 1])
				continue;
			int r = s.entry[k].text && v != NUL
				? history_set_string(w->b, t, s.entry[k].attr, s.entry[k].text[v], &err)
				: history_set(w->b, t, s.entry[k].attr, v, &err);
			assert_int_equal(r, 0);
		}
	world_close(w, 0, SPAN - 1);
}

/* ---- the slow resolver */

struct answer { int kind, machine, tid, pcpu; const char *name; };

static struct answer blank(int kind)
{
	return (struct answer){ kind, -1, -1, -1, "" };
}

static int thread_index(int machine, int tid)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].tid == tid && (threads[i].machine == machine ||
		                              (machine == HOST && threads[i].machine == CONTAINER)))
			return i;
	return -1;
}

static int vcpu_index(int vm, int64_t number)
{
	for (int i = 0; i < VCPUS; i++)
		if (vcpus[i].vm == vm && vcpus[i].number == number)
			return i;
	return -1;
}

static struct answer named(struct answer a, int machine, int tid, int t)
{
	int i = thread_index(machine, tid);
	a.machine = i >= 0 ? threads[i].machine : machine;
	a.tid = tid;
	a.name = tid == 0 ? "swapper" : i < 0 || m.name[i].v[t] == NUL ? "" : names[m.name[i].v[t]];
	return a;
}

/* Asleep as long as `until` keeps its value: who wakes thread i then. */
static struct answer woken(int i, const struct row *until, int t)
{
	struct answer a = blank(FLOW_WAITING);
	int e = t;
	while (e < SPAN && until->v[e] == until->v[t])
		e++;
	if (e == SPAN || m.waker[i].v[e] == NUL || m.status[i].v[e] == NUL || m.status[i].v[e] == THREAD_UNKNOWN)
		return a;
	const char *text = wakers[m.waker[i].v[e]];
	int machine = -1;
	for (int k = 0; k < MACHINES; k++)
		if (strncmp(text, machine_name[k], strlen(machine_name[k])) == 0 && text[strlen(machine_name[k])] == '/')
			machine = k;
	if (machine < 0) {
		a.name = text;
		return a;
	}
	return named(a, machine, atoi(strchr(text, '/') + 1), e);
}

static struct answer on_pcpu(int64_t p, int t, int waiting)
{
	struct answer a = blank(FLOW_UNKNOWN);
	if (p < 0 || p >= PCPUS)
		return a;
	a.pcpu = (int)p;
	if (m.pirq[p].v[t] != NUL) {
		a.kind = FLOW_IRQ;
		a.machine = HOST;
		a.name = handlers[m.pirq[p].v[t]];
		return a;
	}
	int64_t tid = m.pcurrent[p].v[t];
	if (tid == NUL)
		return a;
	if (tid == 0) {
		a.kind = FLOW_IDLE_CPU;
		return a;
	}
	int i = thread_index(HOST, (int)tid);
	if (i >= 0 && i == waiting)
		return a;
	a.kind = FLOW_PREEMPTING;
	if (i < 0 || threads[i].vm < 0)
		return named(a, HOST, (int)tid, t);
	int v = vcpu_index(threads[i].vm, threads[i].vcpu);
	if (v < 0)
		abort();
	if (m.vcurrent[v].v[t] != NUL)
		return named(a, threads[i].vm, (int)m.vcurrent[v].v[t], t);
	a.machine = threads[i].vm;
	a.name = threads[i].vcpu ? "vCPU1" : "vCPU0";
	return a;
}

static struct answer vcpu_out(int v, int t)
{
	int h = thread_index(HOST, vcpus[v].host_tid);
	if (m.folded && m.status[h].v[t] == THREAD_BLOCKED)
		return woken(h, &m.status[h], t);
	if (m.vstatus[v].v[t] == VCPU_HOST_BLOCKED)
		return woken(h, &m.vstatus[v], t);
	return on_pcpu(m.vpcpu[v].v[t], t, h);
}

/* The handler that has the pCPU of a vCPU which is on it; kind UNKNOWN = none.  Always fills pcpu. */
static struct answer outer_irq(int v, int t)
{
	struct answer a = blank(FLOW_UNKNOWN);
	int64_t p = m.vpcpu[v].v[t];
	if (p < 0 || p >= PCPUS)
		return a;
	a.pcpu = (int)p;
	if (m.pirq[p].v[t] != NUL) {
		a.kind = FLOW_IRQ;
		a.machine = HOST;
		a.name = handlers[m.pirq[p].v[t]];
	}
	return a;
}

static struct answer inner_irq(int v, struct answer a, int t)
{
	if (a.kind != FLOW_IRQ && m.virq[v].v[t] != NUL) {
		a.kind = FLOW_IRQ;
		a.machine = vcpus[v].vm;
		a.name = handlers[m.virq[v].v[t]];
	}
	return a;
}

static struct answer vmm(int v, int64_t tid, int t)
{
	struct answer a = outer_irq(v, t);
	if (a.kind == FLOW_IRQ)
		return a;
	a.kind = FLOW_HYPERVISOR;
	if (tid != NUL)
		return named(a, vcpus[v].vm, (int)tid, t);
	a.machine = vcpus[v].vm;
	a.name = vcpus[v].number ? "vCPU1" : "vCPU0";
	return a;
}

/* Who has a vCPU that guest thread `waiting` wants. */
static struct answer on_vcpu(int v, int t, int waiting)
{
	struct answer a;
	switch (m.vstatus[v].v[t]) {
	case VCPU_UNKNOWN:
		return blank(FLOW_UNKNOWN);
	case VCPU_IDLE:
		return blank(FLOW_IDLE_CPU);
	case VCPU_VMM:
		return vmm(v, m.vcurrent[v].v[t], t);
	case VCPU_RUNNING:
	case NUL:
		a = inner_irq(v, outer_irq(v, t), t);
		if (a.kind == FLOW_IRQ || m.vcurrent[v].v[t] == NUL)
			return a;
		if (m.vcurrent[v].v[t] == 0) {
			a.kind = FLOW_IDLE_CPU;
			return a;
		}
		if (thread_index(vcpus[v].vm, (int)m.vcurrent[v].v[t]) == waiting)
			return a;
		a.kind = FLOW_PREEMPTING;
		return named(a, vcpus[v].vm, (int)m.vcurrent[v].v[t], t);
	default:
		return vcpu_out(v, t);
	}
}

static struct answer of_thread_plain(int i, int t)
{
	int64_t status = m.status[i].v[t], cpu = m.cpu[i].v[t];
	bool guest = threads[i].machine == VM_A || threads[i].machine == VM_B;
	int v = guest ? vcpu_index(threads[i].machine, cpu) : -1;
	struct answer a = blank(FLOW_UNKNOWN);
	if (status == NUL)
		a.name = "not alive";
	if (status == NUL || status == THREAD_UNKNOWN)
		return a;
	if (status == THREAD_BLOCKED)
		return woken(i, &m.status[i], t);
	if (status == THREAD_RUNNING) {
		if (guest && v >= 0)
			a = inner_irq(v, outer_irq(v, t), t);
		else if (!guest && cpu >= 0 && cpu < PCPUS)
			a = on_pcpu(cpu, t, -2);
		if (a.kind == FLOW_IRQ)
			return a;
		a.kind = FLOW_RUNNING;
		return named(a, threads[i].machine, threads[i].tid, t);
	}
	if (!guest)
		return on_pcpu(cpu, t, i);
	if (v < 0)
		return a;
	if (status == THREAD_PREEMPTED)
		return on_vcpu(v, t, i);
	switch (m.vstatus[v].v[t]) {
	case VCPU_VMM:
		return vmm(v, threads[i].tid, t);
	case VCPU_PREEMPTED:
	case VCPU_HOST_BLOCKED:
	case VCPU_WAKING:
		return vcpu_out(v, t);
	default:
		return a;
	}
}

/* Nobody keeps itself off. */
static struct answer of_thread(int i, int t)
{
	struct answer a = of_thread_plain(i, t), lost = blank(FLOW_UNKNOWN);
	lost.pcpu = a.pcpu;
	return a.kind == FLOW_PREEMPTING && a.machine == threads[i].machine && a.tid == threads[i].tid ? lost : a;
}

/* ---- the comparisons */

static int machine_of(const struct world *w, int32_t system)
{
	for (int k = 0; system >= 0 && k < MACHINES; k++)
		if (strcmp(w->topo.machine[system].name, machine_name[k]) == 0)
			return k;
	return -1;
}

static uint32_t topo_index(const struct world *w, int i)
{
	int machine = topo_find_machine(&w->topo, machine_name[threads[i].machine]);
	int found = topo_find_thread(&w->topo, (uint32_t)machine, threads[i].tid);
	assert_true(found >= 0);
	return (uint32_t)found;
}

static void check_piece(const struct world *w, const struct flow *f, const struct flow_interval *p, int64_t t,
                        struct answer want)
{
	if (p->kind != want.kind || machine_of(w, p->system) != want.machine || p->tid != want.tid ||
	    p->pcpu != want.pcpu || strcmp(f->name[p->name], want.name) != 0)
		fail_msg("at %" PRId64 ": %s %d/%d %s @%d, want %s %d/%d %s @%d", t, flow_kind_name[p->kind],
		         machine_of(w, p->system), p->tid, f->name[p->name], p->pcpu, flow_kind_name[want.kind],
		         want.machine, want.tid, want.name, want.pcpu);
}

static void check_thread(const struct world *w, int i, int64_t from, int64_t to)
{
	struct error err = ERROR_INIT;
	struct flow f;
	int first = 0, last = SPAN - 1;
	while (first < SPAN && m.status[i].v[first] == NUL)
		first++;
	while (last >= 0 && m.status[i].v[last] == NUL)
		last--;
	int r = flow_of_thread(&w->topo, topo_index(w, i), from, to, &f, &err);
	if (last < first || to < first || from > last) {
		assert_int_equal(r, -1);
		return;
	}
	assert_int_equal(r, 0);
	world_check_tiling(&f);
	assert_int_equal(f.start, from > first ? from : first);
	assert_int_equal(f.end, to < last ? to : last);
	int64_t entry_ns[FLOW_KIND_COUNT] = { 0 }, brute_ns[FLOW_KIND_COUNT] = { 0 };
	for (size_t k = 0; k < f.entries; k++)
		entry_ns[f.entry[k].kind] += f.entry[k].duration;
	for (size_t k = 0; k < f.intervals; k++) {
		const struct flow_interval *p = &f.interval[k];
		assert_false(p->kind == FLOW_PREEMPTING && machine_of(w, p->system) == threads[i].machine &&
		             p->tid == threads[i].tid);
		for (int64_t t = p->start; t <= p->end; t++) {
			struct answer want = of_thread(i, (int)t);
			check_piece(w, &f, p, t, want);
			brute_ns[want.kind]++;
		}
	}
	assert_memory_equal(entry_ns, brute_ns, sizeof entry_ns);
	flow_release(&f);
}

static const struct row *gap_row(const struct world *w, const struct subject *s, int *thread, int *vcpu)
{
	*thread = *vcpu = -1;
	if (s->kind == SUBJECT_THREAD) {
		const struct topo_thread *th = &w->topo.thread[s->index];
		*thread = thread_index(machine_of(w, (int32_t)th->machine), th->tid);
		return &m.status[*thread];
	}
	const struct topo_cpu *cpu = &w->topo.cpu[s->index];
	*vcpu = vcpu_index(machine_of(w, (int32_t)cpu->machine), cpu->number);
	return &m.vstatus[*vcpu];
}

static bool is_gap(const struct subject *s, int64_t v)
{
	return s->kind == SUBJECT_THREAD ? v == THREAD_PREEMPTED || v == THREAD_VIRT_PREEMPTED
	                                 : v == VCPU_PREEMPTED || v == VCPU_HOST_BLOCKED;
}

/* gap_find and gap_at for every moment, steal_time for a random window, gap_list_of the same. */
static void check_gaps(const struct world *w, const struct subject *s)
{
	struct error err = ERROR_INIT;
	int thread, vcpu;
	const struct row *row = gap_row(w, s, &thread, &vcpu);
	int64_t from = rnd(SPAN), to = from + rnd(SPAN), ns = 0, want = 0;
	int64_t min = rnd(5);
	uint64_t pieces = 0;
	for (int t = 0; t < SPAN; t++) {
		struct gap g;
		int a = t, b;
		while (a < SPAN && (!is_gap(s, row->v[a]) || a == t || is_gap(s, row->v[a - 1])))
			a++;
		for (b = a; b < SPAN && is_gap(s, row->v[b]); b++)
			;
		int found = gap_find(&w->topo, s, t, 1, &g, &err);
		assert_int_equal(found, a < SPAN);
		if (found) {
			assert_int_equal(g.start, a);
			assert_int_equal(g.end, b - 1);
		}
		b = t;
		while (b >= 0 && (!is_gap(s, row->v[b]) || b == t || is_gap(s, row->v[b + 1])))
			b--;
		for (a = b; a >= 0 && is_gap(s, row->v[a]); a--)
			;
		found = gap_find(&w->topo, s, t, -1, &g, &err);
		assert_int_equal(found, b >= 0);
		if (found) {
			assert_int_equal(g.start, a + 1);
			assert_int_equal(g.end, b);
		}
		found = gap_at(&w->topo, s, t, &g, &err);
		assert_int_equal(found, is_gap(s, row->v[t]));
		if (found)
			assert_true(g.start <= t && t <= g.end);
		bool in = t >= from && t <= to && is_gap(s, row->v[t]);
		want += in;
		pieces += in && (t == from || !is_gap(s, row->v[t - 1]));
	}
	assert_int_equal(steal_time(&w->topo, s, from, to, &ns, &err), 0);
	assert_int_equal(ns, want);
	struct gap_list l;
	struct gap_options o = { from, to, 0, 0 };
	assert_int_equal(gap_list_of(&w->topo, s, &o, &l, &err), 0);
	assert_int_equal(l.total, want);
	assert_int_equal(l.count, pieces);
	assert_int_equal(l.items, pieces);
	uint64_t longer = 0;
	for (size_t i = 0; i < l.items; i++) {
		int64_t length = l.item[i].gap.end - l.item[i].gap.start + 1, sum = 0;
		longer += length >= min;
		for (size_t k = 0; k < l.item[i].culprits; k++)
			sum += l.culprit[l.item[i].culprit + k].duration;
		assert_int_equal(sum, length);
	}
	gap_list_release(&l);
	o = (struct gap_options){ from, to, min, 2 };
	assert_int_equal(gap_list_of(&w->topo, s, &o, &l, &err), 0);
	assert_int_equal(l.count, longer);
	assert_int_equal(l.items, longer < 2 ? longer : 2);
	gap_list_release(&l);
}

static int64_t party_sum(const struct world *w, const struct steal *s, int victim, int tid, int thief, int kind)
{
	int64_t ns = 0;
	for (size_t i = 0; i < s->cells; i++) {
		const struct steal_cell *c = &s->cell[i];
		if (machine_of(w, c->victim.system) == victim && c->victim.tid == tid &&
		    machine_of(w, c->thief.system) == thief && (kind < 0 || c->thief.kind == kind))
			ns += c->ns;
	}
	return ns;
}

static void check_matrix(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct steal s;
	int64_t from = rnd(SPAN / 2), to = from + rnd(SPAN);
	int64_t by_machine[MACHINES][MACHINES + 1] = { 0 }, by_thread[THREADS][MACHINES + 1][FLOW_KIND_COUNT] = { 0 };
	for (int64_t t = from; t <= to && t < SPAN; t++) {
		struct subject thread = { SUBJECT_THREAD, 0 }, cpu = { SUBJECT_CPU, 0 };
		for (int i = 0; i < THREADS; i++) {
			if (!is_gap(&thread, m.status[i].v[t]) || threads[i].vm >= 0)
				continue;
			struct answer a = of_thread(i, (int)t);
			by_thread[i][a.machine + 1][a.kind]++;
			if (threads[i].machine == HOST || threads[i].machine == CONTAINER)
				by_machine[threads[i].machine][(a.kind == FLOW_WAITING ? -1 : a.machine) + 1]++;
		}
		for (int v = 0; v < VCPUS; v++) {
			if (!is_gap(&cpu, m.vstatus[v].v[t]))
				continue;
			struct answer a = vcpu_out(v, (int)t);
			by_machine[vcpus[v].vm][(a.kind == FLOW_WAITING ? -1 : a.machine) + 1]++;
		}
	}
	assert_int_equal(steal_matrix(&w->topo, STEAL_BY_THREAD, NULL, from, to, &s, &err), 0);
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k <= MACHINES && threads[i].vm < 0; k++)
			for (int kind = 0; kind < FLOW_KIND_COUNT; kind++)
				assert_int_equal(party_sum(w, &s, threads[i].machine, threads[i].tid, k - 1, kind),
				                 by_thread[i][k][kind]);
	steal_release(&s);
	assert_int_equal(steal_matrix(&w->topo, STEAL_BY_MACHINE, NULL, from, to, &s, &err), 0);
	for (int i = 0; i < MACHINES; i++) {
		struct subject machine = { SUBJECT_MACHINE, (uint32_t)topo_find_machine(&w->topo, machine_name[i]) };
		int64_t ns, sum = 0;
		for (int k = 0; k <= MACHINES; k++) {
			assert_int_equal(party_sum(w, &s, i, -1, k - 1, -1), by_machine[i][k]);
			sum += by_machine[i][k];
		}
		assert_int_equal(steal_time(&w->topo, &machine, from, to, &ns, &err), 0);
		assert_int_equal(ns, sum);
	}
	steal_release(&s);
}

/* Reading many intervals at once gives what reading them one by one gives, also by turns. */
static void check_read(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct history_cursor one, many;
	struct interval iv, read[8];
	uint32_t attr = w->topo.thread[rnd(w->topo.threads)].status;
	int64_t from = (int64_t)rnd(SPAN + 4) - 2, to = from + rnd(SPAN);
	int n, i = 0, r;
	assert_int_equal(history_range(&one, w->h, attr, from, to, &err), 0);
	assert_int_equal(history_range(&many, w->h, attr, from, to, &err), 0);
	do {
		n = rnd(3) ? history_range_read(&many, read, 1 + rnd(8), &err) : history_range_next(&many, read, &err);
		assert_true(n >= 0);
		for (i = 0; i < n; i++) {
			assert_int_equal(history_range_next(&one, &iv, &err), 1);
			assert_int_equal(iv.start, read[i].start);
			assert_int_equal(iv.end, read[i].end);
			assert_int_equal(iv.value, read[i].value);
		}
	} while (n > 0);
	r = history_range_next(&one, &iv, &err);
	assert_int_equal(r, 0);
}

/* Nothing may fail or crash on nonsense; the texts are checked elsewhere. */
static void check_words(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct subject s = { SUBJECT_THREAD, rnd(w->topo.threads) }, c = { SUBJECT_CPU, rnd(w->topo.cpus) };
	struct periodic_list l;
	char line[400], *text = NULL;
	int64_t t = rnd(SPAN);
	assert_int_equal(explain_status(&w->topo, &s, t, line, sizeof line, &err), 0);
	assert_int_equal(explain_status(&w->topo, &c, t, line, sizeof line, &err), 0);
	if (explain_window(&w->topo, &s, t, SPAN, &text, &err) == 0)
		free(text);
	if (explain_at(&w->topo, &s, t, &text, &err) == 0)
		free(text);
	assert_int_equal(gap_periodic(&w->topo, 0, SPAN, &l, &err), 0);
	periodic_release(&l);
}

static void brute_force(void **state)
{
	struct world w;
	(void)state;
	for (int n = 0; n < WORLDS; n++) {
		seed = (uint64_t)n * 1000003;
		make_model();
		make_history(&w);
		for (int i = 0; i < THREADS; i++) {
			int64_t from = rnd(SPAN), to = from + rnd(SPAN);
			check_thread(&w, i, INT64_MIN, INT64_MAX);
			check_thread(&w, i, from, to);
			check_gaps(&w, &(struct subject){ SUBJECT_THREAD, topo_index(&w, i) });
		}
		for (uint32_t i = 0; i < w.topo.cpus; i++)
			if (w.topo.machine[w.topo.cpu[i].machine].kind == MACHINE_VM)
				check_gaps(&w, &(struct subject){ SUBJECT_CPU, i });
		check_matrix(&w);
		check_words(&w);
		for (int i = 0; i < 20; i++)
			check_read(&w);
		world_release(&w);
	}
}

static char *all_flows(const struct world *w, char *buf, size_t size, bool *failed)
{
	size_t used = 0;
	*buf = '\0';
	for (uint32_t i = 0; i < w->topo.threads; i++) {
		struct error err = ERROR_INIT;
		struct flow f;
		if (flow_of_thread(&w->topo, i, INT64_MIN, INT64_MAX, &f, &err) < 0) {
			assert_true(err.text[0]);
			*failed = *failed || !strstr(err.text, "nothing is known");
			continue;
		}
		world_flow_text(w, &f, buf + used, size - used);
		used += strlen(buf + used);
		flow_release(&f);
	}
	return buf;
}

/* A damaged file gives an error or the right answer, whatever byte of it changed. */
static void damaged(void **state)
{
	static char bytes[1 << 17], truth[1 << 16], text[1 << 16];
	struct world w;
	bool failed = false;
	int errors = 0;
	(void)state;
	seed = 99;
	make_model();
	make_history(&w);
	all_flows(&w, truth, sizeof truth, &failed);
	assert_false(failed);
	FILE *f = fopen(w.path, "rb");
	size_t size = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	assert_true(size > 0 && size < sizeof bytes);
	for (int n = 0; n < 400; n++) {
		struct error err = ERROR_INIT;
		struct world d = { .h = NULL };
		char path[sizeof w.path + 2];
		size_t at = (rnd(1 << 15) << 15 | rnd(1 << 15)) % size;
		char was = bytes[at];
		bytes[at] = (char)(was ^ (char)(1 + rnd(255)));
		snprintf(path, sizeof path, "%s.x", w.path);
		f = fopen(path, "wb");
		assert_int_equal(fwrite(bytes, 1, size, f), size);
		fclose(f);
		bytes[at] = was;
		failed = false;
		d.h = history_open(path, &err);
		if (d.h && topo_open(&d.topo, d.h, &err) == 0) {
			all_flows(&d, text, sizeof text, &failed);
			if (!failed)
				assert_string_equal(text, truth);
			topo_release(&d.topo);
		} else {
			assert_true(err.text[0]);
			failed = true;
		}
		errors += failed;
		history_close(d.h);
		unlink(path);
	}
	assert_true(errors > 100);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(brute_force), cmocka_unit_test(damaged) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
