#include "ui_world.h"

#include "base/mem.h"
#include "base/states.h"
#include "history/history.h"
#include "refs.h"
#include "test.h"

struct world_change {
	int64_t t;
	uint32_t attr, order;
	enum history_type type;
	int64_t value;
	char *text;
};

struct world {
	struct history_builder *b;
	unsigned vcpu_set, thread_set, owner_set;
	struct world_change *change;
	size_t len, cap;
	uint64_t seed;
};

enum owner { OWNER_IDLE, OWNER_HOST, OWNER_DEBIAN, OWNER_UBUNTU };
static const char *const owners[] = { "idle", "host", "Debian", "Ubuntu" };

static void add_change(struct world *w, int64_t us, enum history_type type, unsigned set, int64_t value, const char *text,
                 const char *fmt, ...) __attribute__((format(printf, 7, 8)));

/* Adds a change of an attribute, ms1000 microseconds after the start. */
static void add_change(struct world *w, int64_t us, enum history_type type, unsigned set, int64_t value, const char *text,
                 const char *fmt, ...)
{
	char path[256];
	struct error err = ERROR_INIT;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof path, fmt, ap);
	va_end(ap);
	uint32_t attr = history_attribute(w->b, path, type, set, &err);
	if (attr == HISTORY_NONE)
		fail_msg("%s", err.text);
	uint32_t order = (uint32_t)w->len;
	struct world_change *change = ARRAY_PUSH(w->change, w->len, w->cap);
	*change = (struct world_change){ UI_WORLD_BEGIN + us * 1000, attr, order, type, value, mem_dup(text) };
}

static void thread_state(struct world *w, int64_t us, const char *root, int tid, enum thread_state s)
{
	add_change(w, us, HISTORY_STATE, w->thread_set, s, NULL, "%s/Threads/%d/Status", root, tid);
}

static void add_thread(struct world *w, const char *root, int tid, int cpu, const char *name)
{
	add_change(w, 0, HISTORY_STRING, 0, 0, name, "%s/Threads/%d/Name", root, tid);
	add_change(w, 0, HISTORY_INT, 0, cpu, NULL, "%s/Threads/%d/CPU", root, tid);
	add_change(w, 0, HISTORY_INT, 0, tid, NULL, "%s/Threads/%d/PID", root, tid);
	thread_state(w, 0, root, tid, THREAD_BLOCKED);
}

/* A vCPU, and the objects that change with its state. */
struct vcpu {
	const char *root, *vm;
	int number, pcpu, host_tid, tid;  /* tid: current thread of the guest; 0: idle */
	enum owner owner;
};

static void vcpu_state(struct world *w, int64_t us, struct vcpu *v, enum vcpu_state s, int other)
{
	bool on = s == VCPU_RUNNING || s == VCPU_VMM || (s == VCPU_IDLE && other < 0);
	add_change(w, us, HISTORY_STATE, w->vcpu_set, s, NULL, "%s/CPUs/CPU%d/Status", v->root, v->number);
	add_change(w, us, HISTORY_INT, 0, v->tid, NULL, "%s/CPUs/CPU%d/Current Thread", v->root, v->number);
	if (v->tid)
		thread_state(w, us, v->root, v->tid, s == VCPU_RUNNING ? THREAD_RUNNING : THREAD_VIRT_PREEMPTED);
	thread_state(w, us, "/Host", v->host_tid, on ? THREAD_RUNNING :
	             s == VCPU_PREEMPTED ? THREAD_PREEMPTED : THREAD_BLOCKED);
	add_change(w, us, HISTORY_INT, 0, on ? v->host_tid : other, NULL, "/Host/CPUs/CPU%d/Current Thread", v->pcpu);
	add_change(w, us, HISTORY_STATE, w->owner_set, on ? (int64_t)v->owner : other ? OWNER_HOST : OWNER_IDLE, NULL,
	     "/Host/CPUs/CPU%d/Owner", v->pcpu);
	if (other > 0)
		thread_state(w, us, "/Host", other, THREAD_RUNNING);
}

static void add_vcpu(struct world *w, struct vcpu *v, const char *host_name)
{
	char name[32];
	add_thread(w, "/Host", v->host_tid, v->pcpu, host_name);
	add_change(w, 0, HISTORY_INT, 0, v->host_tid, NULL, "%s/CPUs/CPU%d/Host Thread", v->root, v->number);
	add_change(w, 0, HISTORY_INT, 0, v->pcpu, NULL, "%s/CPUs/CPU%d/pCPU", v->root, v->number);
	snprintf(name, sizeof name, "%s/%d", v->vm, v->number);
	add_change(w, 0, HISTORY_REF, 0, 0, name, "/Host/Threads/%d/VM", v->host_tid);
}

