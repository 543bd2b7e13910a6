/* Control groups in the catalog. If only one machine was recorded, each group with threads is a container: its threads have
 * the attributes of the machine's threads with the same TID, so groups need no rows of their own in the history.
 *
 * A thread that moved counts for its last group. Namespaces whose threads all have groups are left out: the group is the
 * name that people know. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/query_internal.h"

int attribute_last_value(const struct catalog *catalog, uint32_t attr, int64_t *value, struct error *err)
{
	struct interval iv = { .end = history_last(catalog->h) + 1 };
	*value = HISTORY_NULL;
	if (attr == HISTORY_NONE)
		return 0;
	for (int64_t t = history_last(catalog->h); *value == HISTORY_NULL; t = iv.start - 1) {
		if (history_stab(catalog->h, attr, t, &iv, err) < 0)
			return -1;
		*value = iv.value;
		if (iv.start <= history_first(catalog->h))
			break;
	}
	return 0;
}

static int read_group(struct catalog *t, uint32_t node, struct catalog_group *g, struct error *err)
{
	int64_t value[GROUP_ATTRS];
	for (int i = 0; i < GROUP_ATTRS; i++) {
		const uint32_t attr = history_child_named(t->h, node, group_schema[i].name);
		const bool is_usable = attr != HISTORY_NONE && history_type(t->h, attr) == (int)group_schema[i].type;
		if (attribute_last_value(t, is_usable ? attr : HISTORY_NONE, &value[i], err))
			return -1;
	}
	*g = (struct catalog_group){
		.path = value[GROUP_PATH] == HISTORY_NULL ? "" : history_string(t->h, value[GROUP_PATH]),
		.name = value[GROUP_NAME] == HISTORY_NULL ? "" : history_string(t->h, value[GROUP_NAME]),
		.cpus = value[GROUP_CPU_SET] == HISTORY_NULL ? "" : history_string(t->h, value[GROUP_CPU_SET]),
		.quota_ns = value[GROUP_PERIOD] > 0 && value[GROUP_QUOTA] > 0 ? value[GROUP_QUOTA] : 0,
		.period_ns = value[GROUP_PERIOD] > 0 ? value[GROUP_PERIOD] : 0,
		.periods = value[GROUP_PERIODS] < 0 ? -1 : value[GROUP_PERIODS],
		.throttled = value[GROUP_THROTTLED] < 0 ? -1 : value[GROUP_THROTTLED],
		.throttled_ns = value[GROUP_THROTTLED_NS] < 0 ? -1 : value[GROUP_THROTTLED_NS],
	};
	return 0;
}

/* Fills catalog->group. Nodes are numbered from 0 without gaps; a file that differs ends the list early. */
static int read_groups(struct catalog *t, struct error *err)
{
	size_t len = 0, cap = 0;
	char number[16];
	char path[600];
	const bool is_host = t->machine[0].kind == MACHINE_HOST;
	history_path(path, sizeof path, is_host ? SCHEMA_HOST : SCHEMA_VMS, is_host ? SCHEMA_GROUPS : t->machine[0].name,
	             is_host ? NULL : SCHEMA_GROUPS, NULL);
	const uint32_t root = history_find(t->h, path);
	for (uint32_t i = 0; root != HISTORY_NONE; i++) {
		snprintf(number, sizeof number, "%u", i);
		const uint32_t node = history_child_named(t->h, root, number);
		if (node == HISTORY_NONE)
			break;
		if (read_group(t, node, ARRAY_PUSH(t->group, len, cap), err))
			return -1;
		t->groups = (uint32_t)len;
	}
	return 0;
}

/* Returns the name of a group as a machine: its name if no other group with threads has it, otherwise its path. */
static const char *machine_name(const struct catalog *t, const uint32_t *members, uint32_t group)
{
	const struct catalog_group *g = &t->group[group];
	const char *path = g->path + (g->path[0] == '/' && g->path[1]);
	bool is_unique = *g->name && catalog_find_machine(t, g->name) < 0;
	for (uint32_t i = 0; i < t->groups && is_unique; i++)
		is_unique = i == group || !members[i] || strcmp(t->group[i].name, g->name) != 0;
	return is_unique || !*path ? g->name : path;
}

