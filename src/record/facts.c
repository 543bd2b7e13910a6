#include "record/facts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/proc.h"

#define MOST_THREADS 1024
#define MOST_GROUPS 256
#define SHARES_USUAL 1024
#define SHARES_MOST 262144
#define SHARES_IDLE 3  /* of a group that has the CPU when nobody else wants it: its weight reads 0 */

/* ---- control groups */

static const struct { const char *hierarchy, *place, *quota, *weight; int64_t usual; } versions[] = {
	{ "0::", "/sys/fs/cgroup", "cpu.max", "cpu.weight", 100 },
	{ ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "cpu.shares", SHARES_USUAL },
	{ ":cpu:", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.shares", SHARES_USUAL },
};

struct facts {
	struct cgroup_quota { char *path, *quota, *stat; int64_t shares; } *group;  /* shares: 0 = they are not known */
	size_t groups, cap;
	struct group_member { int32_t tid; char *path; } *member;  /* vCPUs' threads */
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

static void add_group(struct facts *f, const char *root, size_t version, const char *path)
{
	for (size_t i = 0; i < f->groups; i++)
		if (strcmp(f->group[i].path, path) == 0)
			return;
	if (f->groups >= MOST_GROUPS)
		return;
	*ARRAY_PUSH(f->group, f->groups, f->cap) = (struct cgroup_quota){
		.path = mem_dup(path),
		.quota = proc_line(root, "%s%s/%s", versions[version].place, path, versions[version].quota),
		.stat = proc_text(root, NULL, "%s%s/cpu.stat", versions[version].place, path),
		.shares = shares_of(root, version, path),
	};
}

/* The group of a thread and all around it, any of which may have a quota.  NULL: it is in none.  The caller frees. */
static char *add_groups(struct facts *f, const char *root, int32_t pid, int32_t tid)
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
			add_group(f, root, i, path);
			*slash = '\0';
		}
		free(path);
		break;
	}
	free(text);
	return innermost;
}

static void add_member(struct facts *f, const char *root, int32_t pid, int32_t tid)
{
	char *path = add_groups(f, root, pid, tid);
	if (path && *path == '/' && !strstr(path, ".."))
		*ARRAY_PUSH(f->member, f->members, f->member_cap) = (struct group_member){ tid, path };
	else
		free(path);
}

struct facts *facts_take(const char *root, const struct vm *vm)
{
	struct facts *f = mem_new(1, sizeof *f);
	free(add_groups(f, root, vm->pid, vm->pid));
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid)
			add_member(f, root, vm->pid, vm->vcpu[i].tid);
	return f;
}

void facts_free(struct facts *f)
{
	for (size_t i = 0; f && i < f->groups; i++) {
		free(f->group[i].path);
		free(f->group[i].quota);
		free(f->group[i].stat);
	}
	for (size_t i = 0; f && i < f->members; i++)
		free(f->member[i].path);
	if (f) {
		free(f->group);
		free(f->member);
	}
	free(f);
}

/* Names are those of the host's administrators, or of those who may start VMs. */
static void put_escaped(struct yaml_out *o, int map, const char *key, const char *text)
{
	char escaped[1024];
	if (text)
		yaml_out_text(o, map, key, text_escape(escaped, sizeof escaped, text));
}

static const struct cgroup_quota *group_of(const struct facts *f, const char *path, size_t length)
{
	for (size_t i = 0; f && i < f->groups; i++)
		if (strncmp(f->group[i].path, path, length) == 0 && !f->group[i].path[length])
			return &f->group[i];
	return NULL;
}

