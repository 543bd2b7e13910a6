#include "query_brute.h"
#include "refs.h"
#include "test.h"

#include <inttypes.h>

struct brute_model model;
static uint64_t seed;

void seed_set(uint64_t value)
{
	seed = value;
}

uint32_t rnd(uint32_t n)
{
	uint64_t z = seed += 0x9E3779B97F4A7C15ULL;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return (uint32_t)((z ^ (z >> 31)) % n);
}

const char *const machine_name[MACHINES] = { "host", "A", "B", "box" };
static const char *const machine_root[MACHINES] = { "/Host", "/Virtual Machines/A", "/Virtual Machines/B",
	"/Containers/box" };

const struct thread_ref threads[THREADS] = {
	{ HOST, 1, -1, -1 }, { HOST, 2, -1, -1 }, { CONTAINER, 3, -1, -1 }, { HOST, 10, VM_A, 0 }, { HOST, 11, VM_A, 1 },
	{ HOST, 20, VM_B, 0 }, { VM_A, 5, -1, -1 }, { VM_A, 6, -1, -1 }, { VM_B, 7, -1, -1 },
};
const struct vcpu vcpus[VCPUS] = { { VM_A, 0, 10 }, { VM_A, 1, 11 }, { VM_B, 0, 20 } };

static const char *const names[] = { "alpha", "beta", "gamma" };
static const char *const handlers[] = { "irq/1-a", "softirq/7-SCHED" };
static const char *const contexts[] = { "thread", "timer" };
static const char *const wakers[] = { "host/1", "A/5", "A/0", "B/7", "host/3", "nobody/9", "host/77" };

/* Fills the row with random values from a list, each for 1 .. longest ns. */
static void fill(struct brute_row *r, const int64_t *value, uint32_t n, uint32_t longest)
{
	for (int t = 0; t < SPAN;) {
		int64_t v = value[rnd(n)];
		for (uint32_t k = 1 + rnd(longest); k > 0 && t < SPAN; k--)
			r->v[t++] = v;
	}
}
#define FILL(row, longest, ...) fill(row, (const int64_t[]){ __VA_ARGS__ }, \
	(uint32_t)COUNT(((const int64_t[]){ __VA_ARGS__ })), longest)

void make_model(void)
{
	model.b_traced = rnd(2);
	bool paper = rnd(3) == 0;
	model.folded = true;
	for (int i = 0; i < THREADS; i++) {
		bool guest = threads[i].machine == VM_A || threads[i].machine == VM_B;
		FILL(&model.status[i], 9, THREAD_RUNNING, THREAD_RUNNING, THREAD_PREEMPTED, THREAD_PREEMPTED, THREAD_BLOCKED,
		     guest ? THREAD_VIRT_PREEMPTED : THREAD_PREEMPTED, guest ? THREAD_VIRT_PREEMPTED : THREAD_RUNNING,
		     THREAD_UNKNOWN, NUL);
		FILL(&model.cpu[i], 20, 0, 0, 1, threads[i].machine == VM_A ? 1 : 0, 9, NUL);
		FILL(&model.waker[i], 9, 0, 1, 2, 3, 4, 5, 6, NUL);
		FILL(&model.woken_in[i], 9, 0, 0, 1, NUL);
		FILL(&model.name[i], 40, 0, 1, 2, NUL);
	}
	for (int i = 0; i < VCPUS; i++) {
		FILL(&model.vstatus[i], 7, VCPU_RUNNING, VCPU_RUNNING, VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_VMM, VCPU_IDLE,
		     paper ? VCPU_PREEMPTED : VCPU_HOST_BLOCKED, VCPU_WAKING, VCPU_UNKNOWN, NUL);
		for (int t = 0; t < SPAN; t++)
			model.folded = model.folded && model.vstatus[i].v[t] != VCPU_HOST_BLOCKED;
		if (vcpus[i].vm == VM_A)
			FILL(&model.vcurrent[i], 9, 5, 5, 6, 0, 8, NUL);
		else if (model.b_traced)
			FILL(&model.vcurrent[i], 9, 7, 7, 0, NUL);
		else
			FILL(&model.vcurrent[i], 9, NUL);
		FILL(&model.virq[i], 4, NUL, NUL, NUL, 0, 1);
		FILL(&model.vpcpu[i], 15, 0, 0, 1, 1, NUL, 7);
	}
	for (int i = 0; i < PCPUS; i++) {
		FILL(&model.pcurrent[i], 6, 0, 1, 2, 3, 10, 11, 20, 99, NUL);
		FILL(&model.pirq[i], 4, NUL, NUL, NUL, NUL, 0, 1);
	}
}

