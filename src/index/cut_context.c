/* Finds the times outside the window of a cut that answers depend on. */
#include "index/cut_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/schema.h"
#include "base/states.h"

#define SLEEPS_MAX 64     /* number of sleeps, and of handlers, that query/irq_source.c examines */
#define PATH_SIZE 4096

struct context_finder {
	const struct history *h;
	struct cut_context *m;
	int64_t from, to;
	struct map seen;     /* pairs of vCPU and time already handled by add_guest_wakeup() */
	struct error *err;
};

static void add_time(struct context_finder *f, uint32_t node, int64_t t)
{
	const bool outside = t < f->from || t > f->to;
	if (node != HISTORY_NONE && outside && t >= history_first(f->h) && t <= history_last(f->h))
		*ARRAY_PUSH(f->m->at, f->m->len, f->m->cap) = (struct context_time){ node, t };
}

/* Reads the interval of the node's attribute at time t; value HISTORY_NULL for all time if the node has no such
 * attribute. */
static int get_attribute(struct context_finder *f, uint32_t node, const char *attribute, int64_t t, struct interval *iv)
{
	uint32_t attr = history_child_named(f->h, node, attribute);
	*iv = (struct interval){ INT64_MIN, INT64_MAX, HISTORY_NULL };
	if (attr == HISTORY_NONE || history_type(f->h, attr) < 0)
		return 0;
	return history_stab(f->h, attr, t, iv, f->err);
}

static bool is_state(const struct context_finder *f, uint32_t node, const char *attribute, int64_t value, const char *state)
{
	uint32_t attr = history_child_named(f->h, node, attribute);
	if (attr == HISTORY_NONE || value < 0 || value >= HISTORY_STATES)
		return false;
	const char *name = history_state_name(f->h, attr, (unsigned)value);
	return name && strcmp(name, state) == 0;
}

static uint32_t find_thread_in(const struct context_finder *f, const char *dir, const char *machine, int64_t tid)
{
	char path[PATH_SIZE], number[24];
	snprintf(number, sizeof number, "%" PRId64, tid);
	if (machine)
		history_path(path, sizeof path, dir, machine, SCHEMA_THREADS, number, NULL);
	else
		history_path(path, sizeof path, dir, SCHEMA_THREADS, number, NULL);
	return history_find(f->h, path);
}

static uint32_t find_thread(const struct context_finder *f, const char *machine, int64_t tid)
{
	return strcmp(machine, "host") == 0 ? find_thread_in(f, SCHEMA_HOST, NULL, tid) :
	                                      find_thread_in(f, SCHEMA_VMS, machine, tid);
}

/* ---- Wakers */

static int add_waker(struct context_finder *f, uint32_t node, int64_t t);

static uint32_t find_vcpu_thread(struct context_finder *f, uint32_t cpu, int64_t t)
{
	struct interval parent, tid;
	const uint32_t vm = history_parent(f->h, history_parent(f->h, cpu));
	if (get_attribute(f, vm, machine_schema[MACHINE_PARENT].name, t, &parent) ||
	    get_attribute(f, cpu, cpu_schema[CPU_HOST_THREAD].name, t, &tid) || tid.value <= 0)
		return HISTORY_NONE;
	const char *machine = parent.value == HISTORY_NULL ? "host" : history_string(f->h, parent.value);
	return machine ? find_thread(f, machine, tid.value) : HISTORY_NONE;
}

/* Finds the thread's last interval before t in one of the states (bit set of enum thread_state). Returns 1, 0: none, or
 * -1. */
static int find_last_interval(struct context_finder *f, uint32_t thread, uint64_t states, int64_t t, struct interval *iv)
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

/* Adds a sleep of the vCPU's thread that ends at `end`, the thread's waker, and the first interrupt handler that the
 * guest then entered. */
static int add_sleep(struct context_finder *f, uint32_t cpu, uint32_t host, int64_t end)
{
	struct interval handler;
	for (int64_t t = end; t <= end + 1; t++) {
		add_time(f, host, t);
		add_time(f, cpu, t);
	}
	if (get_attribute(f, cpu, cpu_schema[CPU_INTERRUPT].name, end + 1, &handler) || add_waker(f, host, end + 1))
		return -1;
	if (handler.value == HISTORY_NULL && handler.end < history_last(f->h))
		add_time(f, cpu, handler.end + 1);
	return 0;
}

