/* Finds processes that run virtual machines, and their vCPU threads, from /proc and debugfs only. Works for every VMM
 * that uses KVM (QEMU, cloud-hypervisor, Firecracker, crosvm), however it was started. */
#include "record/vm_discovery.h"

#include <limits.h>

#include "base/base.h"
#include "base/vcpu_name.h"
#include "record/proc.h"

#define VM_LINK "anon_inode:kvm-vm"
#define VCPU_LINK "anon_inode:kvm-vcpu:"
#define VIRTUALBOX_LINK "/dev/vboxdrv"  /* and /dev/vboxdrvu */
#define GVISOR "runsc"
#define MAX_VCPUS 4096

/* ---- file descriptors */

struct descriptors {
	unsigned *vm;    /* file descriptors of VMs */
	size_t vms, vms_cap;
	unsigned *vcpu;  /* numbers of the vCPUs with a file descriptor */
	size_t vcpus, vcpus_cap;
	bool is_virtualbox;  /* its vCPUs have no file descriptors */
};

/* Finds the KVM file descriptors of a process. Returns false if its descriptors cannot be listed. */
static bool read_descriptors(const char *root, int32_t pid, struct descriptors *d)
{
	size_t n;
	*d = (struct descriptors){ 0 };
	char **name = proc_names(root, "", &n, "/proc/%d/fd", pid);
	for (size_t i = 0; i < n; i++) {
		uint64_t fd, vcpu;
		char *target = proc_link(root, "/proc/%d/fd/%s", pid, name[i]);
		if (target && proc_parse_number(name[i], INT_MAX, &fd)) {
			if (strcmp(target, VM_LINK) == 0)
				*ARRAY_PUSH(d->vm, d->vms, d->vms_cap) = (unsigned)fd;
			else if (strncmp(target, VCPU_LINK, strlen(VCPU_LINK)) == 0 &&
			         proc_parse_number(target + strlen(VCPU_LINK), MAX_VCPUS - 1, &vcpu))
				*ARRAY_PUSH(d->vcpu, d->vcpus, d->vcpus_cap) = (unsigned)vcpu;
			d->is_virtualbox |= strncmp(target, VIRTUALBOX_LINK, strlen(VIRTUALBOX_LINK)) == 0;
		}
		free(target);
	}
	proc_names_free(name, n);
	return n > 0;
}

static void descriptors_release(struct descriptors *d)
{
	free(d->vm);
	free(d->vcpu);
}

/* ---- threads of vCPUs */

static struct vm_vcpu *find_vcpu(struct vm *vm, unsigned number)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		if (vm->vcpu[i].number == number)
			return &vm->vcpu[i];
	return NULL;
}

/* Returns the directory of a VM in debugfs; NULL: none. The caller frees. The directory is named TID-FD: the thread that
 * created the VM, which may have ended, and the file descriptor. So the vCPU threads recorded there decide whether it
 * belongs to the process. */
static char *find_debugfs(const char *root, int32_t pid, const struct descriptors *d)
{
	size_t n;
	char **name = proc_names(root, "", &n, "/sys/kernel/debug/kvm"), *found = NULL;
	for (size_t i = 0; i < n && !found; i++) {
		const char *dash = strchr(name[i], '-');
		uint64_t fd;
		int64_t tid;
		if (!dash || !proc_parse_number(dash + 1, INT_MAX, &fd))
			continue;
		for (size_t k = 0; k < d->vms && !found; k++)
			for (size_t v = 0; v < d->vcpus && d->vm[k] == fd && !found; v++)
				if (proc_number(root, &tid, "/sys/kernel/debug/kvm/%s/vcpu%u/pid", name[i], d->vcpu[v]) &&
				    proc_exists(root, "/proc/%d/task/%d", pid, (int)tid))
					found = mem_dup(name[i]);
	}
	proc_names_free(name, n);
	return found;
}

static void map_by_debugfs(const char *root, struct vm *vm, const char *dir)
{
	int64_t tid;
	for (size_t i = 0; dir && i < vm->vcpus; i++)
		if (proc_number(root, &tid, "/sys/kernel/debug/kvm/%s/vcpu%u/pid", dir, vm->vcpu[i].number) && tid > 0 &&
		    proc_exists(root, "/proc/%d/task/%d", vm->pid, (int)tid))
			vm->vcpu[i].tid = (int32_t)tid;
}

static void map_by_names(const char *root, struct vm *vm)
{
	size_t n;
	char **task = proc_names(root, "", &n, "/proc/%d/task", vm->pid);
	for (size_t i = 0; i < n; i++) {
		char *comm = proc_line(root, "/proc/%d/task/%s/comm", vm->pid, task[i]);
		const int number = comm ? vcpu_name_number(comm) : -1;
		struct vm_vcpu *vcpu = number >= 0 ? find_vcpu(vm, (unsigned)number) : NULL;
		if (vcpu && !vcpu->tid)
			vcpu->tid = atoi(task[i]);
		free(comm);
	}
	proc_names_free(task, n);
}