static void add_machine(struct catalog *t, const uint32_t *members, const int32_t *group_of, uint32_t group)
{
	const struct catalog_machine *whole = &t->machine[0];
	const struct catalog_machine m = { .name = machine_name(t, members, group), .kind = MACHINE_CONTAINER, .parent = -1,
		.group = (int32_t)group, .cpu = t->cpus, .thread = t->threads };
	t->thread = mem_resize(t->thread, t->threads + members[group], sizeof *t->thread);
	for (uint32_t i = whole->thread; i < whole->thread + whole->threads; i++) {
		if (group_of[i - whole->thread] != (int32_t)group)
			continue;
		t->thread[i].in_container = true;
		struct catalog_thread *th = &t->thread[t->threads++];
		*th = t->thread[i];
		th->machine = t->machines;
		th->in_container = false;
		th->role = -1;
	}
	t->machine = mem_resize(t->machine, t->machines + 1, sizeof *t->machine);
	t->machine[t->machines] = m;
	t->machine[t->machines++].threads = members[group];
}

/* Removes the namespaces whose threads all have groups. They are the last machines, and their threads the last ones. */
static void drop_namespaces(struct catalog *t, const int32_t *group_of)
{
	while (t->machines && t->machine[t->machines - 1].kind == MACHINE_CONTAINER) {
		const struct catalog_machine *m = &t->machine[t->machines - 1];
		for (uint32_t i = m->thread; i < m->thread + m->threads; i++) {
			const int thread = catalog_find_thread(t, 0, t->thread[i].tid);
			if (thread < 0 || group_of[(uint32_t)thread - t->machine[0].thread] < 0)
				return;
		}
		t->threads = m->thread;
		t->machines--;
	}
}

static int find_members(const struct catalog *t, int32_t *group_of, uint32_t *members, struct error *err)
{
	const struct catalog_machine *whole = &t->machine[0];
	for (uint32_t i = 0; i < whole->threads; i++) {
		int64_t group;
		if (attribute_last_value(t, t->thread[whole->thread + i].group, &group, err))
			return -1;
		const bool has_group = group >= 0 && group < t->groups && strcmp(t->group[group].path, "/") != 0;
		group_of[i] = has_group ? (int32_t)group : -1;
		if (has_group)
			members[group]++;
	}
	return 0;
}

bool catalog_is_alone(const struct catalog *t)
{
	return t->machines && t->machine[0].kind != MACHINE_CONTAINER &&
	       (t->machines == 1 || t->machine[1].kind == MACHINE_CONTAINER);
}

/* Marks the machine's threads that belong to a container. */
static void mark_contained(struct catalog *t)
{
	for (uint32_t m = t->machines; m-- > 0 && t->machine[m].kind == MACHINE_CONTAINER;)
		for (uint32_t i = t->machine[m].thread; i < t->machine[m].thread + t->machine[m].threads; i++) {
			const int at = catalog_find_thread(t, 0, t->thread[i].tid);
			if (at >= 0)
				t->thread[at].in_container = true;
		}
}

int catalog_read_groups(struct catalog *t, struct error *err)
{
	if (!t->machines || (t->machine[0].kind != MACHINE_HOST && !catalog_is_alone(t)))
		return 0;
	int rc = read_groups(t, err);
	if (rc == 0 && t->groups && catalog_is_alone(t)) {
		int32_t *group_of = mem_new(t->machine[0].threads + 1, sizeof *group_of);
		uint32_t *members = mem_new(t->groups, sizeof *members);
		rc = find_members(t, group_of, members, err);
		if (rc == 0)
			drop_namespaces(t, group_of);
		for (uint32_t i = 0; rc == 0 && i < t->groups; i++)
			if (members[i])
				add_machine(t, members, group_of, i);
		free(group_of);
		free(members);
	}
	mark_contained(t);
	return rc;
}
