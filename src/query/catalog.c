/* Who is there: machines, CPUs and threads, read once from the attribute tree of a history.
 *
 * Cost: one visit of every attribute below the three roots and one look at the first values of "Host Thread" and
 * "VM"; nothing else of the history is touched.  Names are borrowed from the history.  Memory: about 50 bytes per
 * thread.  Which thread executes which vCPU is taken as fixed here; resolver.c checks it against the moment, since
 * a TID may be used again after a VM has ended. */
#include "query/query_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

struct build {
	struct topo *topo;
	size_t machine_cap, cpu_cap, thread_cap;
	struct error *err;
};

static bool number_of(const char *text, long limit, long *out)
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

/* A file may declare any type for our paths; what is not of the type we read is as good as absent. */
static uint32_t typed(const struct history *h, uint32_t attr, const struct schema_attr *a)
{
	return attr != HISTORY_NONE && history_type(h, attr) == (int)a->type ? attr : HISTORY_NONE;
}

static int by_number(const void *a, const void *b)
{
	const struct topo_cpu *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_tid(const void *a, const void *b)
{
	const struct topo_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void add_cpu(struct build *b, uint32_t machine, uint32_t node)
{
	struct topo *t = b->topo;
	const char *name = history_name(t->h, node);
	long number;
	if (strncmp(name, SCHEMA_CPU, strlen(SCHEMA_CPU)) != 0 || !number_of(name + strlen(SCHEMA_CPU), INT16_MAX, &number))
		return;
	size_t len = t->cpus;
	struct topo_cpu *cpu = ARRAY_PUSH(t->cpu, len, b->cpu_cap);
	t->cpus = (uint32_t)len;
	*cpu = (struct topo_cpu){ .number = (unsigned)number, .machine = machine, .host = -1 };
	for (int i = 0; i < CPU_ATTRS; i++)
		cpu->id[i] = typed(t->h, history_child_named(t->h, node, cpu_schema[i].name), &cpu_schema[i]);
}

/* There may be millions of threads: one walk over the children instead of a search for each. */
static void add_thread(struct build *b, uint32_t machine, uint32_t node)
{
	struct topo *t = b->topo;
	long tid;
	if (!number_of(history_name(t->h, node), INT32_MAX, &tid))
		return;
	size_t len = t->threads;
	struct topo_thread *th = ARRAY_PUSH(t->thread, len, b->thread_cap);
	t->threads = (uint32_t)len;
	*th = (struct topo_thread){ .tid = (int32_t)tid, .machine = machine, .role = -1 };
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->id[i] = HISTORY_NONE;
	for (uint32_t a = history_child(t->h, node, HISTORY_NONE); a != HISTORY_NONE; a = history_child(t->h, node, a)) {
		const char *name = history_name(t->h, a);
		for (int i = 0; i < THREAD_ATTRS; i++)
			if (strcmp(name, thread_schema[i].name) == 0)
				th->id[i] = typed(t->h, a, &thread_schema[i]);
	}
}

static void add_machine(struct build *b, const char *name, enum machine_kind kind, uint32_t node)
{
	struct topo *t = b->topo;
	uint32_t index = t->machines;
	size_t len = t->machines;
	struct topo_machine *m = ARRAY_PUSH(t->machine, len, b->machine_cap);
	t->machines = (uint32_t)len;
	*m = (struct topo_machine){ .name = name, .kind = kind, .parent = -1, .cpu = t->cpus, .thread = t->threads };
	uint32_t cpus = history_child_named(t->h, node, SCHEMA_CPUS);
	uint32_t threads = history_child_named(t->h, node, SCHEMA_THREADS);
	if (cpus != HISTORY_NONE)
		for (uint32_t a = history_child(t->h, cpus, HISTORY_NONE); a != HISTORY_NONE;
		     a = history_child(t->h, cpus, a))
			add_cpu(b, index, a);
	if (threads != HISTORY_NONE)
		for (uint32_t a = history_child(t->h, threads, HISTORY_NONE); a != HISTORY_NONE;
		     a = history_child(t->h, threads, a))
			add_thread(b, index, a);
	m->cpus = t->cpus - m->cpu;
	m->threads = t->threads - m->thread;
	if (m->cpus)
		qsort(t->cpu + m->cpu, m->cpus, sizeof *t->cpu, by_number);
	if (m->threads)
		qsort(t->thread + m->thread, m->threads, sizeof *t->thread, by_tid);
}

struct named { const char *name; uint32_t node; };

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void add_machines(struct build *b, const char *root, enum machine_kind kind)
{
	const struct history *h = b->topo->h;
	uint32_t parent = history_find(h, root);
	if (parent == HISTORY_NONE)
		return;
	struct named *list = NULL;
	size_t len = 0, cap = 0;
	for (uint32_t a = history_child(h, parent, HISTORY_NONE); a != HISTORY_NONE; a = history_child(h, parent, a))
		*ARRAY_PUSH(list, len, cap) = (struct named){ history_name(h, a), a };
	if (len)
		qsort(list, len, sizeof *list, by_name);
	for (size_t i = 0; i < len; i++)
		add_machine(b, list[i].name, kind, list[i].node);
	free(list);
}

/* A container may list its threads by TID only: then what is known of them stands with the host's thread. */
static void borrow_from_host(struct topo *t)
{
	if (!t->machines || t->machine[0].kind != MACHINE_HOST)
		return;
	for (uint32_t m = 0; m < t->machines; m++) {
		if (t->machine[m].kind != MACHINE_CONTAINER)
			continue;
		for (uint32_t i = t->machine[m].thread; i < t->machine[m].thread + t->machine[m].threads; i++) {
			struct topo_thread *th = &t->thread[i];
			int twin = topo_find_thread(t, 0, th->tid);
			if (twin < 0)
				continue;
			const struct topo_thread *from = &t->thread[twin];
			th->status = th->status == HISTORY_NONE ? from->status : th->status;
			th->name = th->name == HISTORY_NONE ? from->name : th->name;
			th->cpu = th->cpu == HISTORY_NONE ? from->cpu : th->cpu;
			th->pid = th->pid == HISTORY_NONE ? from->pid : th->pid;
			th->woken_by = th->woken_by == HISTORY_NONE ? from->woken_by : th->woken_by;
			th->woken_in = th->woken_in == HISTORY_NONE ? from->woken_in : th->woken_in;
		}
	}
}

/* The first value of attr that is not null: 1 found, 0 never, -1 error. */
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

static void link_vcpu(struct topo *t, uint32_t thread, uint32_t cpu)
{
	int32_t *role = &t->thread[thread].role;
	while (*role >= 0 && t->role[*role].vcpu != cpu)
		role = &t->role[*role].next;
	if (*role >= 0)
		return;
	*role = (int32_t)t->roles;  /* before the array moves */
	t->role = mem_resize(t->role, t->roles + 1, sizeof *t->role);
	t->role[t->roles++] = (struct topo_role){ cpu, -1 };
	if (t->cpu[cpu].host < 0)
		t->cpu[cpu].host = (int32_t)thread;
}

int topo_ref(const struct topo *topo, int64_t value, uint32_t *number)
{
	*number = history_ref_number(value);
	return value == HISTORY_NULL ? -1 : topo_find_machine(topo, history_string(topo->h, history_ref_text(value)));
}

/* The vCPUs that the thread is at times. */
static int link_thread(struct topo *t, uint32_t thread, struct error *err)
{
	const struct topo_thread *th = &t->thread[thread];
	struct history_cursor c;
	struct interval iv;
	int got;
	if (history_range(&c, t->h, th->vm, history_first(t->h), history_last(t->h), err) < 0)
		return -1;
	while ((got = history_range_next(&c, &iv, err)) > 0) {
		uint32_t number;
		int vm = topo_ref(t, iv.value, &number);
		int cpu = vm < 0 || t->machine[vm].kind != MACHINE_VM || (uint32_t)vm == th->machine ? -1
		        : topo_find_cpu(t, (uint32_t)vm, number);
		if (cpu >= 0)
			link_vcpu(t, thread, (uint32_t)cpu);
	}
	return got;
}

/* ".../<VM>/Parent" = "<machine>"; without it the host runs all.  A circle of them is cut. */
static int link_machines(struct topo *t, struct error *err)
{
	for (uint32_t i = 0; i < t->machines; i++) {
		int64_t value;
		char path[600];
		if (t->machine[i].kind != MACHINE_VM)
			continue;
		history_path(path, sizeof path, SCHEMA_VMS, t->machine[i].name, machine_schema[MACHINE_PARENT].name, NULL);
		uint32_t attr = typed(t->h, history_find(t->h, path), &machine_schema[MACHINE_PARENT]);
		int told = attr != HISTORY_NONE ? first_value(t->h, attr, &value, err) : 0;
		if (told < 0)
			return -1;
		int32_t parent = topo_find_machine(t, told ? history_string(t->h, value) : "host"), up = parent;
		while (up >= 0 && up != (int32_t)i)
			up = t->machine[up].parent;
		if (up >= 0 || parent < 0 || t->machine[parent].kind == MACHINE_CONTAINER)
			continue;
		t->machine[i].parent = parent;
		t->machine[parent].runs_vms = true;
	}
	return 0;
}

static int link_vcpus(struct topo *t, struct error *err)
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
		int thread = r && tid > 0 && tid <= INT32_MAX ? topo_find_thread(t, (uint32_t)host, (int32_t)tid) : -1;
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

static void know_states(struct topo *t)
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
	for (i = 0; i < t->cpus && t->cpu[i].polling == HISTORY_NONE; )
		i++;
	if (i < t->cpus)
		map_states(t->h, t->cpu[i].polling, poll_outcome_name, POLL_OUTCOME_COUNT, POLL_UNTOLD, t->poll_outcome);
	for (unsigned n = 0; n < HISTORY_STATES - 1; n++) {
		if (vcpu_use[t->vcpu_state[n]] == USE_LOST)
			t->vcpu_gap |= UINT64_C(1) << n;
		if (is_lost(vcpu_use[t->vcpu_state[n]]))
			t->vcpu_lost |= UINT64_C(1) << n;
		if (thread_use[t->thread_state[n]] == USE_LOST)
			t->thread_gap |= UINT64_C(1) << n;
	}
}

/* Where any vCPU was ever HOST_BLOCKED, PREEMPTED means what it says, and its thread need not be asked. */
static bool is_folded(const struct topo *topo)
{
	int64_t sums[HISTORY_STATES];
	for (uint32_t i = 0; i < topo->cpus; i++) {
		if (topo->cpu[i].status == HISTORY_NONE || topo->machine[topo->cpu[i].machine].kind != MACHINE_VM)
			continue;
		if (history_sums(topo->h, topo->cpu[i].status, history_begin(topo->h), history_end(topo->h), sums, NULL) < 0)
			return true;
		for (int n = 0; n < HISTORY_STATES - 1; n++)
			if (sums[n] && topo->vcpu_state[n] == VCPU_HOST_BLOCKED)
				return false;
	}
	return true;
}

int topo_open(struct topo *topo, const struct history *h, struct error *err)
{
	*topo = (struct topo){ .h = h };
	struct build b = { .topo = topo, .err = err };
	uint32_t host = history_find(h, "/" SCHEMA_HOST);
	if (host != HISTORY_NONE)
		add_machine(&b, "host", MACHINE_HOST, host);
	add_machines(&b, "/" SCHEMA_VMS, MACHINE_VM);
	add_machines(&b, "/" SCHEMA_CONTAINERS, MACHINE_CONTAINER);
	borrow_from_host(topo);
	know_states(topo);
	if (link_machines(topo, err) < 0 || link_vcpus(topo, err) < 0) {
		topo_release(topo);
		return -1;
	}
	topo->folded = is_folded(topo);
	return 0;
}

void topo_release(struct topo *topo)
{
	free(topo->machine);
	free(topo->cpu);
	free(topo->thread);
	free(topo->role);
	*topo = (struct topo){ 0 };
}

int topo_find_machine(const struct topo *topo, const char *name)
{
	if (topo->machines && topo->machine[0].kind == MACHINE_HOST && strcasecmp(name, "host") == 0)
		return 0;
	for (uint32_t i = 0; i < topo->machines; i++)
		if (strcmp(topo->machine[i].name, name) == 0)
			return (int)i;
	return -1;
}

int topo_find_thread(const struct topo *topo, uint32_t machine, int32_t tid)
{
	const struct topo_machine *m = &topo->machine[machine];
	struct topo_thread key = { .tid = tid };
	const struct topo_thread *found = !m->threads ? NULL :
		bsearch(&key, topo->thread + m->thread, m->threads, sizeof key, by_tid);
	return found ? (int)(found - topo->thread) : -1;
}

int topo_find_cpu(const struct topo *topo, uint32_t machine, unsigned number)
{
	const struct topo_machine *m = &topo->machine[machine];
	struct topo_cpu key = { .number = number };
	const struct topo_cpu *found = !m->cpus ? NULL :
		bsearch(&key, topo->cpu + m->cpu, m->cpus, sizeof key, by_number);
	return found ? (int)(found - topo->cpu) : -1;
}

bool topo_is_watched(const struct topo *topo, const struct subject *s)
{
	if (s->kind == SUBJECT_THREAD)
		return true;
	const struct topo_machine *m = &topo->machine[subject_machine(topo, s)];
	bool watched = m->kind != MACHINE_VM;
	for (uint32_t i = 0; i < m->cpus; i++)
		watched = watched || topo->cpu[m->cpu + i].host >= 0;
	return watched;
}

bool topo_is_alone(const struct topo *topo, const struct subject *s)
{
	bool alone = false;
	for (uint32_t i = 0; i < topo->machines; i++)
		if (!s || subject_machine(topo, s) == i)
			alone = alone || !topo_is_watched(topo, &(struct subject){ SUBJECT_MACHINE, i });
	return alone;
}
