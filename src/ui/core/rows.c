/* Builds, folds and unfolds the list of rows. The thread scan is in thread_scan.c, names are in row_names.c. */
#include "ui/core/rows.h"

#include "ui/core/text_filter.h"

#define PROCESS "process:"  /* start of a filter for the threads of a process */

bool row_same(struct row_id a, struct row_id b)
{
	return a.kind == b.kind && a.index == b.index;
}

int64_t row_thread(const struct catalog *catalog, struct row_id id)
{
	return id.kind == ROW_THREAD ? (int64_t)id.index : id.kind == ROW_EXECUTOR ? catalog->cpu[id.index].host : -1;
}

uint32_t row_machine(const struct rows *r, struct row_id id)
{
	const struct catalog *catalog = r->catalog;
	if (id.kind == ROW_REQUEST)
		return r->request[id.index].machine;
	int64_t thread = row_thread(catalog, id);
	if (thread >= 0)
		return catalog->thread[thread].machine;
	if (id.kind == ROW_SLEEPERS)
		return id.index < catalog->cpus ? catalog->cpu[id.index].machine : id.index - catalog->cpus;
	return id.kind == ROW_CPU || id.kind == ROW_PROVIDER ? catalog->cpu[id.index].machine : id.index;
}

uint32_t row_attr(const struct rows *r, struct row_id id)
{
	int64_t thread = row_thread(r->catalog, id);
	if (thread >= 0)
		return r->catalog->thread[thread].status;
	if (id.kind == ROW_REQUEST)
		return r->request[id.index].state;
	if (id.kind == ROW_PROVIDER)
		return r->catalog->cpu[id.index].out_by;
	if (id.kind == ROW_CPU)
		return row_is_pcpu(r->catalog, id) ? r->catalog->cpu[id.index].owner : r->catalog->cpu[id.index].status;
	return HISTORY_NONE;
}

bool cpu_has_provider_row(const struct catalog *catalog, uint32_t cpu)
{
	const struct catalog_cpu *c = &catalog->cpu[cpu];
	return c->host < 0 && c->steal_bound != HISTORY_NONE && c->out_by != HISTORY_NONE;
}

bool row_is_pcpu(const struct catalog *catalog, struct row_id id)
{
	return id.kind == ROW_CPU && catalog->machine[catalog->cpu[id.index].machine].kind == MACHINE_HOST;
}

bool row_target(const struct catalog *catalog, struct row_id id, struct target *s)
{
	if ((row_folds(id) && id.kind != ROW_MACHINE) || id.kind == ROW_REQUEST || row_is_pcpu(catalog, id))
		return false;
	int64_t thread = row_thread(catalog, id);
	s->kind = thread >= 0 ? TARGET_THREAD
	        : id.kind == ROW_CPU || id.kind == ROW_PROVIDER ? TARGET_CPU : TARGET_MACHINE;
	s->index = thread >= 0 ? (uint32_t)thread : id.index;
	return true;
}

/* Returns the index in r->group_first and r->group_count for the threads of a machine without a home vCPU. */
static uint32_t group_index(const struct rows *r, uint32_t machine)
{
	return r->catalog->cpus + machine;
}

#define MAX_REQUESTS 100000

