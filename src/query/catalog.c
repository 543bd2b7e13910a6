/* The catalog of machines, CPUs and threads, read once from the attribute tree of a history.
 *
 * Cost: visits each attribute below the three roots once, and reads the first values of "Host Thread" and "VM". Names
 * are borrowed from the history. Memory: about 50 bytes per thread. The catalog treats the thread of a vCPU as fixed;
 * resolver.c checks it at each time, because a TID may be reused after a VM ended. */
#include "query/query_internal.h"
#include "query/thread_set.h"
#include "query/window_gaps.h"

#define LINUX_TID_MAX 4194304  /* greater TIDs stand for the vCPUs of a hypervisor without host threads */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/order.h"

struct catalog_builder {
	struct catalog *catalog;
	size_t machine_cap, cpu_cap, thread_cap;
	struct error *err;
};

static bool parse_number(const char *text, long limit, long *out)
{
	if (*text < '0' || *text > '9')
		return false;
	char *rest;
	long v = strtol(text, &rest, 10);
	if (*rest || v > limit)
		return false;
	*out = v;
	return true;
}

/* Returns the attribute if it has the required type. Files may declare any type for a path; an attribute of another type
 * counts as absent. */
static uint32_t attr_of_type(const struct history *h, uint32_t attr, const struct schema_attr *a)
{
	return attr != HISTORY_NONE && history_type(h, attr) == (int)a->type ? attr : HISTORY_NONE;
}

ORDER_BY(compare_cpus, struct catalog_cpu, RISING(number))

ORDER_BY(compare_tids, struct catalog_thread, RISING(tid))

static void catalog_add_cpu(struct catalog_builder *b, uint32_t machine, uint32_t node)
{
	struct catalog *t = b->catalog;
	const char *name = history_name(t->h, node);
	long number;
	if (strncmp(name, SCHEMA_CPU, strlen(SCHEMA_CPU)) != 0 || !parse_number(name + strlen(SCHEMA_CPU), INT16_MAX, &number))
		return;
	size_t len = t->cpus;
	struct catalog_cpu *cpu = ARRAY_PUSH(t->cpu, len, b->cpu_cap);
	t->cpus = (uint32_t)len;
	*cpu = (struct catalog_cpu){ .number = (unsigned)number, .machine = machine, .host = -1, .sibling = -1,
		.llc_number = -1, .node_number = -1 };
	for (int i = 0; i < CPU_ATTRS; i++)
		cpu->id[i] = attr_of_type(t->h, history_child_named(t->h, node, cpu_schema[i].name), &cpu_schema[i]);
}

/* Fills the ids of the attributes below `parent` in one walk over its children: searching each name would be slow with
 * millions of threads. */
static void catalog_add_thread(struct catalog_builder *b, uint32_t machine, uint32_t node)
{
	struct catalog *t = b->catalog;
	long tid;
	if (!parse_number(history_name(t->h, node), INT32_MAX, &tid))
		return;
	size_t len = t->threads;
	struct catalog_thread *th = ARRAY_PUSH(t->thread, len, b->thread_cap);
	t->threads = (uint32_t)len;
	*th = (struct catalog_thread){ .tid = (int32_t)tid, .machine = machine, .role = -1 };
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->id[i] = HISTORY_NONE;
	for (uint32_t a = history_child(t->h, node, HISTORY_NONE); a != HISTORY_NONE; a = history_child(t->h, node, a)) {
		const char *name = history_name(t->h, a);
		for (int i = 0; i < THREAD_ATTRS; i++)
			if (strcmp(name, thread_schema[i].name) == 0)
				th->id[i] = attr_of_type(t->h, a, &thread_schema[i]);
	}
}

