#include "index/cut_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/schema.h"
#include "base/states.h"

#define SLEEPS 64     /* as many as query/irq_source.c looks at, and handlers */
#define PATH_MOST 4096
#define BIT(n) (UINT64_C(1) << (n))

struct finder {
	const struct history *h;
	struct moments *m;
	int64_t from, to;
	struct map seen;     /* vCPUs and moments, for keep_guest() */
	struct error *err;
};

static void keep(struct finder *f, uint32_t node, int64_t t)
{
	const bool outside = t < f->from || t > f->to;
	if (node != HISTORY_NONE && outside && t >= history_first(f->h) && t <= history_last(f->h))
		*ARRAY_PUSH(f->m->at, f->m->len, f->m->cap) = (struct kept_moment){ node, t };
}

/* The attribute of the node at t; null, and without an end, where it has no such attribute. */
static int look(struct finder *f, uint32_t node, const char *attribute, int64_t t, struct interval *iv)
{
	uint32_t attr = history_child_named(f->h, node, attribute);
	*iv = (struct interval){ INT64_MIN, INT64_MAX, HISTORY_NULL };
	if (attr == HISTORY_NONE || history_type(f->h, attr) < 0)
		return 0;
	return history_stab(f->h, attr, t, iv, f->err);
}

static bool is_state(const struct finder *f, uint32_t node, const char *attribute, int64_t value, const char *state)
{
	uint32_t attr = history_child_named(f->h, node, attribute);
	if (attr == HISTORY_NONE || value < 0 || value >= HISTORY_STATES)
		return false;
	const char *name = history_state_name(f->h, attr, (unsigned)value);
	return name && strcmp(name, state) == 0;
}

static uint32_t thread_node(const struct finder *f, const char *folder, const char *machine, int64_t tid)
{
	char path[PATH_MOST], number[24];
	snprintf(number, sizeof number, "%" PRId64, tid);
	if (machine)
		history_path(path, sizeof path, folder, machine, SCHEMA_THREADS, number, NULL);
	else
		history_path(path, sizeof path, folder, SCHEMA_THREADS, number, NULL);
	return history_find(f->h, path);
}

static uint32_t thread_of(const struct finder *f, const char *machine, int64_t tid)
{
	return strcmp(machine, "host") == 0 ? thread_node(f, SCHEMA_HOST, NULL, tid) : thread_node(f, SCHEMA_VMS, machine, tid);
}

/* ---- Who ended a sleep */

static int keep_waker(struct finder *f, uint32_t node, int64_t t);

static uint32_t host_of(struct finder *f, uint32_t cpu, int64_t t)
{
	struct interval parent, tid;
	const uint32_t vm = history_parent(f->h, history_parent(f->h, cpu));
	if (look(f, vm, machine_schema[MACHINE_PARENT].name, t, &parent) ||
	    look(f, cpu, cpu_schema[CPU_HOST_THREAD].name, t, &tid) || tid.value <= 0)
		return HISTORY_NONE;
	const char *machine = parent.value == HISTORY_NULL ? "host" : history_string(f->h, parent.value);
	return machine ? thread_of(f, machine, tid.value) : HISTORY_NONE;
}

/* The latest interval of the thread before t in one of these states: 1, 0, -1. */
static int last_in(struct finder *f, uint32_t thread, uint64_t states, int64_t t, struct interval *iv)
{
	const uint32_t status = thread == HISTORY_NONE ? HISTORY_NONE
	                      : history_child_named(f->h, thread, thread_schema[THREAD_STATUS].name);
	uint64_t mask = 0;
	for (int i = 0; status != HISTORY_NONE && i < THREAD_STATE_COUNT; i++)
		for (int v = 0; states >> i & 1 && v < HISTORY_STATES - 1; v++)
			if (is_state(f, thread, thread_schema[THREAD_STATUS].name, v, thread_state_name[i]))
				mask |= UINT64_C(1) << v;
	return status == HISTORY_NONE ? 0 : history_prev(f->h, status, t, mask, iv, f->err);
}

