#include "record/session_facts.h"

#include "base/base.h"
#include "base/vcpu_name.h"
#include "record/proc.h"

#define MAX_THREADS 1024

/* ---- threads */

static const struct vm_vcpu *find_vcpu(const struct vm *vm, int32_t tid)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].tid == tid)
			return &vm->vcpu[i];
	return NULL;
}

static const struct { const char *prefix, *kind; } thread_kinds[] = {
	{ "IO ", "iothread" }, { "iothread", "iothread" }, { "worker", "worker" }, { "vhost-", "vhost" },
	{ "kvm-pit/", "pit" },
};

static const char *thread_kind(const struct vm *vm, int32_t tid, const char *name)
{
	if (find_vcpu(vm, tid))
		return "vcpu";
	if (tid == vm->pid)
		return "main";
	for (size_t i = 0; i < sizeof thread_kinds / sizeof *thread_kinds; i++)
		if (strncmp(name, thread_kinds[i].prefix, strlen(thread_kinds[i].prefix)) == 0)
			return thread_kinds[i].kind;
	return "other";
}

static const char *thread_policy(const char *number)
{
	static const char *const policy[] = { "other", "fifo", "rr", "batch", NULL, "idle", "deadline" };
	uint64_t n;
	if (!number || !proc_parse_number(number, sizeof policy / sizeof *policy - 1, &n))
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
	const struct vm_vcpu *vcpu = find_vcpu(vm, tid);
	if (name) {
		const int map = yaml_out_braces(o, list, NULL);
		yaml_out_number(o, map, "tid", tid);
		yaml_out_escaped(o, map, "name", name);
		yaml_out_text(o, map, "kind", thread_kind(vm, tid, name));
		if (vcpu)
			yaml_out_number(o, map, "vcpu", vcpu->number);
		yaml_out_text(o, map, "cpus", cpus);
		yaml_out_text(o, map, "policy", thread_policy(policy));
		yaml_out_text(o, map, "nice", nice);
		if (priority && strcmp(priority, "0") != 0)
			yaml_out_text(o, map, "priority", priority);
	}
	char *const all[] = { name, status, cpus, nice, priority, policy };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

/* Writes the threads of the VM's process, and the kernel threads that are named after its PID. */
static void put_threads(struct yaml_out *o, int map, const char *root, const struct vm *vm)
{
	size_t n, processes;
	uint64_t id;
	const int list = yaml_out_list(o, map, "threads");
	char **task = proc_names(root, "", &n, "/proc/%d/task", vm->pid), **process = proc_names(root, "", &processes, "/proc");
	for (size_t i = 0; i < n && i < MAX_THREADS; i++)
		if (proc_parse_number(task[i], INT32_MAX, &id))
			put_thread(o, list, root, vm, vm->pid, (int32_t)id);
	for (size_t i = 0; i < processes; i++) {
		char *comm = proc_parse_number(process[i], INT32_MAX, &id) ? proc_line(root, "/proc/%s/comm", process[i]) : NULL;
		if (comm && vm_worker_pid(comm) == vm->pid)
			put_thread(o, list, root, vm, (int32_t)id, (int32_t)id);
		free(comm);
	}
	proc_names_free(task, n);
	proc_names_free(process, processes);
}

void facts_put_vm(struct yaml_out *o, int map, const char *root, const struct vm *vm, const struct cgroups *before,
                  const struct cgroups *after)
{
	yaml_out_escaped(o, map, "program", vm->vmm);
	yaml_out_number(o, map, "pid", vm->pid);
	yaml_out_escaped(o, map, "uuid", vm->uuid);
	yaml_out_text(o, map, "named_by", vm->named_by);
	yaml_out_text(o, map, "vcpus_by", vm->mapped_by);
	cgroups_put_list(o, map, before, after, false);
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
	yaml_out_escaped(o, map, "cpu", model);
	yaml_out_text(o, map, "online", online);
	yaml_out_text(o, map, "smt", smt);
	yaml_out_text(o, map, "governor", governor);
	yaml_out_text(o, map, "clocksource", source);
	for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
		char *value = proc_line(root, "/sys/module/%s", parameters[i]);
		yaml_out_escaped(o, map, strrchr(parameters[i], '/') + 1, value);
		free(value);
	}
	char *const all[] = { cpuinfo, model, governor, source, online, smt };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}