/* ---- History of the model */

struct brute_sink {
	struct world *w;
	struct { uint32_t attr; enum history_type type; const struct brute_row *row; const char *const *text; } entry[128];
	int n;
};

static void declare(struct brute_sink *s, const struct brute_row *row, enum history_type type, unsigned set,
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
	s->entry[s->n].type = type;
	s->entry[s->n++].text = text;
	assert_int_not_equal(s->entry[s->n - 1].attr, HISTORY_NONE);
}

static void declare_thread(struct brute_sink *s, int i, const char *root)
{
	struct world *w = s->w;
	int tid = threads[i].tid;
	declare(s, &model.status[i], HISTORY_STATE, w->thread_set, NULL, "%s/Threads/%d/Status", root, tid);
	declare(s, &model.cpu[i], HISTORY_INT, 0, NULL, "%s/Threads/%d/CPU", root, tid);
	declare(s, &model.waker[i], HISTORY_REF, 0, wakers, "%s/Threads/%d/Woken By", root, tid);
	declare(s, &model.woken_in[i], HISTORY_STRING, 0, contexts, "%s/Threads/%d/Woken In", root, tid);
	declare(s, &model.name[i], HISTORY_STRING, 0, names, "%s/Threads/%d/Name", root, tid);
}

void make_history(struct world *w)
{
	static const struct brute_row zero;
	static const char *const vm_of[] = { "A/0" }, *const vm_of1[] = { "A/1" }, *const vm_of2[] = { "B/0" };
	struct error err = ERROR_INIT;
	struct brute_sink s = { .w = w };
	world_open(w);
	for (int i = 0; i < THREADS; i++) {
		declare_thread(&s, i, machine_root[threads[i].machine]);
		if (threads[i].machine == CONTAINER)
			declare_thread(&s, i, "/Host");
	}
	for (int i = 0; i < VCPUS; i++) {
		const char *root = machine_root[vcpus[i].vm];
		int n = vcpus[i].number;
		declare(&s, &model.vstatus[i], HISTORY_STATE, w->vcpu_set, NULL, "%s/CPUs/CPU%d/Status", root, n);
		declare(&s, &model.vcurrent[i], HISTORY_INT, 0, NULL, "%s/CPUs/CPU%d/Current Thread", root, n);
		declare(&s, &model.virq[i], HISTORY_STRING, 0, handlers, "%s/CPUs/CPU%d/Interrupt", root, n);
		declare(&s, &model.vpcpu[i], HISTORY_INT, 0, NULL, "%s/CPUs/CPU%d/pCPU", root, n);
		declare(&s, &zero, HISTORY_REF, 0, i == 0 ? vm_of : i == 1 ? vm_of1 : vm_of2, "/Host/Threads/%d/VM",
		        vcpus[i].vcpu_tid);
	}
	for (int i = 0; i < PCPUS; i++) {
		declare(&s, &model.pcurrent[i], HISTORY_INT, 0, NULL, "/Host/CPUs/CPU%d/Current Thread", i);
		declare(&s, &model.pirq[i], HISTORY_STRING, 0, handlers, "/Host/CPUs/CPU%d/Interrupt", i);
	}
	for (int t = 0; t < SPAN; t++)
		for (int k = 0; k < s.n; k++) {
			int64_t v = s.entry[k].row->v[t];
			if (t && v == s.entry[k].row->v[t - 1])
				continue;
			const char *text = s.entry[k].text && v != NUL ? s.entry[k].text[v] : NULL;
			int r = !text ? history_set(w->b, t, s.entry[k].attr, v, &err)
			      : s.entry[k].type == HISTORY_REF ? set_ref(w->b, t, s.entry[k].attr, text, &err)
			      : history_set_string(w->b, t, s.entry[k].attr, text, &err);
			assert_int_equal(r, 0);
		}
	world_close(w, 0, SPAN - 1);
}

