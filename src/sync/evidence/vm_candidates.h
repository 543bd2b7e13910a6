/* VMs as the host shows them, and their vCPUs' numbers (private to sync/). */
#ifndef STEALSCOPE_SYNC_EVIDENCE_VM_CANDIDATES_H
#define STEALSCOPE_SYNC_EVIDENCE_VM_CANDIDATES_H

#include "sync/evidence/host_timeline.h"

struct view_vcpu {
	size_t thread;           /* index of the instance in the host's view */
	unsigned number;
	enum vcpu_evidence evidence;
};

/* A VM that two others may make, one after the other: their indices in the list; ns of the last exit from the first, and
 * of the first entry into the second. */
struct vm_move {
	size_t of[2];
	int64_t at[2];  /* both 0: it is no such VM */
};

struct vm_view {
	int32_t pid;             /* of the process, -1 = not known */
	const char *comm;        /* its main thread's name, "" = not known; borrowed from the trace */
	struct view_vcpu *vcpu;    /* by number, then by time */
	size_t vcpus;
	const char *given;       /* the guest's name, when the user named its threads; borrowed, or NULL */
	struct vm_move moved;
	struct mark_owners owners;
	bool guessed;            /* the host's trace has no process ids: grouped by names and TIDs */
};

struct vm_list {
	struct vm_view *vm;      /* by pid; then those that others may make */
	size_t len, cap;
};

void vm_list_make(struct host_view *host, struct vm_list *out);
void vm_list_release(struct vm_list *l);
void vm_sort(struct vm_view *vm);  /* its vCPUs, after numbers have changed */

/* Numbers and names the VMs as the tracer wrote down, then as the user says; of a guest whose vCPUs the user names, what
 * the tracer says does not count. */
void vm_list_hint(const struct host_view *host, struct vm_list *l, const struct sync_hint *hint, size_t hints);

/* Adds what may have moved from one process to another while it ran. */
void vm_list_moves(struct host_view *host, struct vm_list *l);
/* Says of every end of a pair whose it is.  No VM is added after that. */
void vm_list_own(struct host_view *host, struct vm_list *l);
static inline bool vm_has_moved(const struct vm_view *vm) { return vm->moved.at[1] != 0; }

/* Which instances belong to the VM: malloc'ed, one bool per instance. */
bool *vm_threads(const struct host_view *host, const struct vm_view *vm);

/* The instance that was this guest CPU at host time t, or NULL. */
const struct vthread *vm_thread_at(const struct host_view *host, const struct vm_view *vm, unsigned cpu, int64_t t);

#endif