static const char *stat_of(const struct facts *f, const char *path)
{
	const struct cgroup_quota *g = group_of(f, path, strlen(path));
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

static void put_groups(struct yaml_out *o, int map, const struct facts *before, const struct facts *after)
{
	const struct facts *f = before ? before : after;
	const int list = f && f->groups ? yaml_out_list(o, map, "cgroups") : 0;
	for (size_t i = 0; f && i < f->groups; i++) {
		const int group = yaml_out_map(o, list, NULL);
		put_escaped(o, group, "path", f->group[i].path);
		put_escaped(o, group, "quota", f->group[i].quota);
		put_stat(o, group, "before", stat_of(before, f->group[i].path));
		put_stat(o, group, "after", stat_of(after, f->group[i].path));
	}
}

static const char *path_of(const struct facts *f, int32_t tid)
{
	for (size_t i = 0; f && i < f->members; i++)
		if (f->member[i].tid == tid)
			return f->member[i].path;
	return NULL;
}

/* Were the weights of the group and of all around it the same before and after? */
static bool is_steady(const struct facts *before, const struct facts *after, const char *path)
{
	for (size_t end = 0; path[end]; ) {
		end += 1 + strcspn(path + end + 1, "/");
		const struct cgroup_quota *a = group_of(before, path, end), *b = group_of(after, path, end);
		if (!a || !b || a->shares != b->shares)
			return false;
	}
	return true;
}

/* Members whose groups are not known to have stayed as they were are left out. */
static bool is_told(const struct facts *before, const struct facts *after, size_t member)
{
	const struct group_member *m = &before->member[member];
	const char *then = path_of(after, m->tid);
	return then && strcmp(then, m->path) == 0 && is_steady(before, after, m->path);
}

void facts_put_groups(struct yaml_out *o, int map, const struct facts *before, const struct facts *after)
{
	int groups = 0;
	for (size_t i = 0; before && i < before->members; i++) {
		char tid[16];
		if (!is_told(before, after, i))
			continue;
		snprintf(tid, sizeof tid, "%d", before->member[i].tid);
		groups = groups ? groups : yaml_out_map(o, map, "groups");
		put_escaped(o, groups, tid, before->member[i].path);
	}
}

/* Is the group around one of a member that is told? */
static bool is_wanted(const struct facts *before, const struct facts *after, const char *path)
{
	const size_t length = strlen(path);
	for (size_t i = 0; i < before->members; i++) {
		const char *in = before->member[i].path;
		if (strncmp(in, path, length) == 0 && (in[length] == '/' || !in[length]) && is_told(before, after, i))
			return true;
	}
	return false;
}

void facts_put_weights(struct yaml_out *o, int map, struct facts *const *before, struct facts *const *after, size_t n)
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

/* ---- threads */

static const struct vm_vcpu *vcpu_of(const struct vm *vm, int32_t tid)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid == tid)
			return &vm->vcpu[i];
	return NULL;
}

static const struct { const char *prefix, *kind; } thread_kinds[] = {
	{ "IO ", "iothread" }, { "iothread", "iothread" }, { "worker", "worker" }, { "vhost-", "vhost" },
};

static const char *kind_of(const struct vm *vm, int32_t tid, const char *name)
{
	if (vcpu_of(vm, tid))
		return "vcpu";
	if (tid == vm->pid)
		return "main";
	for (size_t i = 0; i < sizeof thread_kinds / sizeof *thread_kinds; i++)
		if (strncmp(name, thread_kinds[i].prefix, strlen(thread_kinds[i].prefix)) == 0)
			return thread_kinds[i].kind;
	return "other";
}

static const char *policy_of(const char *number)
{
	static const char *const policy[] = { "other", "fifo", "rr", "batch", NULL, "idle", "deadline" };
	uint64_t n;
	if (!number || !proc_is_number(number, sizeof policy / sizeof *policy - 1, &n))
		return NULL;
	return policy[n];
}