/* Adds the sleeps and interrupt handlers before t from which query/irq_source.c infers the threads that emulate the
 * guest's devices. */
static int add_wakeup_history(struct context_finder *f, uint32_t cpu, int64_t t)
{
	const uint32_t host = find_vcpu_thread(f, cpu, t);
	struct interval iv = { .start = t };
	int found = 1;
	for (int i = 0; found > 0 && i < SLEEPS_MAX; i++)
		if ((found = find_last_interval(f, host, BIT64(THREAD_BLOCKED), iv.start, &iv)) > 0 &&
		    add_sleep(f, cpu, host, iv.end))
			return -1;
	iv.start = t;
	for (int i = 0; found >= 0 && i < SLEEPS_MAX && iv.start > history_first(f->h); i++) {
		if (get_attribute(f, cpu, cpu_schema[CPU_INTERRUPT].name, iv.start - 1, &iv))
			return -1;
		add_time(f, cpu, iv.start);
	}
	return found < 0 ? -1 : 0;
}

/* Adds the last run of each thread that may have raised the guest's interrupt at t: the threads of the vCPU thread's
 * process, and those with an unknown process. */
static int add_io_threads(struct context_finder *f, uint32_t host, int64_t t)
{
	const uint32_t threads = history_parent(f->h, host);
	struct interval own_process, pid, iv;
	if (get_attribute(f, host, thread_schema[THREAD_PID].name, t, &own_process))
		return -1;
	for (uint32_t s = HISTORY_NONE; (s = history_child(f->h, threads, s)) != HISTORY_NONE;) {
		if (get_attribute(f, s, thread_schema[THREAD_PID].name, t, &pid))
			return -1;
		if (s == host || (pid.value != HISTORY_NULL && pid.value != own_process.value))
			continue;
		int found = find_last_interval(f, s, BIT64(THREAD_RUNNING), t, &iv);
		add_time(f, s, t);
		if (found > 0)
			add_time(f, s, iv.start);
		if (found < 0)
			return -1;
	}
	return 0;
}

/* Adds the wakeup of a vCPU on which the guest ran at time t after the window, and the reason of this wakeup. */
static int add_guest_wakeup(struct context_finder *f, uint32_t cpu, int64_t t)
{
	bool is_new;
	struct interval in, iv;
	map_put(&f->seen, (uint64_t)t * 0x9e3779b97f4a7c15 ^ cpu, &is_new);
	if (!is_new || t <= f->to)
		return 0;
	const uint32_t host = find_vcpu_thread(f, cpu, t);
	add_time(f, cpu, t);
	add_time(f, host, t);
	int found = find_last_interval(f, host, BIT64(THREAD_BLOCKED), t, &iv);
	if (found < 0 || (found && add_sleep(f, cpu, host, iv.end)))
		return -1;
	if ((found = find_last_interval(f, host, BIT64(THREAD_BLOCKED) | BIT64(THREAD_PREEMPTED), t, &iv)) < 0)
		return -1;
	if (found)
		add_time(f, host, iv.start);
	if (get_attribute(f, cpu, cpu_schema[CPU_INTERRUPT].name, t, &in))
		return -1;
	if (host == HISTORY_NONE || in.value == HISTORY_NULL)
		return 0;
	return add_wakeup_history(f, cpu, t) || add_io_threads(f, host, t) ? -1 : 0;
}

/* Adds the context of a thread that acted at t: the thread, its container, its vCPU, and the vCPUs of its machine. */
static int add_actor(struct context_finder *f, const char *machine, int64_t tid, int64_t t)
{
	char path[PATH_SIZE], number[24];
	struct interval iv = { .value = HISTORY_NULL };
	const uint32_t node = find_thread(f, machine, tid), containers = history_find(f->h, "/" SCHEMA_CONTAINERS);
	add_time(f, node, t);
	for (uint32_t c = HISTORY_NONE; containers != HISTORY_NONE && (c = history_child(f->h, containers, c)) != HISTORY_NONE;)
		add_time(f, find_thread_in(f, SCHEMA_CONTAINERS, history_name(f->h, c), tid), t);
	if (node != HISTORY_NONE && get_attribute(f, node, thread_schema[THREAD_VM].name, t, &iv))
		return -1;
	const char *vm = iv.value == HISTORY_NULL ? NULL : history_string(f->h, history_ref_text(iv.value));
	if (vm) {
		snprintf(number, sizeof number, SCHEMA_CPU "%" PRIu32, history_ref_number(iv.value));
		history_path(path, sizeof path, SCHEMA_VMS, vm, SCHEMA_CPUS, number, NULL);
		const uint32_t cpu = history_find(f->h, path);
		add_time(f, cpu, t);
		if (cpu != HISTORY_NONE && add_guest_wakeup(f, cpu, t))
			return -1;
	}
	history_path(path, sizeof path, SCHEMA_VMS, machine, SCHEMA_CPUS, NULL);
	const uint32_t cpus = history_find(f->h, path);
	for (uint32_t c = HISTORY_NONE; cpus != HISTORY_NONE && (c = history_child(f->h, cpus, c)) != HISTORY_NONE;)
		if (add_guest_wakeup(f, c, t))
			return -1;
	return 0;
}

