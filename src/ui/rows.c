/* The list of rows: building, folding, finding.  The survey is in survey.c. */
#include "ui/rows.h"

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
	uint32_t root = history_find(h, "/Requests");
	for (uint32_t m = 0; root != HISTORY_NONE && m < r->topo->machines; m++) {
		const char *name = r->topo->machine[m].name;
		uint32_t all = history_child_named(h, root, name), one = HISTORY_NONE;
		while (all != HISTORY_NONE && (one = history_child(h, all, one)) != HISTORY_NONE && r->requests < MOST_REQUESTS) {
			uint32_t state = history_child_named(h, one, "State");
			if (state != HISTORY_NONE && history_type(h, state) == HISTORY_STATE)
				*ARRAY_PUSH(r->request, r->requests, r->requests_cap) = (struct row_request){ one, state, m };
		}
	}
}

void rows_init(struct rows *r, const struct topo *topo)
{
	*r = (struct rows){ .topo = topo, .hide_idle = true };
	r->info = mem_new(topo->threads, sizeof *r->info);
	r->order = mem_new(topo->threads, sizeof *r->order);
	r->first = mem_new(topo->cpus + topo->machines, sizeof *r->first);
	r->count = mem_new(topo->cpus + topo->machines, sizeof *r->count);
	r->open[ROW_MACHINE] = mem_new(topo->machines, sizeof(bool));
	r->open[ROW_GROUP] = mem_new(topo->machines, sizeof(bool));
	r->open[ROW_REQUESTS] = mem_new(topo->machines, sizeof(bool));
	r->open[ROW_CPU] = mem_new(topo->cpus, sizeof(bool));
	for (uint32_t m = 0; m < topo->machines; m++)
		r->open[ROW_MACHINE][m] = topo->machine[m].kind == MACHINE_HOST || topo->machines <= 6;
	for (uint32_t c = 0; c < topo->cpus; c++)
		r->open[ROW_CPU][c] = true;
	find_requests(r);
}

