#include "record/cgroups.h"

#include <dirent.h>

#include "base/base.h"
#include "base/control_groups.h"
#include "record/control_group.h"
#include "record/proc.h"

#define SHARES_DEFAULT 1024
#define WEIGHT_DEFAULT 100  /* cpu.weight of a group with the default shares */
#define SHARES_MAX 262144
#define SHARES_IDLE 3  /* weight of an idle group (cpu.idle=1), which runs only if no other group wants the CPU; its
                        * cpu.weight reads 0 */
#define SCHED_IDLE_NUMBER "5"  /* number of the policy SCHED_IDLE in /proc/PID/stat */

struct cgroups {
	struct cgroup_tree tree;
	struct recorded_group {
		char *path, *name, *cpus;  /* name: for people; cpus: CPU set on v2; NULL: unknown */
		bool synthetic;  /* not a real group: stands for a single SCHED_IDLE thread */
		int64_t shares;  /* scheduler weight; 0: none or unknown */
		bool has_stat;
		struct cgroup_quota quota;
		struct cgroup_stat stat;
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
static int64_t group_shares(const struct cgroup_tree *t, const char *root, const char *path)
{
	const int64_t unit = t->is_v2 ? WEIGHT_DEFAULT : SHARES_DEFAULT;
	int64_t weight;
	if (!proc_number(root, &weight, "%s%s/%s", t->dir, path, t->is_v2 ? "cpu.weight" : "cpu.shares") || weight < 0 ||
	    weight > SHARES_MAX)
		return 0;
	return weight == 0 ? SHARES_IDLE : (weight * SHARES_DEFAULT + unit / 2) / unit;
}

static void add_group(struct cgroups *c, const char *root, const char *path)
{
	for (size_t i = 0; i < c->groups; i++)
		if (strcmp(c->group[i].path, path) == 0)
			return;
	if (c->groups >= CGROUPS_GROUPS)
		return;
	struct recorded_group *g = ARRAY_PUSH(c->group, c->groups, c->cap);
	*g = (struct recorded_group){
		.path = mem_dup(path), .name = control_group_name(root, path), .shares = group_shares(&c->tree, root, path),
		.cpus = c->tree.is_v2 ? proc_line(root, "%s%s/cpuset.cpus.effective", c->tree.dir, path) : NULL,
		.quota = cgroup_quota_read(&c->tree, root, path),
	};
	g->has_stat = cgroup_stat_read(&c->tree, root, path, &g->stat);
}

/* Adds the group of a thread and the group's ancestors, since each may have a quota. Returns the group's path, which
 * the caller frees; NULL: no group. */
static char *add_groups(struct cgroups *c, const char *root, int32_t pid, int32_t tid)
{
	char *innermost = cgroup_tree_path(&c->tree, root, pid, tid), *path = innermost ? mem_dup(innermost) : NULL, *slash;
	while (path && (slash = strrchr(path, '/')) && slash[1]) {
		add_group(c, root, path);
		*slash = '\0';
	}
	free(path);
	return innermost;
}

/* Adds a synthetic idle group below `path` (freed) for a SCHED_IDLE thread. Returns the path of the new group. */
static char *add_idle(struct cgroups *c, char *path, int32_t tid)
{
	char *synthetic = mem_printf("%s/sched_idle:%d", strcmp(path, "/") == 0 ? "" : path, tid);
	if (c->groups < CGROUPS_GROUPS)
		*ARRAY_PUSH(c->group, c->groups, c->cap) =
			(struct recorded_group){ .path = mem_dup(synthetic), .synthetic = true, .shares = SHARES_IDLE };
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
	if (path)
		*ARRAY_PUSH(c->member, c->members, c->member_cap) = (struct group_member){ tid, path, runs };
}

ORDER_BY(by_tid, struct group_member, RISING(tid))

static struct cgroups *sort_groups(struct cgroups *c)
{
	ARRAY_SORT(c->member, c->members, by_tid);
	return c;
}

static struct cgroups *cgroups_new(const char *root)
{
	struct cgroups *c = mem_new(1, sizeof *c);
	cgroup_tree_find(&c->tree, root);
	return c;
}

struct cgroups *cgroups_read_vm(const char *root, const struct vm *vm)
{
	struct cgroups *c = cgroups_new(root);
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

/* Adds all groups below a path, also those without threads: threads may move there. */
static void add_tree(struct cgroups *c, const char *root, const char *path)
{
	char *name = mem_printf("%s%s%s", root, c->tree.dir, path);
	DIR *dir = *c->tree.dir ? opendir(name) : NULL;
	const struct dirent *entry;
	free(name);
	while (dir && c->groups < CGROUPS_GROUPS && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		char *below = mem_printf("%s/%s", path, entry->d_name);
		add_group(c, root, below);
		add_tree(c, root, below);
		free(below);
	}
	if (dir)
		closedir(dir);
}

struct cgroups *cgroups_read_host(const char *root, const struct vm *vm, size_t vms)
{
	size_t n;
	uint64_t pid;
	struct cgroups *c = cgroups_new(root);
	char **process = proc_names(root, "", &n, "/proc");
	for (size_t i = 0; i < n; i++)
		if (proc_parse_number(process[i], INT32_MAX, &pid))
			add_process(c, root, (int32_t)pid, vm, vms);
	proc_names_free(process, n);
	add_tree(c, root, "");
	return sort_groups(c);
}

bool record_has_quotas(const char *root)
{
	bool has = false;
	struct cgroups *c = cgroups_new(root);
	add_tree(c, root, "");
	for (size_t i = 0; i < c->groups; i++)
		has = has || c->group[i].quota.quota;
	cgroups_free(c);
	return has;
}

void cgroups_free(struct cgroups *c)
{
	for (size_t i = 0; c && i < c->groups; i++) {
		free(c->group[i].path);
		free(c->group[i].name);
		free(c->group[i].cpus);
	}
	for (size_t i = 0; c && i < c->members; i++)
		free(c->member[i].path);
	if (c) {
		free(c->group);
		free(c->member);
	}
	free(c);
}

static const struct recorded_group *find_group(const struct cgroups *c, const char *path, size_t length)
{
	for (size_t i = 0; c && i < c->groups; i++)
		if (strncmp(c->group[i].path, path, length) == 0 && !c->group[i].path[length])
			return &c->group[i];
	return NULL;
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
		const struct recorded_group *a = find_group(before, path, end), *b = find_group(after, path, end);
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

/* Adds the groups and threads of a snapshot; a group that the list has gets its later properties. */
static void list_groups(struct control_groups *list, const struct cgroups *c, const struct cgroups *before)
{
	for (size_t i = 0; c && i < c->groups; i++) {
		const struct recorded_group *g = &c->group[i], *old = find_group(before, g->path, strlen(g->path));
		const uint32_t index = g->synthetic ? UINT32_MAX : control_groups_put(list, g->path);
		if (index == UINT32_MAX)
			continue;
		control_groups_describe(list, index, g->name, g->cpus);
		list->group[index].quota_ns = g->quota.quota;
		list->group[index].period_ns = g->quota.period;
		if ((g->quota.quota || (old && old->quota.quota)) && g->has_stat && old && old->has_stat) {
			list->group[index].periods = g->stat.periods - old->stat.periods;
			list->group[index].throttled = g->stat.throttled - old->stat.throttled;
			list->group[index].throttled_ns = g->stat.throttled_ns - old->stat.throttled_ns;
		}
	}
	for (size_t i = 0; c && i < c->members; i++) {
		const char *path = c->member[i].path, *synthetic = strstr(path, "/sched_idle:");
		char *real = mem_printf("%.*s", (int)(synthetic ? (size_t)(synthetic - path) : strlen(path)), path);
		if (*real && strcmp(real, "/") != 0 && !(before && find_member(before, c->member[i].tid)))
			control_groups_add_member(list, c->member[i].tid, real);
		free(real);
	}
}

/* Names the groups of pods, which no file names, after their containers: NAMESPACE/POD. */
static void name_pods(struct control_groups *list)
{
	for (size_t i = 0; i < list->groups; i++) {
		const char *path = list->group[i].path, *name = list->group[i].name, *first = strchr(name, '/');
		const char *second = first ? strchr(first + 1, '/') : NULL;
		char *outer = mem_printf("%.*s", (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0), path);
		const int32_t pod = control_groups_find(list, outer);
		if (second && !strchr(second + 1, '/') && pod >= 0 && strstr(strrchr(outer, '/'), "pod")) {
			free(list->group[pod].name);
			list->group[pod].name = mem_printf("%.*s", (int)(second - name), name);
		}
		free(outer);
	}
}

void cgroups_put_list(struct yaml_out *o, int map, const struct cgroups *before, const struct cgroups *after,
                      bool has_events)
{
	struct control_groups list = { .has_events = has_events };
	list_groups(&list, before, NULL);
	list_groups(&list, after, before);
	name_pods(&list);
	control_groups_write(o, map, &list);
	control_groups_release(&list);
}

char *cgroups_quota_file(const struct cgroups *c, const char *root, size_t *number)
{
	size_t at = 0;  /* the list of cgroups_put_list() begins with the earlier snapshot, without synthetic groups */
	for (size_t i = 0; c && i < c->groups; i++) {
		const struct recorded_group *g = &c->group[i];
		if (!g->synthetic && at >= *number && g->quota.quota) {
			*number = at;
			return mem_printf("%s%s%s/cpu.stat", root, c->tree.dir, g->path);
		}
		at += !g->synthetic;
	}
	return NULL;
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
			const struct recorded_group *g = &before[i]->group[k];
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