/* Adds the waker of a thread that is awake at t, if the wakeup is outside the window. */
static int add_waker(struct context_finder *f, uint32_t node, int64_t t)
{
	struct interval by, asleep;
	if (get_attribute(f, node, thread_schema[THREAD_WOKEN_BY].name, t, &by) ||
	    get_attribute(f, node, thread_schema[THREAD_STATUS].name, t - 1, &asleep))
		return -1;
	const char *machine = by.value == HISTORY_NULL ? NULL : history_string(f->h, history_ref_text(by.value));
	const int64_t at = by.start > asleep.start ? by.start : t;  /* a second wakeup by the same waker does not change the
	                                                             * attribute */
	if (!machine || (at >= f->from && at <= f->to))
		return 0;
	add_time(f, node, at);
	return add_actor(f, machine, history_ref_number(by.value), at);
}

/* ---- Threads */

/* Adds the states of a thread from the end of the window until it runs. */
static int add_wait(struct context_finder *f, uint32_t node)
{
	const char *const status = thread_schema[THREAD_STATUS].name;
	struct interval iv;
	for (int64_t t = f->to; t <= history_last(f->h); t = iv.end + 1) {
		if (get_attribute(f, node, status, t, &iv))
			return -1;
		add_time(f, node, t);
		if (t > f->to && add_waker(f, node, t))
			return -1;
		if (iv.value == HISTORY_NULL || iv.end >= history_last(f->h) ||
		    is_state(f, node, status, iv.value, thread_state_name[THREAD_RUNNING]) ||
		    is_state(f, node, status, iv.value, thread_state_name[THREAD_UNKNOWN]))
			return 0;
		add_time(f, node, iv.end);
	}
	return 0;
}

/* Adds the start and the end of the thread's existence; several threads may have used one TID in turn. */
static int add_lifetime(struct context_finder *f, uint32_t node)
{
	const int64_t bound[2] = { history_first(f->h), history_last(f->h) };
	for (int i = 0; i < 2; i++) {
		struct interval iv;
		if (get_attribute(f, node, thread_schema[THREAD_STATUS].name, bound[i], &iv))
			return -1;
		add_time(f, node, iv.value != HISTORY_NULL ? bound[i] : i ? iv.start - 1 : iv.end + 1);
	}
	return 0;
}

/* Returns 1 if the thread exists within the window, 0 if not, -1 on failure. */
static int exists_in_window(struct context_finder *f, uint32_t node)
{
	struct interval iv = { .end = f->from - 1, .value = HISTORY_NULL };
	while (iv.value == HISTORY_NULL && iv.end < f->to)
		if (get_attribute(f, node, thread_schema[THREAD_STATUS].name, iv.end + 1, &iv))
			return -1;
	return iv.value != HISTORY_NULL;
}

static int add_thread(struct context_finder *f, uint32_t node)
{
	const int alive = exists_in_window(f, node);
	if (alive <= 0)
		return alive;
	add_time(f, node, f->from - 1);
	return add_lifetime(f, node) || add_waker(f, node, f->from) || add_wait(f, node) ? -1 : 0;
}

/* ---- vCPUs */

/* Adds the states from the end of the window until the vCPU's next VM entry or exit: query/exits.c needs them to measure
 * an exit. */
