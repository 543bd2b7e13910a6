/* Benchmark of the viewer on a large synthetic history.
 *
 * Usage: bench_ui [-n CHANGES] [-t THREADS] [-f FRAMES] [-o FILE] Eight pCPUs, eight VMs of four vCPUs; the guests'
 * threads alternate, with VM exits, and a CPU hog on each pCPU preempts. Writes the history to FILE (removed unless -o
 * was given), then runs the viewer's own benchmark on it. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/states.h"
#include "ui/ui.h"

#define PCPUS 8
#define VMS 8
#define VCPUS 4                 /* per VM */
#define BEGIN INT64_C(1795176184000000000)
#define HOST_TID(v) (2000 + (unsigned)(v))
#define HOG_TID(p) (100 + (unsigned)(p))

struct thread { uint32_t status, name; };
struct vcpu { uint32_t status, current, first, threads, host; bool on; uint32_t thread; };
struct pcpu { uint32_t current, owner, hog; int64_t vcpu; };

struct world {
	struct history_builder *b;
	struct thread *thread;
	struct vcpu vcpu[VMS * VCPUS];
	struct pcpu pcpu[PCPUS];
	uint32_t threads;
	uint64_t seed, changes;
	int64_t t;
};

static struct error err = ERROR_INIT;

static _Noreturn void die(void)
{
	fprintf(stderr, "bench_ui: %s\n", err.text);
	exit(1);
}

static uint64_t random_below(struct world *w, uint64_t n)
{
	uint64_t z = w->seed += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % n;
}

static uint32_t declare_attribute(struct world *w, enum history_type type, unsigned set, const char *fmt, unsigned a,
                                  unsigned b) __attribute__((format(printf, 4, 0)));

static uint32_t declare_attribute(struct world *w, enum history_type type, unsigned set, const char *fmt, unsigned a,
                                  unsigned b)
{
	char path[160];
	snprintf(path, sizeof path, fmt, a, b);
	uint32_t attr = history_attribute(w->b, path, type, set, &err);
	if (attr == HISTORY_NONE)
		die();
	return attr;
}

static void put_value(struct world *w, uint32_t attr, int64_t value)
{
	w->changes++;
	if (history_set(w->b, w->t, attr, value, &err) < 0)
		die();
}

static void put_text(struct world *w, uint32_t attr, const char *fmt, unsigned a, unsigned b)
	__attribute__((format(printf, 3, 0)));

static void put_text(struct world *w, uint32_t attr, const char *fmt, unsigned a, unsigned b)
{
	char text[64];
	snprintf(text, sizeof text, fmt, a, b);
	if (history_set_string(w->b, w->t, attr, text, &err) < 0)
		die();
}

static void declare_host(struct world *w, unsigned ts)
{
	static const char *const owner[VMS + 2] = { "idle", "host", "vm0", "vm1", "vm2", "vm3", "vm4", "vm5", "vm6", "vm7" };
	unsigned os = history_state_set(w->b, "owner", owner, VMS + 2);
	for (unsigned p = 0; p < PCPUS; p++) {
		w->pcpu[p] = (struct pcpu){
			declare_attribute(w, HISTORY_INT, 0, "/Host/CPUs/CPU%u/Current Thread", p, 0),
			declare_attribute(w, HISTORY_STATE, os, "/Host/CPUs/CPU%u/Owner", p, 0),
			declare_attribute(w, HISTORY_STATE, ts, "/Host/Threads/%u/Status", HOG_TID(p), 0), -1 };
		put_text(w, declare_attribute(w, HISTORY_STRING, 0, "/Host/Threads/%u/Name", HOG_TID(p), 0), "burnP%u", p, 0);
	}
}

static void declare_vcpu(struct world *w, unsigned v, unsigned vs, unsigned ts)
{
	unsigned m = v / VCPUS, c = v % VCPUS, host = HOST_TID(v);
	struct vcpu *vcpu = &w->vcpu[v];
	*vcpu = (struct vcpu){
		declare_attribute(w, HISTORY_STATE, vs, "/Virtual Machines/vm%u/CPUs/CPU%u/Status", m, c),
		declare_attribute(w, HISTORY_INT, 0, "/Virtual Machines/vm%u/CPUs/CPU%u/Current Thread", m, c),
		.host = declare_attribute(w, HISTORY_STATE, ts, "/Host/Threads/%u/Status", host, 0) };
	char name[16];
	snprintf(name, sizeof name, "vm%u", m);
	put_value(w, declare_attribute(w, HISTORY_REF, 0, "/Host/Threads/%u/VM", host, 0),
	          history_ref(history_text(w->b, name, &err), c));
	put_text(w, declare_attribute(w, HISTORY_STRING, 0, "/Host/Threads/%u/Name", host, 0), "CPU %u/KVM", c, 0);
	put_value(w, declare_attribute(w, HISTORY_INT, 0, "/Virtual Machines/vm%u/CPUs/CPU%u/Host Thread", m, c), host);
	put_value(w, declare_attribute(w, HISTORY_INT, 0, "/Virtual Machines/vm%u/CPUs/CPU%u/pCPU", m, c), v % PCPUS);
	vcpu->first = vcpu->thread = (uint32_t)((uint64_t)w->threads * v / (VMS * VCPUS));
	vcpu->threads = (uint32_t)((uint64_t)w->threads * (v + 1) / (VMS * VCPUS)) - vcpu->first;
	for (uint32_t i = vcpu->first; i < vcpu->first + vcpu->threads; i++) {
		w->thread[i].status = declare_attribute(w, HISTORY_STATE, ts, "/Virtual Machines/vm%u/Threads/%u/Status", m, i + 1);
		put_value(w, w->thread[i].status, THREAD_BLOCKED);
		put_text(w, declare_attribute(w, HISTORY_STRING, 0, "/Virtual Machines/vm%u/Threads/%u/Name", m, i + 1),
		         "worker-%u", i, 0);
		put_value(w, declare_attribute(w, HISTORY_INT, 0, "/Virtual Machines/vm%u/Threads/%u/CPU", m, i + 1), c);
	}
	put_value(w, vcpu->status, VCPU_IDLE);
}

