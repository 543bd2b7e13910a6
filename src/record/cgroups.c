#include "record/cgroups.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/proc.h"

#define SHARES_DEFAULT 1024
#define SHARES_MAX 262144
#define SHARES_IDLE 3  /* weight of an idle group (cpu.idle=1), which runs only if no other group wants the CPU; its
                        * cpu.weight reads 0 */
#define SCHED_IDLE_NUMBER "5"  /* number of the policy SCHED_IDLE in /proc/PID/stat */

static const struct { const char *hierarchy, *root_dir, *quota, *weight; int64_t default_weight; } versions[] = {
	{ "0::", "/sys/fs/cgroup", "cpu.max", "cpu.weight", 100 },
	{ ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "cpu.shares", SHARES_DEFAULT },
	{ ":cpu:", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.shares", SHARES_DEFAULT },
};

struct cgroups {
	struct cgroup_quota {
		char *path, *quota, *stat;  /* quota, stat: content of cpu.max and cpu.stat, or NULL */
		bool synthetic;  /* not a real group: stands for a single SCHED_IDLE thread */
		int64_t shares;  /* scheduler weight; 0: none or unknown */
	} *group;
	size_t groups, cap;
	struct group_member {
		int32_t tid;
		char *path;      /* its innermost group */
		int64_t runs;    /* number of times the thread was scheduled since it started; -1: not read, or unknown */
	} *member;           /* sorted by TID */
	size_t members, member_cap;
};

/* Returns a group's weight in scheduler shares; 0: the group has no weight, and the scheduler ignores the group. */
static int64_t group_shares(const char *root, size_t version, const char *path)
{
	int64_t weight;
	if (!proc_number(root, &weight, "%s%s/%s", versions[version].root_dir, path, versions[version].weight) || weight < 0 ||
	    weight > SHARES_MAX)
		return 0;
	if (weight == 0)
		return SHARES_IDLE;
	return (weight * SHARES_DEFAULT + versions[version].default_weight / 2) / versions[version].default_weight;
}

static void add_group(struct cgroups *c, const char *root, size_t version, const char *path)
{
	for (size_t i = 0; i < c->groups; i++)
		if (strcmp(c->group[i].path, path) == 0)
			return;
	if (c->groups >= CGROUPS_GROUPS)
		return;
	*ARRAY_PUSH(c->group, c->groups, c->cap) = (struct cgroup_quota){
		.path = mem_dup(path),
		.quota = proc_line(root, "%s%s/%s", versions[version].root_dir, path, versions[version].quota),
		.stat = proc_text(root, NULL, "%s%s/cpu.stat", versions[version].root_dir, path),
		.shares = group_shares(root, version, path),
	};
}

/* Adds the group of a thread and the group's ancestors, since each may have a quota. Returns the path of the group, which
 * the caller frees; NULL: no group. */
static char *add_groups(struct cgroups *c, const char *root, int32_t pid, int32_t tid)
{
	char *innermost = NULL;
	char *text = proc_text(root, NULL, "/proc/%d/task/%d/cgroup", pid, tid);
	for (size_t i = 0; text && i < sizeof versions / sizeof *versions; i++) {
		const char *at = strstr(text, versions[i].hierarchy);
		if (!at || !proc_exists(root, "%s", versions[i].root_dir))
			continue;
		at += strlen(versions[i].hierarchy);
		char *path = mem_printf("%.*s", (int)strcspn(at, "\n"), at), *slash;
		innermost = mem_dup(path);
		while (!strstr(path, "..") && (slash = strrchr(path, '/')) && slash[1]) {
			add_group(c, root, i, path);
			*slash = '\0';
		}
		free(path);
		break;
	}
	free(text);
	return innermost;
}

/* Adds a synthetic idle group below `path` (freed) for a SCHED_IDLE thread. Returns the path of the new group. */
static char *add_idle(struct cgroups *c, char *path, int32_t tid)
{
	char *synthetic = mem_printf("%s/sched_idle:%d", strcmp(path, "/") == 0 ? "" : path, tid);
	if (c->groups < CGROUPS_GROUPS)
		*ARRAY_PUSH(c->group, c->groups, c->cap) =
			(struct cgroup_quota){ .path = mem_dup(synthetic), .synthetic = true, .shares = SHARES_IDLE };
	free(path);
	return synthetic;
}

static bool is_idle(const char *root, int32_t pid, int32_t tid)
{
	char *policy = proc_stat_word(root, pid, tid, 38);
	const bool idle = policy && strcmp(policy, SCHED_IDLE_NUMBER) == 0;
	free(policy);
	return idle;
}

static void add_member(struct cgroups *c, const char *root, int32_t pid, int32_t tid, int64_t runs)
{
	char *path = add_groups(c, root, pid, tid);
	if (path && is_idle(root, pid, tid))
		path = add_idle(c, path, tid);
	if (path && *path == '/' && !strstr(path, ".."))
		*ARRAY_PUSH(c->member, c->members, c->member_cap) = (struct group_member){ tid, path, runs };
	else
		free(path);
}

static int by_tid(const void *a, const void *b)
{
	const struct group_member *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static struct cgroups *sort_groups(struct cgroups *c)
{
	if (c->members)
		qsort(c->member, c->members, sizeof *c->member, by_tid);
	return c;
}

struct cgroups *cgroups_read_vm(const char *root, const struct vm *vm)
{
	struct cgroups *c = mem_new(1, sizeof *c);
	free(add_groups(c, root, vm->pid, vm->pid));
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid)
			add_member(c, root, vm->pid, vm->vcpu[i].tid, -1);
	return sort_groups(c);
}

static bool is_vcpu(const struct vm *vm, size_t vms, int32_t pid, int32_t tid)
{
	for (size_t i = 0; i < vms; i++)
		for (size_t k = 0; vm[i].pid == pid && k < vm[i].vcpus; k++)
			if (vm[i].vcpu[k].tid == tid)
				return true;
	return false;
}

/* Parses the third field of schedstat, "RAN_NS WAITED_NS TIMES". */
static int64_t read_runs(const char *root, int32_t pid, int32_t tid)
{
	char *line = proc_line(root, "/proc/%d/task/%d/schedstat", pid, tid);
	long long runs;
	if (!line || sscanf(line, "%*s %*s %lld", &runs) != 1)
		runs = -1;
	free(line);
	return runs;
}

static void add_process(struct cgroups *c, const char *root, int32_t pid, const struct vm *vm, size_t vms)
{
	size_t n;
	uint64_t tid;
	char **task = proc_names(root, "", &n, "/proc/%d/task", pid);
	for (size_t i = 0; i < n && c->members < CGROUPS_THREADS; i++)
		if (proc_parse_number(task[i], INT32_MAX, &tid) && !is_vcpu(vm, vms, pid, (int32_t)tid))
			add_member(c, root, pid, (int32_t)tid, read_runs(root, pid, (int32_t)tid));
	proc_names_free(task, n);
}

struct cgroups *cgroups_read_host(const char *root, const struct vm *vm, size_t vms)
{
	size_t n;
	uint64_t pid;
	struct cgroups *c = mem_new(1, sizeof *c);
	char **process = proc_names(root, "", &n, "/proc");
	for (size_t i = 0; i < n; i++)
		if (proc_parse_number(process[i], INT32_MAX, &pid))
			add_process(c, root, (int32_t)pid, vm, vms);
	proc_names_free(process, n);
	return sort_groups(c);
}

void cgroups_free(struct cgroups *c)
{
	for (size_t i = 0; c && i < c->groups; i++) {
		free(c->group[i].path);
		free(c->group[i].quota);
		free(c->group[i].stat);
	}
	for (size_t i = 0; c && i < c->members; i++)
		free(c->member[i].path);
	if (c) {
		free(c->group);
		free(c->member);
	}
	free(c);
}

static const struct cgroup_quota *find_group(const struct cgroups *c, const char *path, size_t length)
{
	for (size_t i = 0; c && i < c->groups; i++)
		if (strncmp(c->group[i].path, path, length) == 0 && !c->group[i].path[length])
			return &c->group[i];
	return NULL;
}

static const char *find_stat(const struct cgroups *c, const char *path)
{
	const struct cgroup_quota *g = find_group(c, path, strlen(path));
	return g ? g->stat : NULL;
}

/* Writes "usage_usec 1 user_usec 2" as a YAML mapping. */
static void put_stat(struct yaml_out *o, int map, const char *key, const char *stat)
{
	const int braces = stat ? yaml_out_braces(o, map, key) : 0;
	while (stat && *stat) {
		char name[64];
		unsigned long long n;
		if (sscanf(stat, "%63[a-z_] %llu", name, &n) == 2)
			yaml_out_count(o, braces, name, n);
		stat += strcspn(stat, "\n");
		stat += *stat != '\0';
	}
}

void cgroups_put_quotas(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after)
{
	const struct cgroups *c = before ? before : after;
	const int list = c && c->groups ? yaml_out_list(o, map, "cgroups") : 0;
	for (size_t i = 0; c && i < c->groups; i++) {
		if (c->group[i].synthetic)
			continue;
		const int group = yaml_out_map(o, list, NULL);
		yaml_out_escaped(o, group, "path", c->group[i].path);
		yaml_out_escaped(o, group, "quota", c->group[i].quota);
		put_stat(o, group, "before", find_stat(before, c->group[i].path));
		put_stat(o, group, "after", find_stat(after, c->group[i].path));
	}
}

static const struct group_member *find_member(const struct cgroups *c, int32_t tid)
{
	const struct group_member key = { .tid = tid };
	return c && c->members ? bsearch(&key, c->member, c->members, sizeof key, by_tid) : NULL;
}

/* Returns true if the weights of the group and its ancestors did not change during the recording. */
static bool weights_unchanged(const struct cgroups *before, const struct cgroups *after, const char *path)
{
	for (size_t end = 0; path[end]; ) {
		end += 1 + strcspn(path + end + 1, "/");
		const struct cgroup_quota *a = find_group(before, path, end), *b = find_group(after, path, end);
		if (!a || !b || a->shares != b->shares)
			return false;
	}
	return true;
}

static bool is_unchanged(const struct cgroups *before, const struct cgroups *after, size_t member)
{
	const struct group_member *m = &before->member[member], *later = find_member(after, m->tid);
	const bool never_ran = later && m->runs >= 0 && later->runs == m->runs;
	return later && !never_ran && strcmp(later->path, m->path) == 0 && weights_unchanged(before, after, m->path);
}

void cgroups_put_threads(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after)
{
	int groups = 0;
	for (size_t i = 0; before && i < before->members; i++) {
		char tid[16];
		if (!is_unchanged(before, after, i))
			continue;
		snprintf(tid, sizeof tid, "%d", before->member[i].tid);
		groups = groups ? groups : yaml_out_map(o, map, "groups");
		yaml_out_escaped(o, groups, tid, before->member[i].path);
	}
}

/* Returns true if a thread that cgroups_put_threads() lists is in the group or in a descendant of it. */
static bool has_listed_thread(const struct cgroups *before, const struct cgroups *after, const char *path)
{
	const size_t length = strlen(path);
	for (size_t i = 0; i < before->members; i++) {
		const char *in = before->member[i].path;
		if (strncmp(in, path, length) == 0 && (in[length] == '/' || !in[length]) && is_unchanged(before, after, i))
			return true;
	}
	return false;
}

void cgroups_put_weights(struct yaml_out *o, int map, struct cgroups *const *before, struct cgroups *const *after, size_t n)
{
	int weights = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; before[i] && k < before[i]->groups; k++) {
			const struct cgroup_quota *g = &before[i]->group[k];
			char escaped[1024];
			bool known = !g->shares || !has_listed_thread(before[i], after[i], g->path);
			for (size_t earlier = 0; earlier < i && !known; earlier++)
				known = before[earlier] && find_group(before[earlier], g->path, strlen(g->path)) &&
				        has_listed_thread(before[earlier], after[earlier], g->path);
			if (known)
				continue;
			weights = weights ? weights : yaml_out_map(o, map, "weights");
			yaml_out_number(o, weights, text_escape(escaped, sizeof escaped, g->path), g->shares);
		}
}