static void put_thread(struct yaml_out *o, int list, const char *root, const struct vm *vm, int32_t pid, int32_t tid)
{
	char *name = proc_line(root, "/proc/%d/task/%d/comm", pid, tid);
	char *status = name ? proc_text(root, NULL, "/proc/%d/task/%d/status", pid, tid) : NULL;
	char *cpus = status ? proc_field(status, "Cpus_allowed_list") : NULL;
	char *nice = proc_stat_word(root, pid, tid, 16), *priority = proc_stat_word(root, pid, tid, 37);
	char *policy = proc_stat_word(root, pid, tid, 38);
	const struct vm_vcpu *vcpu = vcpu_of(vm, tid);
	if (name) {
		const int map = yaml_out_braces(o, list, NULL);
		yaml_out_number(o, map, "tid", tid);
		put_escaped(o, map, "name", name);
		yaml_out_text(o, map, "kind", kind_of(vm, tid, name));
		if (vcpu)
			yaml_out_number(o, map, "vcpu", vcpu->number);
		yaml_out_text(o, map, "cpus", cpus);
		yaml_out_text(o, map, "policy", policy_of(policy));
		yaml_out_text(o, map, "nice", nice);
		if (priority && strcmp(priority, "0") != 0)
			yaml_out_text(o, map, "priority", priority);
	}
	char *const all[] = { name, status, cpus, nice, priority, policy };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

/* Of the process, and, where vhost's are threads of the kernel, those named after it. */
static void put_threads(struct yaml_out *o, int map, const char *root, const struct vm *vm)
{
	size_t n, processes;
	uint64_t id;
	const int list = yaml_out_list(o, map, "threads");
	char **task = proc_names(root, "", &n, "/proc/%d/task", vm->pid), **process = proc_names(root, "", &processes, "/proc");
	char *vhost = mem_printf("vhost-%d", vm->pid);
	for (size_t i = 0; i < n && i < MOST_THREADS; i++)
		if (proc_is_number(task[i], INT32_MAX, &id))
			put_thread(o, list, root, vm, vm->pid, (int32_t)id);
	for (size_t i = 0; i < processes; i++) {
		char *comm = proc_is_number(process[i], INT32_MAX, &id) ? proc_line(root, "/proc/%s/comm", process[i]) : NULL;
		if (comm && strcmp(comm, vhost) == 0)
			put_thread(o, list, root, vm, (int32_t)id, (int32_t)id);
		free(comm);
	}
	free(vhost);
	proc_names_free(task, n);
	proc_names_free(process, processes);
}

void facts_put_vm(struct yaml_out *o, int map, const char *root, const struct vm *vm, const struct facts *before,
                  const struct facts *after)
{
	put_escaped(o, map, "program", vm->vmm);
	yaml_out_number(o, map, "pid", vm->pid);
	put_escaped(o, map, "uuid", vm->uuid);
	yaml_out_text(o, map, "named_by", vm->named_by);
	yaml_out_text(o, map, "vcpus_by", vm->mapped_by);
	put_groups(o, map, before, after);
	put_threads(o, map, root, vm);
}

/* ---- the host */

static const char *const parameters[] = {
	"kvm/parameters/halt_poll_ns", "kvm/parameters/halt_poll_ns_grow", "kvm/parameters/halt_poll_ns_shrink",
	"kvm/parameters/kvmclock_periodic_sync", "kvm_intel/parameters/ple_gap", "kvm_intel/parameters/ple_window",
	"kvm_amd/parameters/pause_filter_thresh", "kvm_amd/parameters/pause_filter_count", "kvm_amd/parameters/avic",
	"kvm_intel/parameters/enable_apicv",
};

void facts_put_host(struct yaml_out *o, int map, const char *root)
{
	char *cpuinfo = proc_text(root, NULL, "/proc/cpuinfo"), *model = cpuinfo ? proc_field(cpuinfo, "model name") : NULL;
	char *governor = proc_line(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	char *source = proc_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	char *online = proc_line(root, "/sys/devices/system/cpu/online");
	char *smt = proc_line(root, "/sys/devices/system/cpu/smt/active");
	put_escaped(o, map, "cpu", model);
	yaml_out_text(o, map, "online", online);
	yaml_out_text(o, map, "smt", smt);
	yaml_out_text(o, map, "governor", governor);
	yaml_out_text(o, map, "clocksource", source);
	for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
		char *value = proc_line(root, "/sys/module/%s", parameters[i]);
		put_escaped(o, map, strrchr(parameters[i], '/') + 1, value);
		free(value);
	}
	char *const all[] = { cpuinfo, model, governor, source, online, smt };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}
