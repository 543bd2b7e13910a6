/* What rows are called: on the screen, in files, in another history; and finding them by that. */
#include "ui/core/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *row_label(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	const struct topo *topo = r->topo;
	switch (id.kind) {
	case ROW_MACHINE: {
		int32_t in = row_outer_vm(topo, id.index);
		snprintf(buf, size, "%s%s%s", r->machine[id.index], in >= 0 ? " in " : "", in >= 0 ? r->machine[in] : "");
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
		const char *machine = id.kind == ROW_EXECUTOR ? r->machine[row_machine(r, id)] : "";
		snprintf(buf, size, "%s%s%s", machine, machine[0] ? "/" : "", name ? name : "...");
		return buf;
	}
	}
}

char *row_title(const struct rows *r, struct row_id id, char *buf, size_t size)
{
	char label[256];
	const char *machine = r->machine[row_machine(r, id)];
	row_label(r, id, label, sizeof label);
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
	char rest[256] = "";
	if (cpu)
		snprintf(rest, sizeof rest, "%u", topo->cpu[id.index].number);
	else if (id.kind == ROW_THREAD)
		snprintf(rest, sizeof rest, "%" PRId32, topo->thread[id.index].tid);
	else if (id.kind == ROW_REQUEST)
		text_escape(rest, sizeof rest, history_name(topo->h, r->request[id.index].node));
	snprintf(buf, ROW_KEY, "%s %s%s%s", kind_name[id.kind], r->machine[m], rest[0] ? "/" : "", rest);
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
		size_t len = strlen(r->machine[m]);
		if (strncmp(key, r->machine[m], len) != 0 || (key[len] && key[len] != '/'))
			continue;
		int64_t index = row_within(r, kind, m, key + len + (key[len] == '/'));
		if (index >= 0) {
			*id = (struct row_id){ kind, (uint32_t)index };
			return true;
		}
	}
	return false;
}

struct row_id row_again(const struct rows *was, const struct rows *is, struct row_id id)
{
	char key[ROW_KEY];
	struct row_id found = { ROW_MACHINE, 0 };
	row_of_key(is, row_key(was, id, key), &found);
	return found;
}

void rows_carry(const struct rows *was, struct rows *is)
{
	for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
		for (uint32_t i = 0; i < rows_of_kind(was, (enum row_kind)kind); i++) {
			struct row_id id = row_again(was, is, (struct row_id){ (uint8_t)kind, i });
			if (id.kind == kind)
				is->open[kind][id.index] = was->open[kind][i];
		}
	}
	is->hide_idle = was->hide_idle;
	is->show_executors = was->show_executors;
	rows_set_filter(is, was->filter);
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
	char buf[256];
	const char *machine = r->machine[row_machine(r, id)];
	const char *label = id.kind == ROW_THREAD ? r->info[id.index].name : row_label(r, id, buf, sizeof buf);
	const char *slash = strchr(text, '/');
	if (!label)
		return false;
	if (!slash || id.kind == ROW_MACHINE)
		return strcasestr(label, text) != NULL;
	if (strncasecmp(label, slash + 1, strlen(slash + 1)) != 0)
		return false;
	size_t n = (size_t)(slash - text);
	size_t len = strlen(machine);
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