/* ---- Brute-force resolver */

static struct brute_answer blank(int kind)
{
	return (struct brute_answer){ kind, -1, -1, -1, "" };
}

int thread_index(int machine, int tid)
{
	for (int i = 0; i < THREADS; i++)
		if (threads[i].tid == tid && (threads[i].machine == machine ||
		                              (machine == HOST && threads[i].machine == CONTAINER)))
			return i;
	return -1;
}

int vcpu_index(int vm, int64_t number)
{
	for (int i = 0; i < VCPUS; i++)
		if (vcpus[i].vm == vm && vcpus[i].number == number)
			return i;
	return -1;
}

/* A TID of the host belongs to the container while the container's thread is alive. */
static struct brute_answer named(struct brute_answer a, int machine, int tid, int t)
{
	int i = thread_index(machine, tid);
	a.machine = i >= 0 && model.status[i].v[t] != NUL ? threads[i].machine : machine;
	a.tid = tid;
	a.name = tid == 0 ? "swapper" : i < 0 || model.name[i].v[t] == NUL ? "" : names[model.name[i].v[t]];
	return a;
}

/* Thread i sleeps as long as the attribute keeps its value: returns the waker at the end of the sleep. */
static struct brute_answer woken(int i, const struct brute_row *until, int t)
{
	struct brute_answer a = blank(FLOW_WAITING);
	int e = t;
	while (e < SPAN && until->v[e] == until->v[t])
		e++;
	if (e == SPAN || model.waker[i].v[e] == NUL || model.status[i].v[e] == NUL || model.status[i].v[e] == THREAD_UNKNOWN)
		return a;
	const char *text = wakers[model.waker[i].v[e]];
	int machine = -1;
	for (int k = 0; k < MACHINES; k++)
		if (strncmp(text, machine_name[k], strlen(machine_name[k])) == 0 && text[strlen(machine_name[k])] == '/')
			machine = k;
	const int64_t in = model.woken_in[i].v[e];
	const int tid = atoi(strchr(text, '/') + 1);
	if (machine < 0 || (in == NUL && tid != 0))
		return a;
	if (in == NUL || strcmp(contexts[in], "thread") == 0)
		return named(a, machine, tid, e);
	a.machine = machine;
	a.name = contexts[in];
	return a;
}

/* Returns the handler that has a pCPU (kind UNKNOWN: none), and the pCPU if known. */
static struct brute_answer outer_irq(int64_t p, int t)
{
	struct brute_answer a = blank(FLOW_UNKNOWN);
	if (p < 0 || p >= PCPUS)
		return a;
	a.pcpu = (int)p;
	if (model.pirq[p].v[t] != NUL) {
		a.kind = FLOW_IRQ;
		a.machine = HOST;
		a.name = handlers[model.pirq[p].v[t]];
	}
	return a;
}

static struct brute_answer on_pcpu(int64_t p, int t, int waiting)
{
	struct brute_answer a = outer_irq(p, t);
	if (a.pcpu < 0 || a.kind == FLOW_IRQ)
		return a;
	int64_t tid = model.pcurrent[p].v[t];
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
	if (model.vcurrent[v].v[t] != NUL)
		return named(a, threads[i].vm, (int)model.vcurrent[v].v[t], t);
	a.machine = threads[i].vm;
	a.name = threads[i].vcpu ? "vCPU1" : "vCPU0";
	return a;
}