static void catalog_add_machine(struct catalog_builder *b, const char *name, enum machine_kind kind, uint32_t node)
{
	struct catalog *t = b->catalog;
	uint32_t index = t->machines;
	size_t len = t->machines;
	struct catalog_machine *m = ARRAY_PUSH(t->machine, len, b->machine_cap);
	t->machines = (uint32_t)len;
	*m = (struct catalog_machine){ .name = name, .kind = kind, .parent = -1, .group = -1, .whole = (int32_t)index,
		.cpu = t->cpus, .thread = t->threads };
	if (kind == MACHINE_CONTAINER)
		m->whole = t->machine[0].kind == MACHINE_HOST ? 0 : -1;
	uint32_t cpus = history_child_named(t->h, node, SCHEMA_CPUS);
	uint32_t threads = history_child_named(t->h, node, SCHEMA_THREADS);
	if (cpus != HISTORY_NONE)
		for (uint32_t a = history_child(t->h, cpus, HISTORY_NONE); a != HISTORY_NONE;
		     a = history_child(t->h, cpus, a))
			catalog_add_cpu(b, index, a);
	if (threads != HISTORY_NONE)
		for (uint32_t a = history_child(t->h, threads, HISTORY_NONE); a != HISTORY_NONE;
		     a = history_child(t->h, threads, a))
			catalog_add_thread(b, index, a);
	m->cpus = t->cpus - m->cpu;
	m->threads = t->threads - m->thread;
	ARRAY_SORT(t->cpu + m->cpu, m->cpus, compare_cpus);
	ARRAY_SORT(t->thread + m->thread, m->threads, compare_tids);
}

struct named_node { const char *name; uint32_t node; };

ORDER_BY(compare_names, struct named_node, RISING_TEXT(name))

static void catalog_add_machines(struct catalog_builder *b, const char *root, enum machine_kind kind)
{
	const struct history *h = b->catalog->h;
	uint32_t parent = history_find(h, root);
	if (parent == HISTORY_NONE)
		return;
	struct named_node *list = NULL;
	size_t len = 0, cap = 0;
	for (uint32_t a = history_child(h, parent, HISTORY_NONE); a != HISTORY_NONE; a = history_child(h, parent, a))
		*ARRAY_PUSH(list, len, cap) = (struct named_node){ history_name(h, a), a };
	ARRAY_SORT(list, len, compare_names);
	for (size_t i = 0; i < len; i++)
		catalog_add_machine(b, list[i].name, kind, list[i].node);
	free(list);
}

/* A container may list its threads by TID only: then their attributes are the attributes of the same TIDs of the host. */
static void container_borrow_attrs(struct catalog *t)
{
	if (!t->machines || t->machine[0].kind != MACHINE_HOST)
		return;
	for (uint32_t m = 0; m < t->machines; m++) {
		if (t->machine[m].kind != MACHINE_CONTAINER)
			continue;
		for (uint32_t i = t->machine[m].thread; i < t->machine[m].thread + t->machine[m].threads; i++) {
			struct catalog_thread *th = &t->thread[i];
			int host_thread = catalog_find_thread(t, 0, th->tid);
			if (host_thread < 0)
				continue;
			const struct catalog_thread *from = &t->thread[host_thread];
			th->status = th->status == HISTORY_NONE ? from->status : th->status;
			th->name = th->name == HISTORY_NONE ? from->name : th->name;
			th->cpu = th->cpu == HISTORY_NONE ? from->cpu : th->cpu;
			th->pid = th->pid == HISTORY_NONE ? from->pid : th->pid;
			th->woken_by = th->woken_by == HISTORY_NONE ? from->woken_by : th->woken_by;
			th->woken_in = th->woken_in == HISTORY_NONE ? from->woken_in : th->woken_in;
			th->out_by = th->out_by == HISTORY_NONE ? from->out_by : th->out_by;
		}
	}
}

