/* Control groups in the catalog. If only one machine was recorded, each group with threads is a container: its threads have
 * the attributes of the machine's threads with the same TID, so groups need no rows of their own in the history.
 *
 * A thread that moved counts for its last group. Namespaces whose threads all have groups are left out: the group is the
 * name that people know. */
#include "base/base.h"
#include "query/query_internal.h"
#include "query/thread_set.h"

#define MOST_SHARE 0.95  /* minimum share of the throttled time for one of several limits to stand for all */

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

bool catalog_group_contains(const struct catalog *t, const struct catalog_group *outer, int64_t group)
{
	const size_t length = strlen(outer->path);
	const char *own = group >= 0 && group < t->groups ? t->group[group].path : "";
	return strncmp(own, outer->path, length) == 0 && (own[length] == '/' || !own[length]);
}

const struct catalog_group *catalog_find_limit(const struct catalog *t, int64_t group, bool *is_only)
{
	const struct catalog_group *best = NULL;
	int64_t all = 0;
	unsigned limits = 0;
	for (const struct catalog_group *g = t->group; g < t->group + t->groups; g++) {
		if (!g->quota_ns || !catalog_group_contains(t, g, group))
			continue;
		limits++;
		all += g->throttled_ns > 0 ? g->throttled_ns : 0;
		best = !best || g->throttled_ns > best->throttled_ns ? g : best;
	}
	*is_only = limits == 1 || (best && (double)best->throttled_ns >= MOST_SHARE * (double)all);
	return limits > 1 && all == 0 ? NULL : best;
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

/* Division of the threads of one machine into groups, by the index of the thread. */
struct division {
	uint32_t whole;          /* the machine */
	int32_t *group_of;       /* index of the group; catalog->groups: the set; -1: none */
	uint32_t *members;       /* by group: number of threads */
};

static void add_machine(struct catalog *t, const struct division *d, uint32_t group)
{
	const bool is_set = group == t->groups;
	const struct catalog_machine *whole = &t->machine[d->whole];
	const struct catalog_machine m = { .name = is_set ? t->set->name : machine_name(t, d->members, group),
		.kind = MACHINE_CONTAINER, .parent = -1, .group = is_set ? t->set->group : (int32_t)group,
		.whole = (int32_t)d->whole, .cpu = t->cpus, .thread = t->threads, .threads = d->members[group] };
	t->thread = mem_resize(t->thread, t->threads + m.threads, sizeof *t->thread);
	for (uint32_t i = whole->thread; i < whole->thread + whole->threads; i++) {
		if (d->group_of[i - whole->thread] != (int32_t)group)
			continue;
		struct catalog_thread *th = &t->thread[t->threads++];
		*th = t->thread[i];
		th->machine = t->machines;
		th->role = -1;
	}
	t->machine = mem_resize(t->machine, t->machines + 1, sizeof *t->machine);
	t->machine[t->machines++] = m;
}

/* Removes the namespaces whose threads all have groups, and threads of the set from the others. Namespaces are the last
 * machines, and their threads the last ones. */
static void drop_namespaces(struct catalog *t, const struct division *d)
{
	const uint32_t machines = t->machines;
	uint32_t m = 0;
	while (m < machines && t->machine[m].kind != MACHINE_CONTAINER)
		m++;
	t->machines = m;
	t->threads = m < machines ? t->machine[m].thread : t->threads;
	for (; m < machines; m++) {
		struct catalog_machine c = t->machine[m];
		const uint32_t first = t->threads;
		bool is_divided = c.threads > 0;
		for (uint32_t i = c.thread; i < c.thread + c.threads; i++) {
			const int at = catalog_find_thread(t, d->whole, t->thread[i].tid);
			const int32_t group = at < 0 || c.whole != (int32_t)d->whole ? -1
			                    : d->group_of[(uint32_t)at - t->machine[d->whole].thread];
			is_divided = is_divided && group >= 0;
			if (group < 0 || group < (int32_t)t->groups)
				t->thread[t->threads++] = t->thread[i];
		}
		c.thread = first;
		c.threads = t->threads - first;
		if (is_divided)
			t->threads = first;
		else
			t->machine[t->machines++] = c;
	}
}

static int find_members(const struct catalog *t, const struct division *d, struct error *err)
{
	const struct catalog_machine *whole = &t->machine[d->whole];
	for (uint32_t i = 0; i < whole->threads; i++) {
		const struct catalog_thread *th = &t->thread[whole->thread + i];
		int64_t group = -1;
		if (catalog_is_alone(t) && attribute_last_value(t, th->group, &group, err))
			return -1;
		const bool has_group = group >= 0 && group < t->groups && strcmp(t->group[group].path, "/") != 0;
		const bool is_in_set = thread_set_contains(t->set, d->whole, th->tid);
		d->group_of[i] = is_in_set ? (int32_t)t->groups : has_group ? (int32_t)group : -1;
		if (d->group_of[i] >= 0)
			d->members[d->group_of[i]]++;
	}
	return 0;
}

bool catalog_is_alone(const struct catalog *t)
{
	return t->machines && t->machine[0].kind != MACHINE_CONTAINER &&
	       (t->machines == 1 || t->machine[1].kind == MACHINE_CONTAINER);
}

/* Marks the threads that belong to a container. */
static void mark_contained(struct catalog *t)
{
	for (uint32_t m = 0; m < t->machines; m++) {
		const struct catalog_machine *c = &t->machine[m];
		for (uint32_t i = c->thread; i < c->thread + c->threads && c->whole >= 0 && c->whole != (int32_t)m; i++) {
			const int at = catalog_find_thread(t, (uint32_t)c->whole, t->thread[i].tid);
			if (at >= 0)
				t->thread[at].in_container = true;
		}
	}
}

int catalog_read_groups(struct catalog *t, struct error *err)
{
	if (!t->machines)
		return 0;
	struct division d = { .whole = t->set ? t->set->machine : 0 };
	int rc = t->machine[0].kind == MACHINE_HOST || catalog_is_alone(t) ? read_groups(t, err) : 0;
	if (rc == 0 && (t->set || (t->groups && catalog_is_alone(t)))) {
		d.group_of = mem_new(t->machine[d.whole].threads + 1, sizeof *d.group_of);
		d.members = mem_new(t->groups + 1, sizeof *d.members);
		rc = find_members(t, &d, err);
		if (rc == 0)
			drop_namespaces(t, &d);
		for (uint32_t i = 0; rc == 0 && i <= t->groups; i++)
			if (d.members[i])
				add_machine(t, &d, i);
		free(d.group_of);
		free(d.members);
	}
	mark_contained(t);
	return rc;
}
