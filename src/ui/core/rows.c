/* The list of rows: building, folding.  The survey is in thread_scan.c, names are in row_names.c. */
#include "ui/core/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

bool row_same(struct row_id a, struct row_id b)
{
	return a.kind == b.kind && a.index == b.index;
}

int64_t row_thread(const struct topo *topo, struct row_id id)
{
	return id.kind == ROW_THREAD ? (int64_t)id.index : id.kind == ROW_EXECUTOR ? topo->cpu[id.index].host : -1;
}

uint32_t row_machine(const struct rows *r, struct row_id id)
{
	const struct topo *topo = r->topo;
	if (id.kind == ROW_REQUEST)
		return r->request[id.index].machine;
	int64_t thread = row_thread(topo, id);
	if (thread >= 0)
		return topo->thread[thread].machine;
	return id.kind == ROW_CPU ? topo->cpu[id.index].machine : id.index;
}

uint32_t row_attr(const struct rows *r, struct row_id id)
{
	int64_t thread = row_thread(r->topo, id);
	if (thread >= 0)
		return r->topo->thread[thread].status;
	if (id.kind == ROW_REQUEST)
		return r->request[id.index].state;
	if (id.kind == ROW_CPU)
		return row_is_pcpu(r->topo, id) ? r->topo->cpu[id.index].owner : r->topo->cpu[id.index].status;
	return HISTORY_NONE;
}

bool row_is_pcpu(const struct topo *topo, struct row_id id)
{
	return id.kind == ROW_CPU && topo->machine[topo->cpu[id.index].machine].kind == MACHINE_HOST;
}

bool row_subject(const struct topo *topo, struct row_id id, struct subject *s)
{
	if (id.kind == ROW_GROUP || id.kind == ROW_REQUESTS || id.kind == ROW_REQUEST || row_is_pcpu(topo, id))
		return false;
	int64_t thread = row_thread(topo, id);
	s->kind = thread >= 0 ? SUBJECT_THREAD : id.kind == ROW_CPU ? SUBJECT_CPU : SUBJECT_MACHINE;
	s->index = thread >= 0 ? (uint32_t)thread : id.index;
	return true;
}

/* Where the homeless threads of a machine are counted. */
static size_t homeless(const struct rows *r, uint32_t machine)
{
	return r->topo->cpus + machine;
}

#define MOST_REQUESTS 100000

static void find_requests(struct rows *r)
{
	const struct history *h = r->topo->h;
	uint32_t root = history_find(h, "/" SCHEMA_REQUESTS);
	for (uint32_t m = 0; root != HISTORY_NONE && m < r->topo->machines; m++) {
		const char *name = r->topo->machine[m].name;
		uint32_t all = history_child_named(h, root, name), one = HISTORY_NONE;
		while (all != HISTORY_NONE && (one = history_child(h, all, one)) != HISTORY_NONE && r->requests < MOST_REQUESTS) {
			uint32_t state = history_child_named(h, one, request_schema[REQUEST_STATE].name);
			if (state != HISTORY_NONE && history_type(h, state) == HISTORY_STATE)
				*ARRAY_PUSH(r->request, r->requests, r->requests_cap) = (struct row_request){ one, state, m };
		}
	}
}

uint32_t rows_of_kind(const struct rows *r, enum row_kind kind)
{
	switch (kind) {
	case ROW_MACHINE:
	case ROW_GROUP:
	case ROW_REQUESTS: return r->topo->machines;
	case ROW_CPU: return r->topo->cpus;
	default: return 0;
	}
}

bool rows_open_at_first(const struct rows *r, enum row_kind kind, uint32_t index)
{
	if (kind == ROW_MACHINE)
		return r->topo->machine[index].kind == MACHINE_HOST || r->topo->machines <= 6;
	return kind == ROW_CPU;
}

void rows_init(struct rows *r, const struct topo *topo)
{
	*r = (struct rows){ .topo = topo, .hide_idle = true };
	r->info = mem_new(topo->threads, sizeof *r->info);
	r->machines = mem_new(topo->machines, sizeof *r->machines);
	r->order = mem_new(topo->threads, sizeof *r->order);
	r->first = mem_new(topo->cpus + topo->machines, sizeof *r->first);
	r->count = mem_new(topo->cpus + topo->machines, sizeof *r->count);
	r->machine = mem_new(topo->machines, sizeof *r->machine);
	r->named = mem_new(topo->machines, sizeof *r->named);
	for (uint32_t m = 0; m < topo->machines; m++) {
		char name[256];
		r->machine[m] = mem_dup(text_escape(name, sizeof name, topo->machine[m].name));
	}
	for (unsigned k = 0; k < ROW_KINDS; k++) {
		uint32_t n = rows_of_kind(r, (enum row_kind)k);
		r->open[k] = n ? mem_new(n, sizeof(bool)) : NULL;
		for (uint32_t i = 0; i < n; i++)
			r->open[k][i] = rows_open_at_first(r, (enum row_kind)k, i);
	}
	find_requests(r);
	rows_sort(r, r->sort);
}