/* Switches the guest to the thread `tid` (0: idle). */
static void guest_switch(struct world *w, int64_t us, struct vcpu *v, int tid, enum thread_state old)
{
	if (v->tid)
		thread_state(w, us, v->root, v->tid, old);
	v->tid = tid;
	vcpu_state(w, us, v, tid ? VCPU_RUNNING : VCPU_IDLE, tid ? -1 : 0);
}

static void vm_exit(struct world *w, int64_t us, const struct vcpu *v, const char *reason)
{
	add_change(w, us, HISTORY_STRING, 0, 0, reason, "%s/CPUs/CPU%d/Exit", v->root, v->number);
}

/* critical_task competes with burnP6 for the pCPU: it runs 4 ms with a VM exit, waits 5.21 ms, runs, wakes sshd, which
 * waited for a lock, and sleeps. */
static void write_contended_vcpu(struct world *w, struct vcpu *v)
{
	vcpu_state(w, 0, v, VCPU_IDLE, 0);
	for (int64_t us = 3000; us + 13000 < UI_WORLD_SPAN / 1000; us += 15000) {
		guest_switch(w, us, v, 3525, THREAD_BLOCKED);
		thread_state(w, us + 1900, "/Host", 2101, THREAD_PREEMPTED);
		vm_exit(w, us + 2000, v, "msr");
		vcpu_state(w, us + 2000, v, VCPU_VMM, -1);
		vcpu_state(w, us + 2060, v, VCPU_RUNNING, -1);
		vm_exit(w, us + 4000, v, "interrupt");
		vcpu_state(w, us + 4000, v, VCPU_PREEMPTED, 2101);
		thread_state(w, us + 9210, "/Host", 2101, THREAD_BLOCKED);
		vcpu_state(w, us + 9210, v, VCPU_VMM, -1);
		vcpu_state(w, us + 9230, v, VCPU_RUNNING, -1);
		add_change(w, us, HISTORY_STRING, 0, 0, "futex", "%s/Threads/880/Lock", v->root);
		add_change(w, us + 12000, HISTORY_STRING, 0, HISTORY_NULL, NULL, "%s/Threads/880/Lock", v->root);
		add_change(w, us + 12000, HISTORY_REF, 0, 0, "Debian/880", "%s/Threads/3525/Woken By", v->root);
		add_change(w, us + 12000, HISTORY_STRING, 0, 0, "thread", "%s/Threads/3525/Woken In", v->root);
		add_change(w, us + 11900, HISTORY_REF, 0, 0, "Debian/3525", "%s/Threads/880/Woken By", v->root);
		add_change(w, us + 12000, HISTORY_STRING, 0, 0, "thread", "%s/Threads/880/Woken In", v->root);
		guest_switch(w, us + 12000, v, 880, THREAD_BLOCKED);
		add_change(w, us + 12300, HISTORY_REF, 0, HISTORY_NULL, NULL, "%s/Threads/880/Woken By", v->root);
		guest_switch(w, us + 12300, v, 0, THREAD_BLOCKED);
	}
}

/* A vCPU alone on its pCPU: works and sleeps, with VM exits. */
static void write_uncontended_vcpu(struct world *w, struct vcpu *v, int tid, int64_t work, int64_t sleep_us)
{
	vcpu_state(w, 0, v, VCPU_IDLE, 0);
	for (int64_t us = 500; us + work + sleep_us < UI_WORLD_SPAN / 1000; us += work + sleep_us) {
		guest_switch(w, us, v, tid, THREAD_BLOCKED);
		vcpu_state(w, us + work / 2, v, VCPU_VMM, -1);
		vcpu_state(w, us + work / 2 + 30, v, VCPU_RUNNING, -1);
		guest_switch(w, us + work, v, 0, THREAD_BLOCKED);
	}
}

/* Requests that critical_task serves: two complete requests, one that the end of the trace cuts, and one that started
 * before the trace and is first recorded when it yields. */
static void write_requests(struct world *w, const char *root)
{
	static const char *const states[] = { "running", "yielded", "unknown" };
	static const struct { const char *id; int64_t start, end, first; } r[] = { { "r1", 3000, 6500, 0 },
		{ "r2", 18000, 29000, 0 }, { "r3", 78000, 0, 0 }, { "r4", 1000, 40000, 1 } };
	unsigned set = history_state_set(w->b, "request", states, COUNT(states));
	for (size_t i = 0; i < COUNT(r); i++) {
		add_change(w, r[i].start, HISTORY_STATE, set, r[i].first, NULL, "/Requests/%s/%s/State", root, r[i].id);
		add_change(w, r[i].start, HISTORY_INT, 0, 3525, NULL, "/Requests/%s/%s/Thread", root, r[i].id);
		if (r[i].end) {
			add_change(w, r[i].end, HISTORY_STATE, set, HISTORY_NULL, NULL, "/Requests/%s/%s/State", root, r[i].id);
			add_change(w, r[i].end, HISTORY_INT, 0, HISTORY_NULL, NULL, "/Requests/%s/%s/Thread", root, r[i].id);
		}
	}
}