/* One sleep of the vCPU's thread that ends at `end`: who ended it, and which handler the guest entered first. */
static int keep_sleep(struct finder *f, uint32_t cpu, uint32_t host, int64_t end)
{
	struct interval handler;
	for (int64_t t = end; t <= end + 1; t++) {
		keep(f, host, t);
		keep(f, cpu, t);
	}
	if (look(f, cpu, cpu_schema[CPU_INTERRUPT].name, end + 1, &handler) || keep_waker(f, host, end + 1))
		return -1;
	if (handler.value == HISTORY_NULL && handler.end < history_last(f->h))
		keep(f, cpu, handler.end + 1);
	return 0;
}

/* What was learnt before t about who serves the devices of the guest. */
static int keep_past(struct finder *f, uint32_t cpu, int64_t t)
{
	const uint32_t host = host_of(f, cpu, t);
	struct interval iv = { .start = t };
	int found = 1;
	for (int i = 0; found > 0 && i < SLEEPS; i++)
		if ((found = last_in(f, host, BIT(THREAD_BLOCKED), iv.start, &iv)) > 0 && keep_sleep(f, cpu, host, iv.end))
			return -1;
	iv.start = t;
	for (int i = 0; found >= 0 && i < SLEEPS && iv.start > history_first(f->h); i++) {
		if (look(f, cpu, cpu_schema[CPU_INTERRUPT].name, iv.start - 1, &iv))
			return -1;
		keep(f, cpu, iv.start);
	}
	return found < 0 ? -1 : 0;
}

/* Threads of the vCPU's machine that may have raised the interrupt at t: when they ran last. */
static int keep_servers(struct finder *f, uint32_t host, int64_t t)
{
	const uint32_t threads = history_parent(f->h, host);
	struct interval own, pid, iv;
	if (look(f, host, thread_schema[THREAD_PID].name, t, &own))
		return -1;
	for (uint32_t s = HISTORY_NONE; (s = history_child(f->h, threads, s)) != HISTORY_NONE;) {
		if (look(f, s, thread_schema[THREAD_PID].name, t, &pid))
			return -1;
		if (s == host || (pid.value != HISTORY_NULL && pid.value != own.value))
			continue;
		int found = last_in(f, s, BIT(THREAD_RUNNING), t, &iv);
		keep(f, s, t);
		if (found > 0)
			keep(f, s, iv.start);
		if (found < 0)
			return -1;
	}
	return 0;
}

/* The guest acted on vCPU `cpu` at t, behind the window, perhaps in a handler: since when the vCPU was up, and why. */
static int keep_guest(struct finder *f, uint32_t cpu, int64_t t)
{
	bool is_new;
	struct interval in, iv;
	map_put(&f->seen, (uint64_t)t * 0x9e3779b97f4a7c15 ^ cpu, &is_new);
	if (!is_new || t <= f->to)
		return 0;
	const uint32_t host = host_of(f, cpu, t);
	keep(f, cpu, t);
	keep(f, host, t);
	int found = last_in(f, host, BIT(THREAD_BLOCKED), t, &iv);
	if (found < 0 || (found && keep_sleep(f, cpu, host, iv.end)))
		return -1;
	if ((found = last_in(f, host, BIT(THREAD_BLOCKED) | BIT(THREAD_PREEMPTED), t, &iv)) < 0)
		return -1;
	if (found)
		keep(f, host, iv.start);
	if (look(f, cpu, cpu_schema[CPU_INTERRUPT].name, t, &in))
		return -1;
	if (host == HISTORY_NONE || in.value == HISTORY_NULL)
		return 0;
	return keep_past(f, cpu, t) || keep_servers(f, host, t) ? -1 : 0;
}

