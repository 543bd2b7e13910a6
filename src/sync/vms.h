/* VMs as the host shows them, and their vCPUs' numbers (private to sync/). */
#ifndef STEALSCOPE_SYNC_VMS_H
#define STEALSCOPE_SYNC_VMS_H

#include "sync/host.h"
#include "sync/pairs.h"

struct vm_vcpu {
	size_t thread;           /* index of the instance in the host's view */
	unsigned number;
	enum vcpu_evidence evidence;
};

struct vm_view {
	int32_t pid;             /* of the process, -1 = not known */
	const char *comm;        /* its main thread's name, "" = not known; borrowed from the trace */
	struct vm_vcpu *vcpu;    /* by number, then by time */
	size_t vcpus;
	const char *given;       /* the guest's name, when the user named its threads; borrowed, or NULL */
	bool guessed;            /* the host's trace has no process ids: grouped by names and TIDs */
};

struct vm_list {
	struct vm_view *vm;      /* by pid */
	size_t len, cap;
};

void vm_list_make(struct host_view *host, struct vm_list *out);
void vm_list_release(struct vm_list *l);

/* Numbers and names the VMs as the tracer wrote down, then as the user says; of a guest whose vCPUs the user names, what
 * the tracer says does not count. */
void vm_list_hint(const struct host_view *host, struct vm_list *l, const struct sync_hint *hint, size_t hints);

/* Which instances belong to the VM: malloc'ed, one bool per instance. */
bool *vm_threads(const struct host_view *host, const struct vm_view *vm);

/* Numbers the vCPUs by which guest CPU sent the keys that each thread served; a thread without keys keeps what it
 * has unless another one proved to be that vCPU. */
void vm_number_by_pairs(struct vm_view *vm, const struct pair_list *pairs);

/* The instance that was this guest CPU at host time t, or NULL. */
const struct vthread *vm_thread_at(const struct host_view *host, const struct vm_view *vm, unsigned cpu, int64_t t);

#endif