/* Adds a vCPU for each thread with the name of one. */
static void add_named_vcpus(const char *root, int32_t pid, struct descriptors *d)
{
	size_t n;
	char **task = proc_names(root, "", &n, "/proc/%d/task", pid);
	for (size_t i = 0; i < n && d->vcpus < MAX_VCPUS; i++) {
		char *comm = proc_line(root, "/proc/%d/task/%s/comm", pid, task[i]);
		const int number = comm ? vcpu_name_number(comm) : -1;
		if (number >= 0 && number < MAX_VCPUS)
			*ARRAY_PUSH(d->vcpu, d->vcpus, d->vcpus_cap) = (unsigned)number;
		free(comm);
	}
	proc_names_free(task, n);
}

ORDER_BY(by_vcpu_number, struct vm_vcpu, RISING(number))

static void add_vcpus(const char *root, struct vm *vm, const struct descriptors *d)
{
	size_t cap = 0;
	for (size_t i = 0; i < d->vcpus; i++)
		if (!find_vcpu(vm, d->vcpu[i]))
			*ARRAY_PUSH(vm->vcpu, vm->vcpus, cap) = (struct vm_vcpu){ .number = d->vcpu[i] };
	qsort(vm->vcpu, vm->vcpus, sizeof *vm->vcpu, by_vcpu_number);
	char *dir = find_debugfs(root, vm->pid, d);
	map_by_debugfs(root, vm, dir);
	map_by_names(root, vm);
	vm->mapped_by = dir ? "debugfs" : "thread names";
	vm->debugfs = dir;
	for (size_t i = 0; i < vm->vcpus; i++)
		vm->unmapped += !vm->vcpu[i].tid;
}

/* ---- TSC */

static struct vm_tsc read_tsc(const char *root, const char *dir, unsigned vcpu)
{
	struct vm_tsc tsc = { .ratio = 1 };
	int64_t ratio, bits;
	tsc.known = proc_number(root, &tsc.offset, "/sys/kernel/debug/kvm/%s/vcpu%u/tsc-offset", dir, vcpu);
	if (proc_number(root, &ratio, "/sys/kernel/debug/kvm/%s/vcpu%u/tsc-scaling-ratio", dir, vcpu) &&
	    proc_number(root, &bits, "/sys/kernel/debug/kvm/%s/vcpu%u/tsc-scaling-ratio-frac-bits", dir, vcpu) &&
	    ratio > 0 && bits >= 0 && bits < 64) {
		tsc.ratio = (uint64_t)ratio;
		tsc.bits = (unsigned)bits;
	}
	return tsc;
}

bool vm_read_tsc(const char *root, const struct vm *vm, struct vm_tsc *tsc)
{
	bool all = vm->debugfs && vm->vcpus > 0;
	for (size_t i = 0; i < vm->vcpus; i++) {
		tsc[i] = vm->debugfs ? read_tsc(root, vm->debugfs, vm->vcpu[i].number) : (struct vm_tsc){ .ratio = 1 };
		all &= tsc[i].known;
	}
	return all;
}

/* ---- all VMs */

/* gVisor moves its vCPUs between threads. */
static bool is_gvisor(const char *root, int32_t pid)
{
	char *exe = proc_link(root, "/proc/%d/exe", pid), *slash = exe ? strrchr(exe, '/') : NULL;
	const bool is = slash && strncmp(slash + 1, GVISOR, strlen(GVISOR)) == 0;
	free(exe);
	return is;
}

bool vms_have_gvisor(const char *root)
{
	size_t n;
	bool found = false;
	char **name = proc_names(root, "", &n, "/proc");
	uint64_t pid;
	for (size_t i = 0; i < n && !found; i++)
		found = proc_parse_number(name[i], INT32_MAX, &pid) && is_gvisor(root, (int32_t)pid);
	proc_names_free(name, n);
	return found;
}

struct vm *vms_find(const char *root, size_t *n, size_t *hidden)
{
	struct vm *vm = NULL;
	size_t cap = 0, processes;
	char **name = proc_names(root, "", &processes, "/proc");
	*n = *hidden = 0;
	for (size_t i = 0; i < processes; i++) {
		uint64_t pid;
		struct descriptors d;
		if (!proc_parse_number(name[i], INT32_MAX, &pid))
			continue;
		if (!read_descriptors(root, (int32_t)pid, &d))
			*hidden += !proc_exists(root, "/proc/%d/fd/.", (int)pid) && proc_exists(root, "/proc/%d", (int)pid);
		if (d.is_virtualbox)
			add_named_vcpus(root, (int32_t)pid, &d);
		if ((d.vms > 0 || d.is_virtualbox) && d.vcpus > 0 && !is_gvisor(root, (int32_t)pid)) {
			struct vm *v = ARRAY_PUSH(vm, *n, cap);
			*v = (struct vm){ .pid = (int32_t)pid };
			add_vcpus(root, v, &d);
			vm_describe(root, v);
		}
		descriptors_release(&d);
	}
	proc_names_free(name, processes);
	vms_make_unique(vm, *n);
	return vm;
}

void vms_free(struct vm *vm, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(vm[i].name);
		free(vm[i].dir);
		free(vm[i].uuid);
		free(vm[i].domain);
		free(vm[i].agent);
		free(vm[i].vmm);
		free(vm[i].debugfs);
		free(vm[i].vcpu);
	}
	free(vm);
}