/* Finds the first non-null value of attr. Returns 1 = found, 0 = none, -1 = error. */
static int first_value(const struct history *h, uint32_t attr, int64_t *value, struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	if (history_range(&c, h, attr, history_first(h), history_last(h), err) < 0)
		return -1;
	int r;
	while ((r = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL) {
			*value = iv.value;
			return 1;
		}
	return r;
}

static void link_vcpu(struct catalog *t, uint32_t thread, uint32_t cpu)
{
	int32_t *role = &t->thread[thread].role;
	while (*role >= 0 && t->role[*role].vcpu != cpu)
		role = &t->role[*role].next;
	if (*role >= 0)
		return;
	*role = (int32_t)t->roles;  /* read before the array moves */
	t->role = mem_resize(t->role, t->roles + 1, sizeof *t->role);
	t->role[t->roles++] = (struct catalog_role){ cpu, -1 };
	if (t->cpu[cpu].host < 0)
		t->cpu[cpu].host = (int32_t)thread;
}

int catalog_ref(const struct catalog *catalog, int64_t value, uint32_t *number)
{
	*number = history_ref_number(value);
	return value == HISTORY_NULL ? -1 : catalog_find_machine(catalog, history_string(catalog->h, history_ref_text(value)));
}

/* Adds the vCPUs that the thread executes at times. */
static int link_thread(struct catalog *t, uint32_t thread, struct error *err)
{
	const struct catalog_thread *th = &t->thread[thread];
	struct history_cursor c;
	struct interval iv;
	int got;
	if (history_range(&c, t->h, th->vm, history_first(t->h), history_last(t->h), err) < 0)
		return -1;
	while ((got = history_range_next(&c, &iv, err)) > 0) {
		uint32_t number;
		int vm = catalog_ref(t, iv.value, &number);
		int cpu = vm < 0 || t->machine[vm].kind != MACHINE_VM || (uint32_t)vm == th->machine ? -1
		        : catalog_find_cpu(t, (uint32_t)vm, number);
		if (cpu >= 0)
			link_vcpu(t, thread, (uint32_t)cpu);
	}
	return got;
}

/* Sets the parents of the VMs from ".../<VM>/Parent" = "<machine>". The default is the host. Cycles are cut. */
static int link_machines(struct catalog *t, struct error *err)
{
	for (uint32_t i = 0; i < t->machines; i++) {
		int64_t value;
		char path[600];
		if (t->machine[i].kind != MACHINE_VM)
			continue;
		history_path(path, sizeof path, SCHEMA_VMS, t->machine[i].name, machine_schema[MACHINE_PARENT].name, NULL);
		uint32_t attr = attr_of_type(t->h, history_find(t->h, path), &machine_schema[MACHINE_PARENT]);
		int found = attr != HISTORY_NONE ? first_value(t->h, attr, &value, err) : 0;
		if (found < 0)
			return -1;
		int32_t parent = catalog_find_machine(t, found ? history_string(t->h, value) : "host"), up = parent;
		while (up >= 0 && up != (int32_t)i)
			up = t->machine[up].parent;
		if (up >= 0 || parent < 0 || t->machine[parent].kind == MACHINE_CONTAINER)
			continue;
		t->machine[i].parent = parent;
		t->machine[parent].runs_vms = true;
	}
	return 0;
}

static int link_vcpus(struct catalog *t, struct error *err)
{
	for (uint32_t i = 0; i < t->threads; i++)
		if (t->thread[i].vm != HISTORY_NONE && t->machine[t->thread[i].machine].kind != MACHINE_CONTAINER &&
		    link_thread(t, i, err) < 0)
			return -1;
	for (uint32_t i = 0; i < t->cpus; i++) {
		int64_t tid;
		int32_t host = t->machine[t->cpu[i].machine].parent;
		if (host < 0 || t->cpu[i].host >= 0 || t->cpu[i].host_thread == HISTORY_NONE)
			continue;
		int r = first_value(t->h, t->cpu[i].host_thread, &tid, err);
		if (r < 0)
			return -1;
		int thread = r && tid > 0 && tid <= INT32_MAX ? catalog_find_thread(t, (uint32_t)host, (int32_t)tid) : -1;
		if (thread >= 0)
			link_vcpu(t, (uint32_t)thread, i);
	}
	return 0;
}

static void map_states(const struct history *h, uint32_t attr, const char *const *name, uint8_t names,
                       uint8_t unknown, uint8_t map[HISTORY_STATES])
{
	for (unsigned i = 0; i < HISTORY_STATES; i++)
		map[i] = unknown;
	unsigned count = history_state_count(h, attr);
	for (unsigned i = 0; i < count && i < HISTORY_STATES - 1; i++) {
		const char *text = history_state_name(h, attr, i);
		for (uint8_t k = 0; text && k < names; k++)
			if (strcmp(text, name[k]) == 0)
				map[i] = k;
	}
}

static void catalog_map_states(struct catalog *t)
{
	uint32_t i = 0, k = 0;
	while (i < t->cpus && t->cpu[i].status == HISTORY_NONE)
		i++;
	if (i < t->cpus)
		map_states(t->h, t->cpu[i].status, vcpu_state_name, VCPU_STATE_COUNT, VCPU_UNKNOWN, t->vcpu_state);
	while (k < t->threads && t->thread[k].status == HISTORY_NONE)
		k++;
	if (k < t->threads)
		map_states(t->h, t->thread[k].status, thread_state_name, THREAD_STATE_COUNT, THREAD_UNKNOWN,
		           t->thread_state);
	for (i = 0; i < t->cpus && t->cpu[i].out_by == HISTORY_NONE; )
		i++;
	if (i < t->cpus)
		map_states(t->h, t->cpu[i].out_by, out_reason_name, OUT_REASON_COUNT, OUT_REASON_COUNT, t->out_reason);
	for (k = 0; i == t->cpus && k < t->threads && t->thread[k].out_by == HISTORY_NONE; )
		k++;
	if (i == t->cpus && k < t->threads)
		map_states(t->h, t->thread[k].out_by, out_reason_name, OUT_REASON_COUNT, OUT_REASON_COUNT, t->out_reason);
	for (i = 0; i < t->cpus && t->cpu[i].polling == HISTORY_NONE; )
		i++;
	if (i < t->cpus)
		map_states(t->h, t->cpu[i].polling, poll_outcome_name, POLL_OUTCOME_COUNT, POLL_UNKNOWN, t->poll_outcome);
	for (unsigned n = 0; n < HISTORY_STATES - 1; n++) {
		if (vcpu_use[t->vcpu_state[n]] == USE_LOST)
			t->vcpu_gap |= UINT64_C(1) << n;
		if (use_is_lost(vcpu_use[t->vcpu_state[n]]))
			t->vcpu_lost |= UINT64_C(1) << n;
		if (thread_use[t->thread_state[n]] == USE_LOST)
			t->thread_gap |= UINT64_C(1) << n;
		if (vcpu_use[t->vcpu_state[n]] == USE_RAN)
			t->vcpu_ran |= UINT64_C(1) << n;
		if (thread_use[t->thread_state[n]] == USE_RAN)
			t->thread_ran |= UINT64_C(1) << n;
	}
}

/* Returns false if any vCPU was ever HOST_BLOCKED: then PREEMPTED is exact, and the status of the vCPU's thread is not
 * needed. */
static bool is_host_blocked_folded(const struct catalog *catalog)
{
	struct interval iv;
	uint64_t mask = 0;
	for (int n = 0; n < HISTORY_STATES - 1; n++)
		mask |= (uint64_t)(catalog->vcpu_state[n] == VCPU_HOST_BLOCKED) << n;
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		if (catalog->cpu[i].status == HISTORY_NONE || catalog->machine[catalog->cpu[i].machine].kind != MACHINE_VM)
			continue;
		const int found = history_next(catalog->h, catalog->cpu[i].status, INT64_MIN, mask, &iv, NULL);
		if (found != 0)
			return found < 0;
	}
	return true;
}