struct brute_answer vcpu_out(int v, int t)
{
	int h = thread_index(HOST, vcpus[v].vcpu_tid);
	if (model.folded && model.status[h].v[t] == THREAD_BLOCKED)
		return woken(h, &model.status[h], t);
	if (model.vstatus[v].v[t] == VCPU_HOST_BLOCKED)
		return woken(h, &model.vstatus[v], t);
	return on_pcpu(model.vpcpu[v].v[t], t, h);
}

static struct brute_answer inner_irq(int v, struct brute_answer a, int t)
{
	if (a.kind != FLOW_IRQ && model.virq[v].v[t] != NUL) {
		a.kind = FLOW_IRQ;
		a.machine = vcpus[v].vm;
		a.name = handlers[model.virq[v].v[t]];
	}
	return a;
}

static struct brute_answer vmm(int v, int64_t tid, int t)
{
	struct brute_answer a = outer_irq(model.vpcpu[v].v[t], t);
	if (a.kind == FLOW_IRQ)
		return a;
	a.kind = FLOW_HYPERVISOR;
	if (tid != NUL)
		return named(a, vcpus[v].vm, (int)tid, t);
	a.machine = vcpus[v].vm;
	a.name = vcpus[v].number ? "vCPU1" : "vCPU0";
	return a;
}

static bool lost_its_cpu(int vcpu_tid, int t)
{
	int64_t status = model.status[thread_index(HOST, vcpu_tid)].v[t];
	return status == THREAD_PREEMPTED || status == THREAD_VIRT_PREEMPTED;
}

/* Returns the actor that has the vCPU for which guest thread `waiting` waits. */
static struct brute_answer on_vcpu(int v, int t, int waiting)
{
	struct brute_answer a;
	switch (model.vstatus[v].v[t]) {
	case VCPU_UNKNOWN:
	case NUL:
		return blank(FLOW_UNKNOWN);
	case VCPU_IDLE:
		return lost_its_cpu(vcpus[v].vcpu_tid, t) ? vcpu_out(v, t) : blank(FLOW_IDLE_CPU);
	case VCPU_VMM:
		return vmm(v, model.vcurrent[v].v[t], t);
	case VCPU_RUNNING:
		a = inner_irq(v, outer_irq(model.vpcpu[v].v[t], t), t);
		if (a.kind == FLOW_IRQ || model.vcurrent[v].v[t] == NUL)
			return a;
		if (model.vcurrent[v].v[t] == 0) {
			a.kind = FLOW_IDLE_CPU;
			return a;
		}
		if (thread_index(vcpus[v].vm, (int)model.vcurrent[v].v[t]) == waiting)
			return a;
		a.kind = FLOW_PREEMPTING;
		return named(a, vcpus[v].vm, (int)model.vcurrent[v].v[t], t);
	default:
		return vcpu_out(v, t);
	}
}

static struct brute_answer of_thread_plain(int i, int t)
{
	int64_t status = model.status[i].v[t], cpu = model.cpu[i].v[t];
	bool guest = threads[i].machine == VM_A || threads[i].machine == VM_B;
	int v = guest ? vcpu_index(threads[i].machine, cpu) : -1;
	struct brute_answer a = blank(FLOW_UNKNOWN);
	if (status == NUL)
		a.name = "not alive";
	if (status == NUL || status == THREAD_UNKNOWN)
		return a;
	if (status == THREAD_BLOCKED)
		return woken(i, &model.status[i], t);
	if (status == THREAD_RUNNING) {
		if (guest && v >= 0)
			a = inner_irq(v, outer_irq(model.vpcpu[v].v[t], t), t);
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
	switch (model.vstatus[v].v[t]) {
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

/* A thread that keeps itself off the CPU is a contradiction: unknown. */
struct brute_answer of_thread(int i, int t)
{
	struct brute_answer a = of_thread_plain(i, t), lost = blank(FLOW_UNKNOWN);
	lost.pcpu = a.pcpu;
	return a.kind == FLOW_PREEMPTING && a.machine == threads[i].machine && a.tid == threads[i].tid ? lost : a;
}
