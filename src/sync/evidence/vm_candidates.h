/* a machine's VMs, grouped from its vCPU threads, and the numbers of their vCPUs (private to sync/). */
#pragma once

#include "sync/evidence/host_timeline.h"

struct candidate_vcpu {
	size_t thread;           /* index in host_timeline.thread[] */
	unsigned number;
	enum vcpu_evidence evidence;
};

/* Possible live migration: indices of the two VMs in the list, and the time of the last VM exit of the first VM and the
 * first VM entry of the second VM, host ns. */
struct vm_migration {
	size_t part[2];
	int64_t ns[2];  /* both 0: the VM is not a migration's result */
};

struct vm_candidate {
	int32_t pid;                  /* process id; -1: unknown */
	const char *comm;             /* name of its main thread; "": unknown; borrowed from the trace */
	struct candidate_vcpu *vcpu;  /* sorted by number, then by time */
	size_t vcpus;
	const char *guest_name;       /* name of the guest if the user or the tracer named its threads, borrowed; NULL:
	                               * unknown */
	const char *domain;           /* name of the VM in the hypervisor's own records, borrowed; NULL: a VM of host threads */
	struct vm_migration migration;
	struct sync_event_owners owners;
	bool grouped_by_tid;            /* the host's trace has no process ids, so threads are grouped by name and TID */
};

struct vm_list {
	struct vm_candidate *vm;      /* sorted by pid, followed by possible migrations */
	size_t len, cap;
};

void vm_list_make(struct host_timeline *host, struct vm_list *out);
void vm_list_release(struct vm_list *l);
void vm_sort(struct vm_candidate *vm);  /* Sorts the vCPUs after their numbers changed. */

/* Applies vCPU numbers and guest names recorded by the tracer, then those specified by the user, which replace the
 * tracer's. */
void vm_list_apply_hints(const struct host_timeline *host, struct vm_list *l, const struct sync_hint *hint, size_t hints);

/* Adds a VM for each possible live migration between two VMs of the list. */
void vm_list_add_migrated(struct host_timeline *host, struct vm_list *l);
/* Sets the owner of each sync event and sorts the events. The list must not change afterwards. */
void vm_list_assign_sync_events(struct host_timeline *host, struct vm_list *l);
static inline bool vm_is_migrated(const struct vm_candidate *vm) { return vm->migration.ns[1] != 0; }

/* Returns an array with one bool per thread of the host; true: a vCPU of the VM. The caller frees it. */
bool *vm_threads(const struct host_timeline *host, const struct vm_candidate *vm);

/* Returns the thread that ran this guest CPU at host time t; NULL: none. */
const struct vthread *vm_thread_at(const struct host_timeline *host, const struct vm_candidate *vm, unsigned cpu,
                                   int64_t t);