void rows_release(struct rows *r)
{
	for (uint32_t t = 0; r->info && t < r->topo->threads; t++)
		free(r->info[t].name);
	free(r->info);
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

static bool shows_thread(struct rows *r, uint32_t t)
{
	const struct thread_info *info = &r->info[t];
	if (!info->name)
		return false;
	if (r->filter[0])
		return strcasestr(info->name, r->filter) != NULL;
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
	if (r->filter[0] && is_virtual && threads == 0)
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
	else if (threads == 0 && !host)
		r->len = top;
}

/* The VM that runs a VM, or -1: the host does. */
static int32_t outer_vm(const struct topo *topo, uint32_t m)
{
	int32_t parent = topo->machine[m].parent;
	return parent >= 0 && topo->machine[parent].kind == MACHINE_VM ? parent : -1;
}

/* A machine, then those inside it. */
static void push_nest(struct rows *r, uint32_t m)
{
	push_machine(r, m);
	for (uint32_t i = 0; i < r->topo->machines && r->topo->machine[m].runs_vms; i++)
		if (outer_vm(r->topo, i) == (int32_t)m)
			push_nest(r, i);
}

void rows_build(struct rows *r)
{
	r->len = 0;
	r->hidden = 0;
	for (int host = 0; host < 2; host++)
		for (uint32_t m = 0; m < r->topo->machines; m++)
			if ((r->topo->machine[m].kind == MACHINE_HOST) == (host == 1) && outer_vm(r->topo, m) < 0)
				push_nest(r, m);
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
		if (r->filter[0] && info->name && !strcasestr(info->name, r->filter))
			r->filter[0] = '\0';
		if (!info->active && !r->filter[0])
			r->hide_idle = false;
	}
	rows_build(r);
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

const char *row_label(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	const struct topo *topo = r->topo;
	switch (id.kind) {
	case ROW_MACHINE: {
		char name[128], outer[128];
		int32_t in = outer_vm(topo, id.index);
		text_escape(name, sizeof name, topo->machine[id.index].name);
		snprintf(buf, size, "%s%s%s", name, in >= 0 ? " in " : "",
		         in >= 0 ? text_escape(outer, sizeof outer, topo->machine[in].name) : "");
		return buf;
	}
	case ROW_CPU:
		snprintf(buf, size, "%s%u", row_is_pcpu(topo, id) ? "CPU" : "vCPU", topo->cpu[id.index].number);
		return buf;
	case ROW_GROUP:
		snprintf(buf, size, "threads");
		return buf;
	case ROW_REQUESTS:
		snprintf(buf, size, "requests");
		return buf;
	case ROW_REQUEST:
		return text_escape(buf, size, history_name(topo->h, r->request[id.index].node));
	default: {
		const char *name = r->info[row_thread(topo, id)].name;
		char machine[64] = "";
		if (id.kind == ROW_EXECUTOR)
			text_escape(machine, sizeof machine, topo->machine[row_machine(r, id)].name);
		snprintf(buf, size, "%s%s%s", machine, machine[0] ? "/" : "", name ? name : "...");
		return buf;
	}
	}
}

char *row_title(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	char label[256], machine[128];
	row_label(r, id, label, sizeof label);
	text_escape(machine, sizeof machine, r->topo->machine[row_machine(r, id)].name);
	if (id.kind == ROW_MACHINE || id.kind == ROW_EXECUTOR)
		snprintf(buf, size, "%s", id.kind == ROW_MACHINE ? machine : label);
	else
		snprintf(buf, size, "%s/%s", machine, label);
	return buf;
}

static const char *const kind_name[ROW_KINDS] = {
	[ROW_MACHINE] = "machine", [ROW_CPU] = "cpu", [ROW_GROUP] = "group", [ROW_THREAD] = "thread",
	[ROW_EXECUTOR] = "executor", [ROW_REQUESTS] = "requests", [ROW_REQUEST] = "request",
};

char *row_key(const struct rows *r, struct row_id id, char buf[ROW_KEY])
{
	const struct topo *topo = r->topo;
	bool cpu = id.kind == ROW_CPU || id.kind == ROW_EXECUTOR;
	uint32_t m = cpu ? topo->cpu[id.index].machine : row_machine(r, id);
	char machine[256], rest[256] = "";
	if (cpu)
		snprintf(rest, sizeof rest, "%u", topo->cpu[id.index].number);
	else if (id.kind == ROW_THREAD)
		snprintf(rest, sizeof rest, "%" PRId32, topo->thread[id.index].tid);
	else if (id.kind == ROW_REQUEST)
		text_escape(rest, sizeof rest, history_name(topo->h, r->request[id.index].node));
	snprintf(buf, ROW_KEY, "%s %s%s%s", kind_name[id.kind], text_escape(machine, sizeof machine, topo->machine[m].name),
	         rest[0] ? "/" : "", rest);
	return buf;
}

/* The row of that kind within a machine; -1 when there is none. */
static int64_t row_within(const struct rows *r, uint8_t kind, uint32_t machine, const char *rest)
{
	char name[256], *end = NULL;
	if (kind == ROW_MACHINE || kind == ROW_GROUP || kind == ROW_REQUESTS)
		return rest[0] ? -1 : (int64_t)machine;
	for (size_t i = 0; kind == ROW_REQUEST && i < r->requests; i++)
		if (r->request[i].machine == machine &&
		    strcmp(text_escape(name, sizeof name, history_name(r->topo->h, r->request[i].node)), rest) == 0)
			return (int64_t)i;
	long number = strtol(rest, &end, 10);
	if (kind == ROW_REQUEST || end == rest || *end || number < 0 || number > INT32_MAX)
		return -1;
	int64_t index = kind == ROW_THREAD ? topo_find_thread(r->topo, machine, (int32_t)number)
	                                   : topo_find_cpu(r->topo, machine, (unsigned)number);
	return kind == ROW_EXECUTOR && index >= 0 && r->topo->cpu[index].host < 0 ? -1 : index;
}

bool row_of_key(const struct rows *r, const char *key, struct row_id *id)
{
	size_t n = strcspn(key, " ");
	uint8_t kind = 0;
	while (kind < ROW_KINDS && (strlen(kind_name[kind]) != n || strncmp(key, kind_name[kind], n) != 0))
		kind++;
	if (kind == ROW_KINDS || key[n] != ' ')
		return false;
	key += n + 1;
	for (uint32_t m = 0; m < r->topo->machines; m++) {
		char machine[256];
		size_t len = strlen(text_escape(machine, sizeof machine, r->topo->machine[m].name));
		if (strncmp(key, machine, len) != 0 || (key[len] && key[len] != '/'))
			continue;
		int64_t index = row_within(r, kind, m, key + len + (key[len] == '/'));
		if (index >= 0) {
			*id = (struct row_id){ kind, (uint32_t)index };
			return true;
		}
	}
	return false;
}

/* All rows, shown or not, numbered in the order of a search: machines, CPUs, threads as sorted. */
static struct row_id nth(const struct rows *r, uint64_t n)
{
	const struct topo *topo = r->topo;
	if (n < topo->machines)
		return (struct row_id){ ROW_MACHINE, (uint32_t)n };
	n -= topo->machines;
	if (n < topo->cpus)
		return (struct row_id){ ROW_CPU, (uint32_t)n };
	return (struct row_id){ ROW_THREAD, r->order[n - topo->cpus] };
}

static uint64_t number_of(const struct rows *r, struct row_id id)
{
	const struct topo *topo = r->topo;
	if (id.kind == ROW_MACHINE || id.kind == ROW_GROUP || id.kind == ROW_REQUESTS || id.kind == ROW_REQUEST)
		return row_machine(r, id);
	if (id.kind == ROW_CPU || id.kind == ROW_EXECUTOR)
		return topo->machines + id.index;
	uint64_t n = 0;
	while (n < topo->threads && r->order[n] != id.index)
		n++;
	return topo->machines + topo->cpus + n;
}

/* "bian/35" finds "Debian/3525 critical_task"; a text without '/' is looked for in the label alone, so that the name
 * of a machine does not find all its threads. */
static bool matches(const struct rows *r, struct row_id id, const char *text)
{
	char buf[256], machine[256];
	const char *label = id.kind == ROW_THREAD ? r->info[id.index].name : row_label(r, id, buf, sizeof buf);
	const char *slash = strchr(text, '/');
	if (!label)
		return false;
	if (!slash || id.kind == ROW_MACHINE)
		return strcasestr(label, text) != NULL;
	if (strncasecmp(label, slash + 1, strlen(slash + 1)) != 0)
		return false;
	size_t n = (size_t)(slash - text);
	size_t len = strlen(text_escape(machine, sizeof machine, r->topo->machine[row_machine(r, id)].name));
	return len >= n && strncasecmp(machine + len - n, text, n) == 0;
}

bool rows_search(const struct rows *r, const char *text, struct row_id from, int direction, bool include_from,
                 struct row_id *found)
{
	const struct topo *topo = r->topo;
	uint64_t total = (uint64_t)topo->machines + topo->cpus + topo->threads;
	uint64_t n = number_of(r, from) % (total ? total : 1);
	for (uint64_t i = 0; i < total; i++) {
		if (i > 0 || !include_from)
			n = direction > 0 ? (n + 1) % total : (n + total - 1) % total;
		struct row_id id = nth(r, n);
		if (matches(r, id, text)) {
			*found = id;
			return true;
		}
	}
	return false;
}