/* Switches a pCPU to a random vCPU of it, or, once in eight times, to the hog. */
static void host_switch(struct world *w, unsigned p)
{
	struct pcpu *pcpu = &w->pcpu[p];
	if (pcpu->vcpu >= 0) {
		struct vcpu *old = &w->vcpu[pcpu->vcpu];
		put_value(w, old->status, VCPU_PREEMPTED);
		put_value(w, old->host, THREAD_PREEMPTED);
		put_value(w, w->thread[old->thread].status, THREAD_VIRT_PREEMPTED);
	}
	bool hog = random_below(w, 8) == 0;
	put_value(w, pcpu->hog, hog ? THREAD_RUNNING : THREAD_PREEMPTED);
	pcpu->vcpu = hog ? -1 : (int64_t)(p + PCPUS * random_below(w, VMS * VCPUS / PCPUS));
	put_value(w, pcpu->current, hog ? HOG_TID(p) : HOST_TID(pcpu->vcpu));
	put_value(w, pcpu->owner, hog ? 1 : 2 + pcpu->vcpu / VCPUS);
	if (hog)
		return;
	struct vcpu *new = &w->vcpu[pcpu->vcpu];
	put_value(w, new->host, THREAD_RUNNING);
	put_value(w, new->status, VCPU_RUNNING);
	put_value(w, new->current, new->thread + 1);
	put_value(w, w->thread[new->thread].status, THREAD_RUNNING);
}

static void guest_switch(struct world *w, struct vcpu *v)
{
	uint32_t next = v->first + (uint32_t)random_below(w, v->threads);
	if (next == v->thread)
		return;
	put_value(w, w->thread[v->thread].status, random_below(w, 3) ? THREAD_BLOCKED : THREAD_PREEMPTED);
	v->thread = next;
	put_value(w, v->current, next + 1);
	put_value(w, w->thread[next].status, THREAD_RUNNING);
}

static void vm_exit(struct world *w, struct vcpu *v)
{
	put_value(w, v->status, VCPU_VMM);
	put_value(w, w->thread[v->thread].status, THREAD_VIRT_PREEMPTED);
	w->t += 500 + (int64_t)random_below(w, 2000);
	put_value(w, v->status, VCPU_RUNNING);
	put_value(w, w->thread[v->thread].status, THREAD_RUNNING);
}

static void write_world(const char *path, uint32_t threads, uint64_t changes)
{
	struct world w = { .seed = 1, .t = BEGIN, .threads = threads, .thread = mem_new(threads, sizeof(struct thread)) };
	w.b = history_create(path, NULL, &err);
	if (!w.b)
		die();
	unsigned vs = history_state_set(w.b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	unsigned ts = history_state_set(w.b, "thread", thread_state_name, THREAD_STATE_COUNT);
	declare_host(&w, ts);
	for (unsigned v = 0; v < VMS * VCPUS; v++)
		declare_vcpu(&w, v, vs, ts);
	while (w.changes < changes) {
		unsigned p = (unsigned)random_below(&w, PCPUS), choice = (unsigned)random_below(&w, 16);
		w.t += 1000 + (int64_t)random_below(&w, 20000);
		if (choice == 0 || w.pcpu[p].vcpu < 0)
			host_switch(&w, p);
		else if (choice < 9)
			guest_switch(&w, &w.vcpu[w.pcpu[p].vcpu]);
		else
			vm_exit(&w, &w.vcpu[w.pcpu[p].vcpu]);
	}
	if (history_finish(w.b, BEGIN, w.t + 1000000, &err) < 0)
		die();
	free(w.thread);
}

int main(int argc, char **argv)
{
	uint64_t changes = 2000000;
	uint32_t threads = 5000;
	char scratch[] = "/tmp/bench-ui-XXXXXX";
	const char *path = NULL;
	struct ui_options options = { .width = 120, .height = 40, .theme = "ssh", .color = "16", .bench = 300,
		.config = "/dev/null" };
	setlocale(LC_ALL, "C.UTF-8");
	for (int opt; (opt = getopt(argc, argv, "n:t:f:o:")) != -1;) {
		if (opt == 'n')
			changes = strtoull(optarg, NULL, 10);
		else if (opt == 't')
			threads = (uint32_t)strtoul(optarg, NULL, 10);
		else if (opt == 'f')
			options.bench = (unsigned)strtoul(optarg, NULL, 10);
		else if (opt == 'o')
			path = optarg;
		else
			return 2;
	}
	if (threads < VMS * VCPUS)
		return fputs("bench_ui: at least 32 threads\n", stderr), 2;
	if (!path) {
		int fd = mkstemp(scratch);
		if (fd < 0)
			return 4;
		close(fd);
	}
	write_world(path ? path : scratch, threads, changes);
	struct history *h = history_open(path ? path : scratch, &err);
	if (!h || ui_run(h, &options, &err) < 0)
		die();
	history_close(h);
	if (!path)
		unlink(scratch);
	return 0;
}