/* Somebody acted at t: the thread, the container that it is in, the vCPU that it is, and the vCPUs of its machine. */
static int keep_party(struct finder *f, const char *machine, int64_t tid, int64_t t)
{
	char path[PATH_MOST], number[24];
	struct interval iv = { .value = HISTORY_NULL };
	const uint32_t node = thread_of(f, machine, tid), boxes = history_find(f->h, "/" SCHEMA_CONTAINERS);
	keep(f, node, t);
	for (uint32_t c = HISTORY_NONE; boxes != HISTORY_NONE && (c = history_child(f->h, boxes, c)) != HISTORY_NONE;)
		keep(f, thread_node(f, SCHEMA_CONTAINERS, history_name(f->h, c), tid), t);
	if (node != HISTORY_NONE && look(f, node, thread_schema[THREAD_VM].name, t, &iv))
		return -1;
	const char *vm = iv.value == HISTORY_NULL ? NULL : history_string(f->h, history_ref_text(iv.value));
	if (vm) {
		snprintf(number, sizeof number, SCHEMA_CPU "%" PRIu32, history_ref_number(iv.value));
		history_path(path, sizeof path, SCHEMA_VMS, vm, SCHEMA_CPUS, number, NULL);
		const uint32_t cpu = history_find(f->h, path);
		keep(f, cpu, t);
		if (cpu != HISTORY_NONE && keep_guest(f, cpu, t))
			return -1;
	}
	history_path(path, sizeof path, SCHEMA_VMS, machine, SCHEMA_CPUS, NULL);
	const uint32_t cpus = history_find(f->h, path);
	for (uint32_t c = HISTORY_NONE; cpus != HISTORY_NONE && (c = history_child(f->h, cpus, c)) != HISTORY_NONE;)
		if (keep_guest(f, c, t))
			return -1;
	return 0;
}

/* The thread is up at t: who woke it, where that was outside of the window. */
static int keep_waker(struct finder *f, uint32_t node, int64_t t)
{
	struct interval by, asleep;
	if (look(f, node, thread_schema[THREAD_WOKEN_BY].name, t, &by) ||
	    look(f, node, thread_schema[THREAD_STATUS].name, t - 1, &asleep))
		return -1;
	const char *machine = by.value == HISTORY_NULL ? NULL : history_string(f->h, history_ref_text(by.value));
	const int64_t at = by.start > asleep.start ? by.start : t;  /* the same one as the last time leaves no change */
	if (!machine || (at >= f->from && at <= f->to))
		return 0;
	keep(f, node, at);
	return keep_party(f, machine, history_ref_number(by.value), at);
}

/* ---- Threads */

/* What the thread waits for at the window's end, until it runs. */
static int keep_wait(struct finder *f, uint32_t node)
{
	const char *const status = thread_schema[THREAD_STATUS].name;
	struct interval iv;
	for (int64_t t = f->to; t <= history_last(f->h); t = iv.end + 1) {
		if (look(f, node, status, t, &iv))
			return -1;
		keep(f, node, t);
		if (t > f->to && keep_waker(f, node, t))
			return -1;
		if (iv.value == HISTORY_NULL || iv.end >= history_last(f->h) ||
		    is_state(f, node, status, iv.value, thread_state_name[THREAD_RUNNING]) ||
		    is_state(f, node, status, iv.value, thread_state_name[THREAD_UNKNOWN]))
			return 0;
		keep(f, node, iv.end);
	}
	return 0;
}

/* The first and the last moment of its life, which may be several lives of one TID. */
static int keep_life(struct finder *f, uint32_t node)
{
	const int64_t edge[2] = { history_first(f->h), history_last(f->h) };
	for (int i = 0; i < 2; i++) {
		struct interval iv;
		if (look(f, node, thread_schema[THREAD_STATUS].name, edge[i], &iv))
			return -1;
		keep(f, node, iv.value != HISTORY_NULL ? edge[i] : i ? iv.start - 1 : iv.end + 1);
	}
	return 0;
}

/* Does it live within the window?  1, 0, -1. */
static int lives(struct finder *f, uint32_t node)
{
	struct interval iv = { .end = f->from - 1, .value = HISTORY_NULL };
	while (iv.value == HISTORY_NULL && iv.end < f->to)
		if (look(f, node, thread_schema[THREAD_STATUS].name, iv.end + 1, &iv))
			return -1;
	return iv.value != HISTORY_NULL;
}

static int keep_thread(struct finder *f, uint32_t node)
{
	const int alive = lives(f, node);
	if (alive <= 0)
		return alive;
	keep(f, node, f->from - 1);
	return keep_life(f, node) || keep_waker(f, node, f->from) || keep_wait(f, node) ? -1 : 0;
}

/* ---- vCPUs */