static int64_t random_below(struct world *w, int64_t n)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((w->seed >> 20) % (uint64_t)n);
}

static void add_competing_threads(struct world *w, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		char name[32];
		int tid = 10000 + (int)i;
		snprintf(name, sizeof name, "worker-%u", i);
		add_thread(w, "/Virtual Machines/Ubuntu", tid, 0, name);
		for (int k = 0; k < 8; k++) {
			int64_t us = k * 9000 + random_below(w, 4000);
			thread_state(w, us, "/Virtual Machines/Ubuntu", tid, THREAD_PREEMPTED);
			thread_state(w, us + 100 + random_below(w, 3000), "/Virtual Machines/Ubuntu", tid, THREAD_RUNNING);
			thread_state(w, us + 4000 + random_below(w, 900), "/Virtual Machines/Ubuntu", tid, THREAD_BLOCKED);
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct world_change *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void write_changes(struct world *w)
{
	struct error err = ERROR_INIT;
	qsort(w->change, w->len, sizeof *w->change, by_time);
	for (size_t i = 0; i < w->len; i++) {
		const struct world_change *c = &w->change[i];
		if ((c->type == HISTORY_REF && c->text ? set_ref(w->b, c->t, c->attr, c->text, &err)
		     : c->text ? history_set_string(w->b, c->t, c->attr, c->text, &err)
		             : history_set(w->b, c->t, c->attr, c->value, &err)) < 0)
			fail_msg("%s", err.text);
		free(c->text);
	}
	free(w->change);
	if (history_finish(w->b, UI_WORLD_BEGIN, UI_WORLD_BEGIN + UI_WORLD_SPAN - 1, &err) < 0)
		fail_msg("%s", err.text);
}

void ui_world_write(const char *path, unsigned threads)
{
	struct error err = ERROR_INIT;
	struct world w = { .seed = 1 };
	const char *debian = "/Virtual Machines/Debian", *ubuntu = "/Virtual Machines/Ubuntu";
	struct vcpu d0 = { debian, "Debian", 0, 3, 2099, 0, OWNER_DEBIAN };
	struct vcpu d1 = { debian, "Debian", 1, 1, 2100, 0, OWNER_DEBIAN };
	struct vcpu u0 = { ubuntu, "Ubuntu", 0, 2, 2200, 0, OWNER_UBUNTU };
	if (!(w.b = history_create(path, NULL, &err)))
		fail_msg("%s", err.text);
	w.vcpu_set = history_state_set(w.b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	w.thread_set = history_state_set(w.b, "thread", thread_state_name, THREAD_STATE_COUNT);
	w.owner_set = history_state_set(w.b, "owner", owners, COUNT(owners));
	add_change(&w, 0, HISTORY_STATE, w.owner_set, OWNER_IDLE, NULL, "/Host/CPUs/CPU0/Owner");
	add_change(&w, 0, HISTORY_INT, 0, 0, NULL, "/Host/CPUs/CPU0/Current Thread");
	add_thread(&w, "/Host", 2101, 3, "burnP6");
	add_thread(&w, "/Host", 1, 0, "systemd");
	add_thread(&w, debian, 3525, 0, "critical_task");
	add_thread(&w, debian, 880, 0, "sshd");
	add_thread(&w, debian, 3600, 1, "evil\033[2J\xe2\x80\xae" "gnp.exe");
	add_thread(&w, debian, 3601, 1, "\xe4\xb8\xad\xe6\x96\x87\xf0\x9f\x90\xa7 caf\xc3\xa9");
	add_thread(&w, ubuntu, 700, 0, "nginx");
	add_thread(&w, "/Containers/web", 4000, 0, "node");
	for (int64_t us = 10000; us < 60000; us += 20000) {
		thread_state(&w, us, "/Containers/web", 4000, THREAD_RUNNING);
		thread_state(&w, us + 6000, "/Containers/web", 4000, THREAD_PREEMPTED);
		thread_state(&w, us + 9000, "/Containers/web", 4000, THREAD_BLOCKED);
	}
	add_vcpu(&w, &d0, "CPU 0/KVM");
	add_vcpu(&w, &d1, "CPU 1/KVM");
	add_vcpu(&w, &u0, "CPU 0/KVM");
	write_contended_vcpu(&w, &d0);
	write_uncontended_vcpu(&w, &d1, 3600, 2500, 4500);
	write_uncontended_vcpu(&w, &u0, 700, 5000, 1000);
	write_requests(&w, "Debian");
	add_competing_threads(&w, threads);
	write_changes(&w);
}
