/* Names of rows on the screen and in files, and the search for rows by name. */
#include "base/base.h"
#include "ui/core/rows.h"

#include "ui/core/text_filter.h"

const char *row_label(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	const struct catalog *catalog = r->catalog;
	switch (id.kind) {
	case ROW_MACHINE: {
		int32_t in = row_outer_vm(catalog, id.index);
		snprintf(buf, size, "%s%s%s", r->machine_name[id.index], in >= 0 ? " in " : "", in >= 0 ? r->machine_name[in] : "");
		return buf;
	}
	case ROW_CPU:
		snprintf(buf, size, "%s%u", row_is_pcpu(catalog, id) ? "CPU" : "vCPU", catalog->cpu[id.index].number);
		return buf;
	case ROW_PROVIDER:
		snprintf(buf, size, "provider");
		return buf;
	case ROW_GROUP:
		snprintf(buf, size, "threads");
		return buf;
	case ROW_REQUESTS:
		snprintf(buf, size, "requests");
		return buf;
	case ROW_SLEEPERS:
		snprintf(buf, size, "%u threads slept", r->group_slept[id.index]);
		return buf;
	case ROW_REQUEST:
		return text_escape(buf, size, history_name(catalog->h, r->request[id.index].node));
	default: {
		const char *name = r->info[row_thread(catalog, id)].name;
		const char *machine = id.kind == ROW_EXECUTOR ? r->machine_name[row_machine(r, id)] : "";
		snprintf(buf, size, "%s%s%s", machine, machine[0] ? "/" : "", name ? name : "...");
		return buf;
	}
	}
}

char *row_title(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	char label[256];
	const char *machine = r->machine_name[row_machine(r, id)];
	row_label(r, id, label, sizeof label);
	if (id.kind == ROW_MACHINE || id.kind == ROW_EXECUTOR)
		snprintf(buf, size, "%s", id.kind == ROW_MACHINE ? machine : label);
	else if (id.kind == ROW_PROVIDER)
		snprintf(buf, size, "%s/vCPU%u %s", machine, r->catalog->cpu[id.index].number, label);
	else
		snprintf(buf, size, "%s/%s", machine, label);
	return buf;
}

static const char *const kind_name[ROW_KINDS] = {
	[ROW_MACHINE] = "machine", [ROW_CPU] = "cpu", [ROW_GROUP] = "group", [ROW_THREAD] = "thread",
	[ROW_EXECUTOR] = "executor", [ROW_PROVIDER] = "provider", [ROW_REQUESTS] = "requests", [ROW_REQUEST] = "request",
	[ROW_SLEEPERS] = "sleepers",
};

char *row_key(const struct rows *r, struct row_id id, char buf[ROW_KEY])
{
	const struct catalog *catalog = r->catalog;
	bool cpu = id.kind == ROW_CPU || id.kind == ROW_EXECUTOR || id.kind == ROW_PROVIDER ||
	           (id.kind == ROW_SLEEPERS && id.index < catalog->cpus);
	uint32_t m = cpu ? catalog->cpu[id.index].machine : row_machine(r, id);
	char suffix[256] = "";
	if (cpu)
		snprintf(suffix, sizeof suffix, "%u", catalog->cpu[id.index].number);
	else if (id.kind == ROW_THREAD)
		snprintf(suffix, sizeof suffix, "%" PRId32, catalog->thread[id.index].tid);
	else if (id.kind == ROW_REQUEST)
		text_escape(suffix, sizeof suffix, history_name(catalog->h, r->request[id.index].node));
	snprintf(buf, ROW_KEY, "%s %s%s%s", kind_name[id.kind], r->machine_name[m], suffix[0] ? "/" : "", suffix);
	return buf;
}