/* Reads which machines are known to be VMs. */
static int read_virtual(struct catalog *t, struct error *err)
{
	for (struct catalog_machine *m = t->machine; m < t->machine + t->machines; m++) {
		char path[600];
		int64_t value = 0;
		history_path(path, sizeof path, SCHEMA_VMS, m->name, machine_schema[MACHINE_VIRTUAL].name, NULL);
		const uint32_t attr = m->kind != MACHINE_VM ? HISTORY_NONE
		                    : attr_of_type(t->h, history_find(t->h, path), &machine_schema[MACHINE_VIRTUAL]);
		if (attr != HISTORY_NONE && first_value(t->h, attr, &value, err) < 0)
			return -1;
		m->is_virtual = value == 1;
	}
	return 0;
}

static void find_hidden_stolen_time(struct catalog *catalog)
{
	for (struct catalog_machine *m = catalog->machine; m < catalog->machine + catalog->machines; m++) {
		if (m->kind == MACHINE_CONTAINER && m->whole >= 0) {
			m->hides_stolen_time = catalog->machine[m->whole].hides_stolen_time;
			m->is_virtual = catalog->machine[m->whole].is_virtual;
			continue;
		}
		m->hides_stolen_time = m->kind == MACHINE_VM;
		for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++)
			m->hides_stolen_time &= catalog->cpu[i].host < 0 && catalog->cpu[i].steal_bound == HISTORY_NONE;
	}
}

