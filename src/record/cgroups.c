#include "record/cgroups.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/proc.h"

#define SHARES_USUAL 1024
#define SHARES_MOST 262144
#define SHARES_IDLE 3  /* of a group that has the CPU when nobody else wants it: its weight reads 0 */
#define SCHED_IDLE_NUMBER "5"

static const struct { const char *hierarchy, *place, *quota, *weight; int64_t usual; } versions[] = {
	{ "0::", "/sys/fs/cgroup", "cpu.max", "cpu.weight", 100 },
	{ ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "cpu.shares", SHARES_USUAL },
	{ ":cpu:", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.shares", SHARES_USUAL },
};

struct cgroups {
	struct cgroup_quota {
		char *path, *quota, *stat;
		bool alone;      /* made up, for one thread */
		int64_t shares;  /* 0: they are not known */
	} *group;
	size_t groups, cap;
	struct group_member {
		int32_t tid;
		char *path;      /* "" none */
		int64_t runs;    /* how often it was given a CPU so far; -1: that is not asked, or not told */
	} *member;           /* by TID */
	size_t members, member_cap;
};

/* What the scheduler makes of a group's weight; 0: it has none, and is no group for the scheduler. */
static int64_t shares_of(const char *root, size_t version, const char *path)
{
	int64_t weight;
	if (!proc_number(root, &weight, "%s%s/%s", versions[version].place, path, versions[version].weight) || weight < 0 ||
	    weight > SHARES_MOST)
		return 0;
	if (weight == 0)
		return SHARES_IDLE;
	return (weight * SHARES_USUAL + versions[version].usual / 2) / versions[version].usual;
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
		.quota = proc_line(root, "%s%s/%s", versions[version].place, path, versions[version].quota),
		.stat = proc_text(root, NULL, "%s%s/cpu.stat", versions[version].place, path),
		.shares = shares_of(root, version, path),
	};
}

/* The group of a thread and all around it, any of which may have a quota.  NULL: it is in none.  The caller frees. */
static char *add_groups(struct cgroups *c, const char *root, int32_t pid, int32_t tid)
{
	char *innermost = NULL;
	char *text = proc_text(root, NULL, "/proc/%d/task/%d/cgroup", pid, tid);
	for (size_t i = 0; text && i < sizeof versions / sizeof *versions; i++) {
		const char *at = strstr(text, versions[i].hierarchy);
		if (!at || !proc_exists(root, "%s", versions[i].place))
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

/* Who is SCHED_IDLE is so within its group: as one alone in a group of that weight. */
static char *add_idle(struct cgroups *c, char *path, int32_t tid)
{
	char *own = mem_printf("%s/sched_idle:%d", strcmp(path, "/") == 0 ? "" : path, tid);
	if (c->groups < CGROUPS_GROUPS)
		*ARRAY_PUSH(c->group, c->groups, c->cap) =
			(struct cgroup_quota){ .path = mem_dup(own), .alone = true, .shares = SHARES_IDLE };
	free(path);
	return own;
}

static bool is_idle(const char *root, int32_t pid, int32_t tid)
{
	char *policy = proc_stat_word(root, pid, tid, 38);
	const bool is = policy && strcmp(policy, SCHED_IDLE_NUMBER) == 0;
	free(policy);
	return is;
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

static struct cgroups *sorted(struct cgroups *c)
{
	if (c->members)
		qsort(c->member, c->members, sizeof *c->member, by_tid);
	return c;
}

struct cgroups *cgroups_take(const char *root, const struct vm *vm)
{
	struct cgroups *c = mem_new(1, sizeof *c);
	free(add_groups(c, root, vm->pid, vm->pid));
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid)
			add_member(c, root, vm->pid, vm->vcpu[i].tid, -1);
	return sorted(c);
}

static bool is_vcpu(const struct vm *vm, size_t vms, int32_t pid, int32_t tid)
{
	for (size_t i = 0; i < vms; i++)
		for (size_t k = 0; vm[i].pid == pid && k < vm[i].vcpus; k++)
			if (vm[i].vcpu[k].tid == tid)
				return true;
	return false;
}

/* "ran_ns waited_ns times" */
static int64_t runs_of(const char *root, int32_t pid, int32_t tid)
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
		if (proc_is_number(task[i], INT32_MAX, &tid) && !is_vcpu(vm, vms, pid, (int32_t)tid))
			add_member(c, root, pid, (int32_t)tid, runs_of(root, pid, (int32_t)tid));
	proc_names_free(task, n);
}

struct cgroups *cgroups_take_host(const char *root, const struct vm *vm, size_t vms)
{
	size_t n;
	uint64_t pid;
	struct cgroups *c = mem_new(1, sizeof *c);
	char **process = proc_names(root, "", &n, "/proc");
	for (size_t i = 0; i < n; i++)
		if (proc_is_number(process[i], INT32_MAX, &pid))
			add_process(c, root, (int32_t)pid, vm, vms);
	proc_names_free(process, n);
	return sorted(c);
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

static const struct cgroup_quota *group_of(const struct cgroups *c, const char *path, size_t length)
{
	for (size_t i = 0; c && i < c->groups; i++)
		if (strncmp(c->group[i].path, path, length) == 0 && !c->group[i].path[length])
			return &c->group[i];
	return NULL;
}

static const char *stat_of(const struct cgroups *c, const char *path)
{
	const struct cgroup_quota *g = group_of(c, path, strlen(path));
	return g ? g->stat : NULL;
}

/* "usage_usec 1\nuser_usec 2": as a mapping. */
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
		if (c->group[i].alone)
			continue;
		const int group = yaml_out_map(o, list, NULL);
		yaml_out_escaped(o, group, "path", c->group[i].path);
		yaml_out_escaped(o, group, "quota", c->group[i].quota);
		put_stat(o, group, "before", stat_of(before, c->group[i].path));
		put_stat(o, group, "after", stat_of(after, c->group[i].path));
	}
}