/* Returns the index of the row of that kind within a machine; -1: none. suffix: name after the machine, "" if none. */
static int64_t row_within(const struct rows *r, uint8_t kind, uint32_t machine, const char *suffix)
{
	char name[256], *end = NULL;
	if (kind == ROW_MACHINE || kind == ROW_GROUP || kind == ROW_REQUESTS)
		return suffix[0] ? -1 : (int64_t)machine;
	if (kind == ROW_SLEEPERS && !suffix[0])
		return r->catalog->cpus + machine;
	for (size_t i = 0; kind == ROW_REQUEST && i < r->requests; i++)
		if (r->request[i].machine == machine &&
		    strcmp(text_escape(name, sizeof name, history_name(r->catalog->h, r->request[i].node)), suffix) == 0)
			return (int64_t)i;
	long number = strtol(suffix, &end, 10);
	if (kind == ROW_REQUEST || end == suffix || *end || number < 0 || number > INT32_MAX)
		return -1;
	int64_t index = kind == ROW_THREAD ? catalog_find_thread(r->catalog, machine, (int32_t)number)
	                                   : catalog_find_cpu(r->catalog, machine, (unsigned)number);
	if (kind == ROW_PROVIDER && index >= 0 && !cpu_has_provider_row(r->catalog, (uint32_t)index))
		return -1;
	return kind == ROW_EXECUTOR && index >= 0 && r->catalog->cpu[index].host < 0 ? -1 : index;
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
	for (uint32_t m = 0; m < r->catalog->machines; m++) {
		size_t len = strlen(r->machine_name[m]);
		if (strncmp(key, r->machine_name[m], len) != 0 || (key[len] && key[len] != '/'))
			continue;
		int64_t index = row_within(r, kind, m, key + len + (key[len] == '/'));
		if (index >= 0) {
			*id = (struct row_id){ kind, (uint32_t)index };
			return true;
		}
	}
	return false;
}

struct row_id row_remap(const struct rows *old, const struct rows *new, struct row_id id)
{
	char key[ROW_KEY];
	struct row_id found = { ROW_MACHINE, 0 };
	row_of_key(new, row_key(old, id, key), &found);
	return found;
}

void rows_copy_state(const struct rows *old, struct rows *new)
{
	for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
		for (uint32_t i = 0; i < rows_of_kind(old, (enum row_kind)kind); i++) {
			struct row_id id = row_remap(old, new, (struct row_id){ (uint8_t)kind, i });
			if (id.kind == kind)
				new->open[kind][id.index] = old->open[kind][i];
		}
	}
	new->hide_idle = old->hide_idle;
	new->show_executors = old->show_executors;
	new->from = old->from;
	new->to = old->to;
	rows_set_filter(new, old->filter);
}

/* Returns the n-th row in search order (machines, CPUs, threads in sort order), shown or not. */
static struct row_id nth_row(const struct rows *r, uint64_t n)
{
	const struct catalog *catalog = r->catalog;
	if (n < catalog->machines)
		return (struct row_id){ ROW_MACHINE, (uint32_t)n };
	n -= catalog->machines;
	if (n < catalog->cpus)
		return (struct row_id){ ROW_CPU, (uint32_t)n };
	return (struct row_id){ ROW_THREAD, r->thread_order[n - catalog->cpus] };
}

static uint64_t row_number(const struct rows *r, struct row_id id)
{
	const struct catalog *catalog = r->catalog;
	if (row_folds(id) || id.kind == ROW_REQUEST)
		return row_machine(r, id);
	if (id.kind == ROW_CPU || id.kind == ROW_EXECUTOR || id.kind == ROW_PROVIDER)
		return catalog->machines + id.index;
	uint64_t n = 0;
	while (n < catalog->threads && r->thread_order[n] != id.index)
		n++;
	return catalog->machines + catalog->cpus + n;
}

/* Returns true if the row's name contains the text. A text with '/' is compared with machine and name: "bian/35" matches
 * "Debian/3525 critical_task". A text without '/' is compared only with the name, so that the machine's name does not
 * match all its threads. */
static bool row_matches(const struct rows *r, struct row_id id, const char *text)
{
	char buf[256];
	const char *machine = r->machine_name[row_machine(r, id)];
	const char *label = id.kind == ROW_THREAD ? r->info[id.index].name : row_label(r, id, buf, sizeof buf);
	const char *slash = strchr(text, '/');
	if (!label)
		return false;
	if (!slash || id.kind == ROW_MACHINE)
		return filter_matches(label, text);
	if (strncasecmp(label, slash + 1, strlen(slash + 1)) != 0)
		return false;
	size_t n = (size_t)(slash - text);
	size_t len = strlen(machine);
	return len >= n && strncasecmp(machine + len - n, text, n) == 0;
}

bool rows_search(const struct rows *r, const char *text, struct row_id from, int direction, bool include_from,
                 struct row_id *found)
{
	const struct catalog *catalog = r->catalog;
	uint64_t total = (uint64_t)catalog->machines + catalog->cpus + catalog->threads;
	uint64_t n = row_number(r, from) % (total ? total : 1);
	for (uint64_t i = 0; i < total; i++) {
		if (i > 0 || !include_from)
			n = direction > 0 ? (n + 1) % total : (n + total - 1) % total;
		struct row_id id = nth_row(r, n);
		if (row_matches(r, id, text)) {
			*found = id;
			return true;
		}
	}
	return false;
}