void rows_release(struct rows *r)
{
	for (uint32_t m = 0; r->machine && m < r->topo->machines; m++)
		free(r->machine[m]);
	free(r->machine);
	for (uint32_t t = 0; r->info && t < r->topo->threads; t++)
		free(r->info[t].name);
	free(r->info);
	free(r->machines);
	free(r->named);
	free(r->order);
	free(r->first);
	free(r->count);
	for (int k = 0; k < ROW_KINDS; k++)
		free(r->open[k]);
	free(r->request);
	free(r->row);
	*r = (struct rows){ 0 };
}

/* A filter finds threads wherever they are: while there is one, nothing that holds threads is folded. */
static struct row *push(struct rows *r, enum row_kind kind, uint32_t index, uint8_t depth, bool folds)
{
	struct row *row = ARRAY_PUSH(r->row, r->len, r->cap);
	bool open = folds && (r->open[kind][index] || (r->filter[0] && kind != ROW_REQUESTS));
	*row = (struct row){ { (uint8_t)kind, index }, depth, folds, open };
	return row;
}

void rows_set_filter(struct rows *r, const char *text)
{
	char part[sizeof r->filter];
	snprintf(r->filter, sizeof r->filter, "%.63s", text);
	snprintf(part, sizeof part, "%s", r->filter);
	part[strcspn(part, "/")] = '\0';
	for (uint32_t m = 0; m < r->topo->machines; m++)
		r->named[m] = strcasestr(r->machine[m], part);
}

/* Does the filter leave this thread?  By its own name, or by its machine's; "bian/sshd" asks for both. */
static bool thread_passes(const struct rows *r, uint32_t t)
{
	const char *slash = strchr(r->filter, '/');
	uint32_t m = r->topo->thread[t].machine;
	if (slash)
		return r->named[m] && strcasestr(r->info[t].name, slash + 1);
	return (r->named[m] && (r->info[t].active || !r->hide_idle)) || strcasestr(r->info[t].name, r->filter);
}

/* Is what holds no thread shown all the same? */
static bool stays_empty(const struct rows *r, uint32_t m)
{
	return !r->filter[0] || (!strchr(r->filter, '/') && r->named[m]);
}

static bool shows_thread(struct rows *r, uint32_t t)
{
	const struct thread_info *info = &r->info[t];
	if (!info->name)
		return false;
	if (r->filter[0])
		return thread_passes(r, t);
	if (r->hide_idle && !info->active) {
		r->hidden++;
		return false;
	}
	return true;
}

/* Returns how many there are. */
static size_t push_threads(struct rows *r, size_t home, uint8_t depth)
{
	size_t before = r->len;
	for (uint32_t i = 0; i < r->count[home]; i++) {
		uint32_t t = r->order[r->first[home] + i];
		if (shows_thread(r, t))
			push(r, ROW_THREAD, t, depth, false);
	}
	return r->len - before;
}

/* The threads that live on no vCPU; with a filter, only if one of them is left. */
static size_t push_group(struct rows *r, uint32_t m)
{
	size_t group = r->len, threads = 0;
	if (push(r, ROW_GROUP, m, 1, true)->open)
		threads = push_threads(r, homeless(r, m), 2);
	if (r->filter[0] && threads == 0)
		r->len = group;
	return threads;
}

static void push_requests(struct rows *r, uint32_t m)
{
	size_t first = 0;
	while (first < r->requests && r->request[first].machine != m)
		first++;
	if (first == r->requests || !push(r, ROW_REQUESTS, m, 1, true)->open)
		return;
	for (size_t i = first; i < r->requests && r->request[i].machine == m; i++)
		push(r, ROW_REQUEST, (uint32_t)i, 2, false);
}

/* A CPU and the threads that live on it; with a filter, a vCPU only if one of them is left. */
static size_t push_cpu(struct rows *r, uint32_t c, bool is_virtual)
{
	size_t cpu = r->len, threads = 0;
	bool open = push(r, ROW_CPU, c, 1, r->count[c] > 0)->open;
	if (r->show_executors && is_virtual && r->topo->cpu[c].host >= 0)
		push(r, ROW_EXECUTOR, c, 2, false);
	if (open)
		threads = push_threads(r, c, 2);
	if (is_virtual && threads == 0 && !stays_empty(r, r->topo->cpu[c].machine))
		r->len = cpu;
	return threads;
}