static int add_exit(struct context_finder *f, uint32_t cpu)
{
	const char *const status = cpu_schema[CPU_STATUS].name, *const host_status = thread_schema[THREAD_STATUS].name;
	struct interval exit, state, host_state = { INT64_MIN, INT64_MAX, HISTORY_NULL };
	if (get_attribute(f, cpu, cpu_schema[CPU_EXIT].name, f->to, &exit))
		return -1;
	for (int64_t t = f->to; t <= history_last(f->h); t = state.end < host_state.end ? state.end + 1 : host_state.end + 1) {
		const uint32_t host = find_vcpu_thread(f, cpu, t);
		add_time(f, cpu, t);
		add_time(f, host, t);
		if (get_attribute(f, cpu, status, t, &state) ||
		    (host != HISTORY_NONE && get_attribute(f, host, host_status, t, &host_state)))
			return -1;
		const bool idle = state.value == HISTORY_NULL ||
		                  is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_IDLE]) ||
		                  is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_UNKNOWN]);
		if (t > exit.end || is_state(f, cpu, status, state.value, vcpu_state_name[VCPU_RUNNING]) ||
		    (idle && host != HISTORY_NONE &&
		     is_state(f, host, host_status, host_state.value, thread_state_name[THREAD_RUNNING])) ||
		    (state.end == INT64_MAX && host_state.end == INT64_MAX))
			return 0;
		if (exit.end < state.end && exit.end < host_state.end && exit.end < history_last(f->h))
			state.end = exit.end;
	}
	return 0;
}

/* ---- All nodes */

static int add_cpus(struct context_finder *f, uint32_t vm)
{
	const uint32_t cpus = history_child_named(f->h, vm, SCHEMA_CPUS);
	for (uint32_t c = HISTORY_NONE; cpus != HISTORY_NONE && (c = history_child(f->h, cpus, c)) != HISTORY_NONE;) {
		add_time(f, c, f->from - 1);
		add_time(f, c, f->to + 1);
		if (history_child_named(f->h, c, cpu_schema[CPU_STATUS].name) != HISTORY_NONE &&
		    (add_exit(f, c) || add_wakeup_history(f, c, f->from)))
			return -1;
	}
	return 0;
}

static int add_threads(struct context_finder *f, uint32_t machine)
{
	const uint32_t threads = history_child_named(f->h, machine, SCHEMA_THREADS);
	for (uint32_t t = HISTORY_NONE; threads != HISTORY_NONE && (t = history_child(f->h, threads, t)) != HISTORY_NONE;)
		if (add_thread(f, t))
			return -1;
	return 0;
}

static int add_machine_context(struct context_finder *f, uint32_t machine)
{
	return add_threads(f, machine) || add_cpus(f, machine) ? -1 : 0;
}

static int add_all_machines(struct context_finder *f, const char *dir)
{
	const uint32_t all = history_find(f->h, dir);
	for (uint32_t m = HISTORY_NONE; all != HISTORY_NONE && (m = history_child(f->h, all, m)) != HISTORY_NONE;)
		if (add_machine_context(f, m))
			return -1;
	return 0;
}

static int by_node(const void *a, const void *b)
{
	const struct context_time *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->t > y->t) - (x->t < y->t);
}

int cut_context_find(struct cut_context *m, const struct history *h, int64_t from, int64_t to, struct error *err)
{
	struct context_finder f = { h, m, from, to, MAP_INIT, err };
	const uint32_t host = history_find(h, "/" SCHEMA_HOST);
	size_t n = 0;
	*m = (struct cut_context){ 0 };
	int rc = (host != HISTORY_NONE && add_machine_context(&f, host)) || add_all_machines(&f, "/" SCHEMA_VMS) ||
	         add_all_machines(&f, "/" SCHEMA_CONTAINERS) ? -1 : 0;
	map_release(&f.seen);
	if (m->len)
		qsort(m->at, m->len, sizeof *m->at, by_node);
	for (size_t i = 0; i < m->len; i++)
		if (!n || by_node(&m->at[n - 1], &m->at[i]) != 0)
			m->at[n++] = m->at[i];
	m->len = n;
	return rc;
}

void cut_context_release(struct cut_context *m)
{
	free(m->at);
	*m = (struct cut_context){ 0 };
}

size_t cut_context_find_node(const struct cut_context *m, uint32_t node, size_t *n)
{
	size_t first, end;
	BISECT(first, m->len, m->at[first].node < node);
	BISECT(end, m->len, m->at[end].node <= node);
	*n = end - first;
	return first;
}