/* From the window's end until the vCPU is in guest mode, or is left again: as query/exits.c measures the exit. */
static int keep_exit(struct finder *f, uint32_t cpu)
{
	const char *const status = cpu_schema[CPU_STATUS].name, *const own = thread_schema[THREAD_STATUS].name;
	struct interval exit, state, up = { INT64_MIN, INT64_MAX, HISTORY_NULL };
	if (look(f, cpu, cpu_schema[CPU_EXIT].name, f->to, &exit))
		return -1;
	for (int64_t t = f->to; t <= history_last(f->h); t = state.end < up.end ? state.end + 1 : up.end + 1) {
		const uint32_t host = host_of(f, cpu, t);
		keep(f, cpu, t);
		keep(f, host, t);
		if (look(f, cpu, status, t, &state) || (host != HISTORY_NONE && look(f, host, own, t, &up)))
			return -1;
		const bool idle = state.value == HISTORY_NULL ||
		                  is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_IDLE]) ||
		                  is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_UNKNOWN]);
		if (t > exit.end || is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_RUNNING]) ||
		    (idle && host != HISTORY_NONE && is_state(f, host, own, up.value, thread_state_name[THREAD_RUNNING])) ||
		    (state.end == INT64_MAX && up.end == INT64_MAX))
			return 0;
		if (exit.end < state.end && exit.end < up.end && exit.end < history_last(f->h))
			state.end = exit.end;
	}
	return 0;
}

/* ---- The tree */

static int keep_cpus(struct finder *f, uint32_t vm)
{
	const uint32_t cpus = history_child_named(f->h, vm, SCHEMA_CPUS);
	for (uint32_t c = HISTORY_NONE; cpus != HISTORY_NONE && (c = history_child(f->h, cpus, c)) != HISTORY_NONE;) {
		keep(f, c, f->from - 1);
		keep(f, c, f->to + 1);
		if (history_child_named(f->h, c, cpu_schema[CPU_STATUS].name) != HISTORY_NONE &&
		    (keep_exit(f, c) || keep_past(f, c, f->from)))
			return -1;
	}
	return 0;
}

static int keep_threads(struct finder *f, uint32_t machine)
{
	const uint32_t threads = history_child_named(f->h, machine, SCHEMA_THREADS);
	for (uint32_t t = HISTORY_NONE; threads != HISTORY_NONE && (t = history_child(f->h, threads, t)) != HISTORY_NONE;)
		if (keep_thread(f, t))
			return -1;
	return 0;
}

static int keep_machine(struct finder *f, uint32_t machine)
{
	return keep_threads(f, machine) || keep_cpus(f, machine) ? -1 : 0;
}

static int keep_machines(struct finder *f, const char *folder)
{
	const uint32_t all = history_find(f->h, folder);
	for (uint32_t m = HISTORY_NONE; all != HISTORY_NONE && (m = history_child(f->h, all, m)) != HISTORY_NONE;)
		if (keep_machine(f, m))
			return -1;
	return 0;
}

static int by_node(const void *a, const void *b)
{
	const struct kept_moment *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->t > y->t) - (x->t < y->t);
}

int moments_find(struct moments *m, const struct history *h, int64_t from, int64_t to, struct error *err)
{
	struct finder f = { h, m, from, to, MAP_INIT, err };
	const uint32_t host = history_find(h, "/" SCHEMA_HOST);
	size_t n = 0;
	*m = (struct moments){ 0 };
	int rc = (host != HISTORY_NONE && keep_machine(&f, host)) || keep_machines(&f, "/" SCHEMA_VMS) ||
	         keep_machines(&f, "/" SCHEMA_CONTAINERS) ? -1 : 0;
	map_release(&f.seen);
	if (m->len)
		qsort(m->at, m->len, sizeof *m->at, by_node);
	for (size_t i = 0; i < m->len; i++)
		if (!n || by_node(&m->at[n - 1], &m->at[i]) != 0)
			m->at[n++] = m->at[i];
	m->len = n;
	return rc;
}

void moments_release(struct moments *m)
{
	free(m->at);
	*m = (struct moments){ 0 };
}

size_t moments_of(const struct moments *m, uint32_t node, size_t *n)
{
	size_t first, end;
	BISECT(first, m->len, m->at[first].node < node);
	BISECT(end, m->len, m->at[end].node <= node);
	*n = end - first;
	return first;
}
