#include "base/control_groups.h"

#include "base/base.h"
#include "base/hash.h"

void control_groups_release(struct control_groups *g)
{
	for (size_t i = 0; i < g->groups; i++) {
		free(g->group[i].path);
		free(g->group[i].name);
		free(g->group[i].cpus);
	}
	free(g->group);
	free(g->member);
	map_release(&g->by_hash);
	*g = (struct control_groups){ 0 };
}

uint32_t control_groups_put(struct control_groups *g, const char *path)
{
	for (uint64_t hash = hash_text(HASH_BEGIN, path);; hash++) {
		bool is_new;
		uint64_t *at = map_put(&g->by_hash, hash, &is_new);
		if (!is_new && strcmp(g->group[*at].path, path) != 0)
			continue;
		if (!is_new)
			return (uint32_t)*at;
		if (g->groups == CONTROL_GROUPS_MAX) {
			(void)map_remove(&g->by_hash, hash);
			return UINT32_MAX;
		}
		*at = g->groups;
		*ARRAY_PUSH(g->group, g->groups, g->group_cap) = (struct control_group){
			.path = mem_dup(path), .name = mem_dup(path[0] == '/' && path[1] ? path + 1 : path), .periods = -1,
			.throttled = -1, .throttled_ns = -1 };
		return (uint32_t)*at;
	}
}

int32_t control_groups_find(const struct control_groups *g, const char *path)
{
	for (uint64_t hash = hash_text(HASH_BEGIN, path);; hash++) {
		const uint64_t *at = map_find(&g->by_hash, hash);
		if (!at || strcmp(g->group[*at].path, path) == 0)
			return at ? (int32_t)*at : -1;
	}
}

void control_groups_describe(struct control_groups *g, uint32_t group, const char *name, const char *cpus)
{
	struct control_group *to = &g->group[group];
	if (name && *name) {
		free(to->name);
		to->name = mem_dup(name);
	}
	free(to->cpus);
	to->cpus = cpus ? mem_dup(cpus) : NULL;
}

void control_groups_add_member(struct control_groups *g, int32_t tid, const char *path)
{
	const uint32_t group = control_groups_put(g, path);
	if (group != UINT32_MAX && g->members < CONTROL_GROUP_MEMBERS_MAX)
		*ARRAY_PUSH(g->member, g->members, g->member_cap) = (struct control_group_member){ tid, group };
}

/* Reads a counter of cpu.stat before and after the recording. */
static int read_growth(struct yaml_file *f, const yaml_node_t *group, const char *key, int64_t *growth, struct error *err)
{
	yaml_node_t *before = yaml_member(f, yaml_member(f, group, "before"), key);
	yaml_node_t *after = yaml_member(f, yaml_member(f, group, "after"), key);
	int64_t a, b;
	if (!before || !after)
		return 0;
	if (yaml_integer(f, before, 0, INT64_MAX, &a, err) || yaml_integer(f, after, 0, INT64_MAX, &b, err))
		return -1;
	*growth = b >= a ? b - a : -1;
	return 0;
}

/* Parses "151 152 160". */
static int read_threads(struct control_groups *g, const char *path, struct yaml_file *f, const yaml_node_t *node,
                        struct error *err)
{
	const char *at = yaml_scalar(node);
	while (at && *at) {
		char *end;
		const long tid = strtol(at, &end, 10);
		if (end == at || tid <= 0 || tid > INT32_MAX || (*end && *end != ' '))
			return yaml_refuse(f, node, err, "threads: expected TIDs, such as 151 152");
		control_groups_add_member(g, (int32_t)tid, path);
		at = end + strspn(end, " ");
	}
	return 0;
}