static const struct group_member *member_of(const struct cgroups *c, int32_t tid)
{
	const struct group_member key = { .tid = tid };
	return c && c->members ? bsearch(&key, c->member, c->members, sizeof key, by_tid) : NULL;
}

/* Were the weights of the group and of all around it the same before and after? */
static bool is_steady(const struct cgroups *before, const struct cgroups *after, const char *path)
{
	for (size_t end = 0; path[end]; ) {
		end += 1 + strcspn(path + end + 1, "/");
		const struct cgroup_quota *a = group_of(before, path, end), *b = group_of(after, path, end);
		if (!a || !b || a->shares != b->shares)
			return false;
	}
	return true;
}

static bool is_told(const struct cgroups *before, const struct cgroups *after, size_t member)
{
	const struct group_member *m = &before->member[member], *then = member_of(after, m->tid);
	const bool slept = then && m->runs >= 0 && then->runs == m->runs;
	return then && !slept && strcmp(then->path, m->path) == 0 && is_steady(before, after, m->path);
}

void cgroups_put_threads(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after)
{
	int groups = 0;
	for (size_t i = 0; before && i < before->members; i++) {
		char tid[16];
		if (!is_told(before, after, i))
			continue;
		snprintf(tid, sizeof tid, "%d", before->member[i].tid);
		groups = groups ? groups : yaml_out_map(o, map, "groups");
		yaml_out_escaped(o, groups, tid, before->member[i].path);
	}
}

/* Is the group around one of a member that is told? */
static bool is_wanted(const struct cgroups *before, const struct cgroups *after, const char *path)
{
	const size_t length = strlen(path);
	for (size_t i = 0; i < before->members; i++) {
		const char *in = before->member[i].path;
		if (strncmp(in, path, length) == 0 && (in[length] == '/' || !in[length]) && is_told(before, after, i))
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
			bool known = !g->shares || !is_wanted(before[i], after[i], g->path);
			for (size_t earlier = 0; earlier < i && !known; earlier++)
				known = before[earlier] && group_of(before[earlier], g->path, strlen(g->path)) &&
				        is_wanted(before[earlier], after[earlier], g->path);
			if (known)
				continue;
			weights = weights ? weights : yaml_out_map(o, map, "weights");
			yaml_out_number(o, weights, text_escape(escaped, sizeof escaped, g->path), g->shares);
		}
}