/* With a filter, only the host stays without a thread that it leaves. */
static void push_machine(struct rows *r, uint32_t m)
{
	const struct topo_machine *machine = &r->topo->machine[m];
	bool host = machine->kind == MACHINE_HOST;
	size_t top = r->len, threads = 0;
	if (!push(r, ROW_MACHINE, m, 0, machine->cpus > 0 || machine->threads > 0)->open)
		return;
	for (uint32_t c = machine->cpu; c < machine->cpu + machine->cpus; c++)
		threads += push_cpu(r, c, !host);
	if (machine->cpus == 0)
		threads += push_threads(r, homeless(r, m), 1);
	else if (r->count[homeless(r, m)] > 0)
		threads += push_group(r, m);
	if (!r->filter[0])
		push_requests(r, m);
	else if (threads == 0 && !host && !stays_empty(r, m))
		r->len = top;
}

int32_t row_outer_vm(const struct topo *topo, uint32_t m)
{
	int32_t parent = topo->machine[m].parent;
	return parent >= 0 && topo->machine[parent].kind == MACHINE_VM ? parent : -1;
}

/* A machine, then those inside it. */
static void push_nest(struct rows *r, uint32_t m)
{
	push_machine(r, m);
	for (uint32_t i = 0; i < r->topo->machines && r->topo->machine[m].runs_vms; i++)
		if (row_outer_vm(r->topo, r->machines[i]) == (int32_t)m)
			push_nest(r, r->machines[i]);
}

void rows_build(struct rows *r)
{
	r->len = 0;
	r->hidden = 0;
	for (uint32_t i = 0; i < r->topo->machines; i++)
		if (row_outer_vm(r->topo, r->machines[i]) < 0)
			push_nest(r, r->machines[i]);
}

size_t rows_find(const struct rows *r, struct row_id id)
{
	for (size_t i = 0; i < r->len; i++)
		if (row_same(r->row[i].id, id))
			return i;
	return r->len;
}

size_t rows_find_near(const struct rows *r, struct row_id id)
{
	size_t i = rows_find(r, id);
	if (i < r->len)
		return i;
	if (id.kind == ROW_EXECUTOR)
		return rows_find_near(r, (struct row_id){ ROW_CPU, id.index });
	uint32_t m = row_machine(r, id);
	if (id.kind == ROW_REQUEST)
		i = rows_find(r, (struct row_id){ ROW_REQUESTS, m });
	if (id.kind == ROW_THREAD) {
		int32_t home = r->info[id.index].home;
		id = home >= 0 ? (struct row_id){ ROW_CPU, (uint32_t)home } : (struct row_id){ ROW_GROUP, m };
		i = rows_find(r, id);
	}
	if (i == r->len)
		i = rows_find(r, (struct row_id){ ROW_MACHINE, m });
	return i < r->len ? i : 0;
}

void rows_reveal(struct rows *r, struct row_id id)
{
	uint32_t m = row_machine(r, id);
	if (id.kind == ROW_EXECUTOR) {
		m = r->topo->cpu[id.index].machine;
		r->show_executors = true;
	}
	if (id.kind != ROW_MACHINE)
		r->open[ROW_MACHINE][m] = true;
	if (id.kind == ROW_REQUEST)
		r->open[ROW_REQUESTS][m] = true;
	if (id.kind == ROW_THREAD) {
		const struct thread_info *info = &r->info[id.index];
		if (info->home >= 0)
			r->open[ROW_CPU][info->home] = true;
		else
			r->open[ROW_GROUP][m] = true;
		if (r->filter[0] && info->name && !thread_passes(r, id.index))
			rows_set_filter(r, "");
		if (!info->active && !r->filter[0])
			r->hide_idle = false;
	}
	rows_build(r);
}

bool rows_toggle_all(struct rows *r)
{
	bool any = false;
	for (uint32_t m = 0; m < r->topo->machines; m++)
		any |= r->open[ROW_MACHINE][m];
	for (uint32_t m = 0; m < r->topo->machines && !r->filter[0]; m++)
		r->open[ROW_MACHINE][m] = !any;
	rows_build(r);
	return !r->filter[0];
}

bool rows_toggle(struct rows *r, size_t row)
{
	if (row >= r->len || !r->row[row].folds || r->filter[0])
		return false;
	struct row_id id = r->row[row].id;
	r->open[id.kind][id.index] = !r->open[id.kind][id.index];
	rows_build(r);
	return true;
}