int catalog_open(struct catalog *catalog, const struct history *h, struct error *err)
{
	return catalog_open_set(catalog, h, NULL, err);
}

int catalog_open_set(struct catalog *catalog, const struct history *h, struct thread_set *set, struct error *err)
{
	*catalog = (struct catalog){ .h = h, .set = set, .windows = window_stores_new() };
	struct catalog_builder b = { .catalog = catalog, .err = err };
	uint32_t host = history_find(h, "/" SCHEMA_HOST);
	if (host != HISTORY_NONE)
		catalog_add_machine(&b, "host", MACHINE_HOST, host);
	catalog_add_machines(&b, "/" SCHEMA_VMS, MACHINE_VM);
	catalog_add_machines(&b, "/" SCHEMA_CONTAINERS, MACHINE_CONTAINER);
	container_borrow_attrs(catalog);
	if (catalog_read_groups(catalog, err) < 0) {
		catalog_release(catalog);
		return -1;
	}
	catalog_map_states(catalog);
	if (link_machines(catalog, err) < 0 || link_vcpus(catalog, err) < 0 || catalog_read_topology(catalog, err) < 0 ||
	    read_virtual(catalog, err) < 0) {
		catalog_release(catalog);
		return -1;
	}
	find_hidden_stolen_time(catalog);
	catalog->folded = is_host_blocked_folded(catalog);
	for (uint32_t i = 0; i < catalog->threads && !catalog->has_run_states; i++)
		catalog->has_run_states = catalog->thread[i].tid > LINUX_TID_MAX;
	return 0;
}

void catalog_release(struct catalog *catalog)
{
	free(catalog->machine);
	free(catalog->cpu);
	free(catalog->thread);
	free(catalog->role);
	free(catalog->group);
	thread_set_free(catalog->set);
	window_stores_free(catalog->windows);
	*catalog = (struct catalog){ 0 };
}

int catalog_find_machine(const struct catalog *catalog, const char *name)
{
	if (catalog->machines && catalog->machine[0].kind == MACHINE_HOST && strcasecmp(name, "host") == 0)
		return 0;
	for (uint32_t i = 0; i < catalog->machines; i++)
		if (strcmp(catalog->machine[i].name, name) == 0)
			return (int)i;
	return -1;
}

int catalog_find_thread(const struct catalog *catalog, uint32_t machine, int32_t tid)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	struct catalog_thread key = { .tid = tid };
	const struct catalog_thread *found = !m->threads ? NULL :
		bsearch(&key, catalog->thread + m->thread, m->threads, sizeof key, compare_tids);
	return found ? (int)(found - catalog->thread) : -1;
}

int catalog_find_cpu(const struct catalog *catalog, uint32_t machine, unsigned number)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	struct catalog_cpu key = { .number = number };
	const struct catalog_cpu *found = !m->cpus ? NULL :
		bsearch(&key, catalog->cpu + m->cpu, m->cpus, sizeof key, compare_cpus);
	return found ? (int)(found - catalog->cpu) : -1;
}

bool catalog_has_host_trace(const struct catalog *catalog, const struct target *target)
{
	const struct catalog_machine *m = &catalog->machine[target_machine(catalog, target)];
	return target->kind == TARGET_THREAD || m->kind == MACHINE_CONTAINER || !m->hides_stolen_time;
}

bool catalog_lacks_host_trace(const struct catalog *catalog, const struct target *target)
{
	bool lacks_host_trace = false;
	for (uint32_t i = 0; i < catalog->machines; i++)
		lacks_host_trace |= (!target || target_machine(catalog, target) == i) && catalog->machine[i].hides_stolen_time;
	return lacks_host_trace;
}