static int read_group(struct control_groups *g, struct yaml_file *f, const yaml_node_t *node, struct error *err)
{
	static const char *const known[] = { "path", "name", "quota_ns", "period_ns", "cpus", "threads", "before", "after" };
	yaml_node_t *key, *value;
	const char *path = yaml_scalar(yaml_member(f, node, "path"));
	if (!path || *path != '/')
		return yaml_refuse(f, node, err, "control_groups: expected a list of {path: /machine.slice, name: ...}");
	for (size_t i = 0; yaml_pair(f, node, i, &key, &value); i++) {
		struct suggestion near = SUGGESTION(yaml_scalar(key) ? yaml_scalar(key) : "");
		size_t k = 0;
		while (k < sizeof known / sizeof *known && strcmp(known[k], near.typed) != 0)
			suggest(&near, known[k++]);
		if (k == sizeof known / sizeof *known)
			return yaml_refuse_word(f, key, "unknown key", &near, err);
	}
	const uint32_t index = control_groups_put(g, path);
	if (index == UINT32_MAX)
		return yaml_refuse(f, node, err, "control_groups: more than %d groups", CONTROL_GROUPS_MAX);
	struct control_group *to = &g->group[index];
	const char *name = yaml_scalar(yaml_member(f, node, "name")), *cpus = yaml_scalar(yaml_member(f, node, "cpus"));
	const yaml_node_t *quota = yaml_member(f, node, "quota_ns"), *period = yaml_member(f, node, "period_ns");
	control_groups_describe(g, index, name, cpus);
	if ((quota && yaml_integer(f, quota, 0, INT64_MAX, &to->quota_ns, err)) ||
	    (period && yaml_integer(f, period, 1, INT64_MAX, &to->period_ns, err)))
		return -1;
	to->quota_ns = period ? to->quota_ns : 0;
	if (read_threads(g, path, f, yaml_member(f, node, "threads"), err))
		return -1;
	return read_growth(f, node, "periods", &to->periods, err) || read_growth(f, node, "throttled", &to->throttled, err) ||
	       read_growth(f, node, "throttled_ns", &to->throttled_ns, err) ? -1 : 0;
}

int control_groups_read(struct control_groups *g, struct yaml_file *f, const yaml_node_t *list, struct error *err)
{
	yaml_node_t *item;
	if (list && list->type != YAML_SEQUENCE_NODE)
		return yaml_refuse(f, list, err, "control_groups: expected a list (- path: ...)");
	for (size_t i = 0; yaml_item(f, list, i, &item); i++)
		if (read_group(g, f, item, err))
			return -1;
	return 0;
}

/* Writes the counters of cpu.stat as those of a group that was new at the recording's start. */
static void put_growth(struct yaml_out *o, int map, const struct control_group *g)
{
	const struct { const char *key; int64_t n; } counter[] = {
		{ "periods", g->periods }, { "throttled", g->throttled }, { "throttled_ns", g->throttled_ns } };
	for (int after = 0; after < 2 && g->throttled_ns >= 0; after++) {
		const int braces = yaml_out_braces(o, map, after ? "after" : "before");
		for (size_t i = 0; i < sizeof counter / sizeof *counter; i++)
			if (counter[i].n >= 0)
				yaml_out_number(o, braces, counter[i].key, after ? counter[i].n : 0);
	}
}

static void put_threads(struct yaml_out *o, int map, const struct control_groups *g, uint32_t group)
{
	char *text = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);
	for (size_t i = 0; i < g->members && to; i++)
		if (g->member[i].group == group)
			fprintf(to, "%s%d", ftell(to) ? " " : "", g->member[i].tid);
	if (to && fclose(to) == 0 && length)
		yaml_out_text(o, map, "threads", text);
	free(text);
}

void control_groups_write(struct yaml_out *o, int map, const struct control_groups *g)
{
	const int list = g->groups ? yaml_out_list(o, map, "control_groups") : 0;
	yaml_out_text(o, map, "throttled", g->has_events ? "events" : NULL);
	for (size_t i = 0; i < g->groups; i++) {
		const struct control_group *c = &g->group[i];
		const int group = yaml_out_map(o, list, NULL);
		yaml_out_escaped(o, group, "path", c->path);
		yaml_out_escaped(o, group, "name", c->name);
		if (c->quota_ns) {
			yaml_out_number(o, group, "quota_ns", c->quota_ns);
			yaml_out_number(o, group, "period_ns", c->period_ns);
		}
		yaml_out_escaped(o, group, "cpus", c->cpus);
		put_growth(o, group, c);
		put_threads(o, group, g, (uint32_t)i);
	}
}

uint64_t control_groups_hash(const struct control_groups *g)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < g->groups; i++) {
		const struct control_group *c = &g->group[i];
		const int64_t number[] = { c->quota_ns, c->period_ns, c->periods, c->throttled, c->throttled_ns };
		hash = hash_number(hash, hash_text(HASH_BEGIN, c->path));
		hash = hash_number(hash, hash_text(HASH_BEGIN, c->name));
		hash = hash_number(hash, hash_text(HASH_BEGIN, c->cpus ? c->cpus : ""));
		for (size_t k = 0; k < sizeof number / sizeof *number; k++)
			hash = hash_number(hash, (uint64_t)number[k]);
	}
	for (size_t i = 0; i < g->members; i++)
		hash = hash_number(hash, (uint64_t)g->member[i].tid << 32 | g->member[i].group);
	hash = hash_number(hash_number(hash, g->has_events), g->is_guest);
	return g->groups ? hash_end(hash) | 1 : 0;
}