static void find_requests(struct rows *r)
{
	const struct history *h = r->catalog->h;
	uint32_t root = history_find(h, "/" SCHEMA_REQUESTS);
	for (uint32_t m = 0; root != HISTORY_NONE && m < r->catalog->machines; m++) {
		const char *name = r->catalog->machine[m].name;
		uint32_t all = history_child_named(h, root, name), one = HISTORY_NONE;
		while (all != HISTORY_NONE && (one = history_child(h, all, one)) != HISTORY_NONE && r->requests < MAX_REQUESTS) {
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
	case ROW_REQUESTS: return r->catalog->machines;
	case ROW_CPU: return r->catalog->cpus;
	case ROW_SLEEPERS: return r->catalog->cpus + r->catalog->machines;
	default: return 0;
	}
}

bool rows_default_open(const struct rows *r, enum row_kind kind, uint32_t index)
{
	if (kind == ROW_MACHINE)
		return r->catalog->machine[index].kind == MACHINE_HOST || r->catalog->machines <= 6;
	return kind == ROW_CPU;
}

void rows_init(struct rows *r, const struct catalog *catalog)
{
	*r = (struct rows){ .catalog = catalog, .hide_idle = true, .from = INT64_MIN, .to = INT64_MAX,
		.kept.kind = ROW_KINDS };
	r->info = mem_new(catalog->threads, sizeof *r->info);
	r->machine_order = mem_new(catalog->machines, sizeof *r->machine_order);
	r->thread_order = mem_new(catalog->threads, sizeof *r->thread_order);
	r->group_first = mem_new(catalog->cpus + catalog->machines, sizeof *r->group_first);
	r->group_count = mem_new(catalog->cpus + catalog->machines, sizeof *r->group_count);
	r->group_slept = mem_new(catalog->cpus + catalog->machines, sizeof *r->group_slept);
	r->machine_name = mem_new(catalog->machines, sizeof *r->machine_name);
	r->machine_matches = mem_new(catalog->machines, sizeof *r->machine_matches);
	for (uint32_t m = 0; m < catalog->machines; m++) {
		char name[256];
		r->machine_name[m] = mem_dup(text_escape(name, sizeof name, catalog->machine[m].name));
	}
	for (unsigned k = 0; k < ROW_KINDS; k++) {
		uint32_t n = rows_of_kind(r, (enum row_kind)k);
		r->open[k] = n ? mem_new(n, sizeof(bool)) : NULL;
		for (uint32_t i = 0; i < n; i++)
			r->open[k][i] = rows_default_open(r, (enum row_kind)k, i);
	}
	find_requests(r);
	rows_sort(r, r->sort);
}

void rows_release(struct rows *r)
{
	for (uint32_t m = 0; r->machine_name && m < r->catalog->machines; m++)
		free(r->machine_name[m]);
	free(r->machine_name);
	for (uint32_t t = 0; r->info && t < r->catalog->threads; t++)
		free(r->info[t].name);
	free(r->info);
	free(r->machine_order);
	free(r->machine_matches);
	free(r->thread_order);
	free(r->group_first);
	free(r->group_count);
	free(r->group_slept);
	for (int k = 0; k < ROW_KINDS; k++)
		free(r->open[k]);
	free(r->request);
	free(r->row);
	*r = (struct rows){ 0 };
}

/* Appends a row. While a filter is set, rows that contain threads are unfolded, because the filter may match any thread. */
static struct row *push_row(struct rows *r, enum row_kind kind, uint32_t index, uint8_t depth, bool folds)
{
	struct row *row = ARRAY_PUSH(r->row, r->len, r->cap);
	bool open = folds && (r->open[kind][index] || (r->filter[0] && kind != ROW_REQUESTS));
	*row = (struct row){ { (uint8_t)kind, index }, depth, folds, open };
	return row;
}

static bool is_process_filter(const struct rows *r)
{
	return strncmp(r->filter, PROCESS, strlen(PROCESS)) == 0;
}

void rows_set_filter(struct rows *r, const char *text)
{
	char part[sizeof r->filter];
	snprintf(r->filter, sizeof r->filter, "%.63s", text);
	snprintf(part, sizeof part, "%s", r->filter);
	part[strcspn(part, "/")] = '\0';
	for (uint32_t m = 0; m < r->catalog->machines; m++)
		r->machine_matches[m] = strcasestr(r->machine_name[m], part);
	for (uint32_t t = 0; t < r->catalog->threads && is_process_filter(r); t++)
		r->info[t].in_process = catalog_is_in_process(r->catalog, t, r->filter + strlen(PROCESS));
}

/* Returns true if the filter matches the name of the thread or of its machine. "bian/sshd" requires both: machine and
 * thread. "~REGEX" matches "MACHINE/TID NAME", "process:NAME" the threads of a process. */
static bool thread_passes(const struct rows *r, uint32_t t)
{
	const char *slash = strchr(r->filter, '/');
	uint32_t m = r->catalog->thread[t].machine;
	if (is_process_filter(r))
		return r->info[t].in_process;
	if (filter_is_regex(r->filter)) {
		char title[512];
		snprintf(title, sizeof title, "%s/%s", r->machine_name[m], r->info[t].name);
		return filter_matches(title, r->filter);
	}
	if (slash)
		return r->machine_matches[m] && strcasestr(r->info[t].name, slash + 1);
	return (r->machine_matches[m] && (r->info[t].active || !r->hide_idle)) || strcasestr(r->info[t].name, r->filter);
}

/* Returns true if vCPUs and the machine are shown even if none of their threads is. */
static bool shows_empty_machine(const struct rows *r, uint32_t m)
{
	return !r->filter[0] || (!filter_is_regex(r->filter) && !strchr(r->filter, '/') && r->machine_matches[m]);
}

static bool shows_thread(struct rows *r, uint32_t t)
{
	const struct thread_info *info = &r->info[t];
	if (!info->name)
		return false;
	if (r->filter[0])
		return thread_passes(r, t);
	const bool alive = info->first <= r->to && info->last >= r->from;
	const bool kept = row_same(r->kept, (struct row_id){ ROW_THREAD, t });
	if (r->hide_idle && (!info->active || (!alive && !kept))) {
		r->hidden++;
		return false;
	}
	return true;
}

/* Returns true if the thread slept in the whole window. Folded are neither the kept row nor rows that a filter, or H, asked
 * for. */
static bool folds_as_sleeper(const struct rows *r, uint32_t t)
{
	const struct catalog *catalog = r->catalog;
	const uint32_t status = catalog->thread[t].status;
	struct interval iv;
	if (!r->hide_idle || r->filter[0] || status == HISTORY_NONE || row_same(r->kept, (struct row_id){ ROW_THREAD, t }) ||
	    r->from < history_first(catalog->h) || history_stab(catalog->h, status, r->from, &iv, NULL) < 0)
		return false;
	return iv.end >= r->to && iv.value >= 0 && iv.value < HISTORY_STATES &&
	       catalog->thread_state[iv.value] == THREAD_BLOCKED;
}

/* Appends the rows of the threads with this home vCPU or group, those of sleepers last. Returns the number of rows. */
static size_t push_threads(struct rows *r, uint32_t home, uint8_t depth)
{
	const size_t before = r->len;
	const uint32_t *thread = r->thread_order + r->group_first[home];
	uint32_t slept = 0;
	for (uint32_t i = 0; i < r->group_count[home]; i++) {
		const bool shows = shows_thread(r, thread[i]);
		slept += r->info[thread[i]].slept = shows && folds_as_sleeper(r, thread[i]);
		if (shows && !r->info[thread[i]].slept)
			push_row(r, ROW_THREAD, thread[i], depth, false);
	}
	r->group_slept[home] = slept;
	if (!slept || (slept > 1 && !push_row(r, ROW_SLEEPERS, home, depth, true)->open))
		return r->len - before;
	for (uint32_t i = 0; i < r->group_count[home]; i++)
		if (r->info[thread[i]].slept)
			push_row(r, ROW_THREAD, thread[i], (uint8_t)(depth + (slept > 1)), false);
	return r->len - before;
}

/* Appends the group of threads without a home vCPU; with a filter only if one of the threads matches. Returns the number
 * of threads. */
static size_t push_group(struct rows *r, uint32_t m)
{
	size_t group = r->len, threads = 0;
	if (push_row(r, ROW_GROUP, m, 1, true)->open)
		threads = push_threads(r, group_index(r, m), 2);
	if (r->filter[0] && threads == 0)
		r->len = group;
	return threads;
}

static void push_requests(struct rows *r, uint32_t m)
{
	size_t first = 0;
	while (first < r->requests && r->request[first].machine != m)
		first++;
	if (first == r->requests || !push_row(r, ROW_REQUESTS, m, 1, true)->open)
		return;
	for (size_t i = first; i < r->requests && r->request[i].machine == m; i++)
		push_row(r, ROW_REQUEST, (uint32_t)i, 2, false);
}

/* Appends a CPU and its threads; with a filter a vCPU only if one of its threads matches. Returns the number of threads. */
static size_t push_cpu(struct rows *r, uint32_t c, bool is_virtual)
{
	size_t cpu = r->len, threads = 0;
	bool open = push_row(r, ROW_CPU, c, 1, r->group_count[c] > 0)->open;
	if (r->show_executors && is_virtual && r->catalog->cpu[c].host >= 0)
		push_row(r, ROW_EXECUTOR, c, 2, false);
	if (cpu_has_provider_row(r->catalog, c))
		push_row(r, ROW_PROVIDER, c, 2, false);
	if (open)
		threads = push_threads(r, c, 2);
	if (is_virtual && threads == 0 && !shows_empty_machine(r, r->catalog->cpu[c].machine))
		r->len = cpu;
	return threads;
}

/* Appends a machine. A filter hides a machine without matching threads, but never the host. */
static void push_machine(struct rows *r, uint32_t m)
{
	const struct catalog_machine *machine = &r->catalog->machine[m];
	bool host = machine->kind == MACHINE_HOST;
	size_t machine_row = r->len, threads = 0;
	if (!push_row(r, ROW_MACHINE, m, 0, machine->cpus > 0 || machine->threads > 0)->open)
		return;
	for (uint32_t c = machine->cpu; c < machine->cpu + machine->cpus; c++)
		threads += push_cpu(r, c, !host);
	if (machine->cpus == 0)
		threads += push_threads(r, group_index(r, m), 1);
	else if (r->group_count[group_index(r, m)] > 0)
		threads += push_group(r, m);
	if (!r->filter[0])
		push_requests(r, m);
	else if (threads == 0 && !host && !shows_empty_machine(r, m))
		r->len = machine_row;
}

int32_t row_outer_vm(const struct catalog *catalog, uint32_t m)
{
	int32_t parent = catalog->machine[m].parent;
	return parent >= 0 && catalog->machine[parent].kind == MACHINE_VM ? parent : -1;
}

/* Appends a machine, then its nested machines. */
static void push_with_nested(struct rows *r, uint32_t m)
{
	push_machine(r, m);
	for (uint32_t i = 0; i < r->catalog->machines && r->catalog->machine[m].runs_vms; i++)
		if (row_outer_vm(r->catalog, r->machine_order[i]) == (int32_t)m)
			push_with_nested(r, r->machine_order[i]);
}

void rows_build(struct rows *r)
{
	r->len = 0;
	r->hidden = 0;
	for (uint32_t i = 0; i < r->catalog->machines; i++)
		if (row_outer_vm(r->catalog, r->machine_order[i]) < 0)
			push_with_nested(r, r->machine_order[i]);
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
	if (id.kind == ROW_EXECUTOR || id.kind == ROW_PROVIDER || (id.kind == ROW_SLEEPERS && id.index < r->catalog->cpus))
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

void rows_set_window(struct rows *r, int64_t from, int64_t to, struct row_id kept)
{
	const bool hidden = r->hide_idle && kept.kind == ROW_THREAD && rows_find(r, kept) == r->len;
	const bool changed = r->from != from || r->to != to || hidden;
	r->from = from;
	r->to = to;
	r->kept = kept;
	if (changed && r->hide_idle && rows_scan_done(r))
		rows_build(r);
}

void rows_reveal(struct rows *r, struct row_id id)
{
	uint32_t m = row_machine(r, id);
	r->kept = id;
	if (id.kind == ROW_EXECUTOR) {
		m = r->catalog->cpu[id.index].machine;
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
	for (uint32_t m = 0; m < r->catalog->machines; m++)
		any |= r->open[ROW_MACHINE][m];
	for (uint32_t m = 0; m < r->catalog->machines && !r->filter[0]; m++)
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
