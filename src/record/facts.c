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

/* ---- control groups */

static const struct { const char *hierarchy, *place, *quota; } versions[] = {
	{ "0::", "/sys/fs/cgroup", "cpu.max" },
	{ ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us" },
	{ ":cpu:", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us" },
};

struct facts {
	struct cgroup_quota { char *path, *quota, *stat; } *group;
	size_t groups, cap;
};

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
	};
}

/* The group of a thread and all around it, any of which may have a quota. */
static void add_groups(struct facts *f, const char *root, int32_t pid, int32_t tid)
{
	char *text = proc_text(root, NULL, "/proc/%d/task/%d/cgroup", pid, tid);
	for (size_t i = 0; text && i < sizeof versions / sizeof *versions; i++) {
		const char *at = strstr(text, versions[i].hierarchy);
		if (!at || !proc_exists(root, "%s", versions[i].place))
			continue;
		at += strlen(versions[i].hierarchy);
		char *path = mem_printf("%.*s", (int)strcspn(at, "\n"), at), *slash;
		while (!strstr(path, "..") && (slash = strrchr(path, '/')) && slash[1]) {
			add_group(f, root, i, path);
			*slash = '\0';
		}
		free(path);
		break;
	}
	free(text);
}

struct facts *facts_take(const char *root, const struct vm *vm)
{
	struct facts *f = mem_new(1, sizeof *f);
	add_groups(f, root, vm->pid, vm->pid);
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid)
			add_groups(f, root, vm->pid, vm->vcpu[i].tid);
	return f;
}

void facts_free(struct facts *f)
{
	for (size_t i = 0; f && i < f->groups; i++) {
		free(f->group[i].path);
		free(f->group[i].quota);
		free(f->group[i].stat);
	}
	if (f)
		free(f->group);
	free(f);
}

/* Names are those of the host's administrators, or of those who may start VMs. */
static void put_escaped(struct yaml_out *o, int map, const char *key, const char *text)
{
	char escaped[1024];
	if (text)
		yaml_out_text(o, map, key, text_escape(escaped, sizeof escaped, text));
}

static const char *stat_of(const struct facts *f, const char *path)
{
	for (size_t i = 0; f && i < f->groups; i++)
		if (strcmp(f->group[i].path, path) == 0)
			return f->group[i].stat;
	return NULL;
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
