#include "sync/evidence/vm_candidates.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_place(const void *pa, const void *pb)
{
	const struct view_vcpu *a = pa, *b = pb;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

void vm_sort(struct vm_view *vm)
{
	qsort(vm->vcpu, vm->vcpus, sizeof *vm->vcpu, by_place);
}

static int by_pid(const void *pa, const void *pb)
{
	const struct vm_view *a = pa, *b = pb;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static bool overlaps(const struct vthread *a, const struct vthread *b)
{
	return a->from <= b->to && b->from <= a->to;
}

/* The same, or where events were lost, perhaps. */
static bool may_overlap(const struct vthread *a, const struct vthread *b)
{
	return a->earliest <= b->to && b->earliest <= a->to;
}

/* Where events were lost, the end of a life may be among them: who is not seen any more when another thread has taken
 * its place has ended. */
static bool ended_unseen(const struct host_view *host, struct vthread *old, const struct vthread *next)
{
	if (!host->lossy || old->to != INT64_MAX || old->last >= next->from || old->from >= next->from)
		return false;
	old->to = old->last;
	return true;
}

/* Two threads that lived at the same moment with one number. */
static bool clashes(struct host_view *host, const struct vm_view *vm, const unsigned *number)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		for (size_t k = 0; k < i; k++) {
			struct vthread *a = &host->thread[vm->vcpu[i].thread], *b = &host->thread[vm->vcpu[k].thread];
			if (number[i] == number[k] && overlaps(a, b) && !ended_unseen(host, a, b) && !ended_unseen(host, b, a))
				return true;
		}
	return false;
}

/* Numbers from the threads' names, else from kvm's vcpu_id where it is plausible, else in the order of TIDs. */
static void number_vcpus(struct host_view *host, struct vm_view *vm)
{
	unsigned *number = mem_new(vm->vcpus, sizeof *number);
	enum vcpu_evidence evidence = VCPU_BY_NAME;
	bool ok = true;
	for (size_t i = 0; i < vm->vcpus; i++) {
		int n = vcpu_number_in_name(trace_string(host->trace, host->thread[vm->vcpu[i].thread].comm));
		ok = ok && n >= 0;
		number[i] = (unsigned)(n < 0 ? 0 : n);
	}
	if (!ok || clashes(host, vm, number)) {
		evidence = VCPU_BY_HINT;
		ok = true;
		for (size_t i = 0; i < vm->vcpus; i++) {
			int64_t hint = host->thread[vm->vcpu[i].thread].hint;
			ok = ok && hint >= 0 && hint < (int64_t)vm->vcpus;
			number[i] = (unsigned)(hint < 0 ? 0 : hint);
		}
	}
	if (!ok || clashes(host, vm, number)) {
		/* QEMU starts the vCPUs' threads in order; a thread that came after another one's end takes its place. */
		evidence = VCPU_BY_ORDER;
		for (size_t i = 0; i < vm->vcpus; i++) {
			const struct vthread *th = &host->thread[vm->vcpu[i].thread];
			number[i] = 0;
			for (size_t k = 0; k < vm->vcpus; k++) {
				const struct vthread *o = &host->thread[vm->vcpu[k].thread];
				number[i] += o->tid < th->tid && overlaps(o, th);
			}
		}
	}
	for (size_t i = 0; i < vm->vcpus; i++) {
		vm->vcpu[i].number = number[i];
		vm->vcpu[i].evidence = evidence;
	}
	free(number);
	vm_sort(vm);
}

/* Without process ids: the threads come in the order of TIDs, and "CPU 0/KVM" begins the next VM. */
static bool begins_vm(const struct host_view *host, const struct vthread *th)
{
	return vcpu_number_in_name(trace_string(host->trace, th->comm)) == 0;
}

static struct vm_view *vm_of(const struct host_view *host, struct vm_list *l, const struct vthread *th)
{
	for (size_t i = l->len; i-- > 0;) {
		struct vm_view *vm = &l->vm[i];
		if (vm->pid != th->pid)
			continue;
		if (th->pid < 0 && begins_vm(host, th))
			break;
		/* One process id may be used again: another life of it has other threads, at another time. */
		for (size_t k = 0; k < vm->vcpus; k++)
			if (th->pid < 0 || may_overlap(&host->thread[vm->vcpu[k].thread], th))
				return vm;
	}
	struct vm_view *vm = ARRAY_PUSH(l->vm, l->len, l->cap);
	*vm = (struct vm_view){ .pid = th->pid, .comm = "", .guessed = th->pid < 0 };
	uint64_t *comm = th->pid < 0 ? NULL : map_find(&host->comm, (uint64_t)(uint32_t)th->pid);
	if (comm)
		vm->comm = trace_string(host->trace, (int64_t)*comm);
	else if (th->pid >= 0)  /* it has slept all along */
		vm->comm = trace_saved_name(host->trace, th->pid);
	return vm;
}

/* The order in which threads are put into VMs: those of one process by time, those of unknown ones by TID. */
static int by_life(const void *pa, const void *pb)
{
	const struct vthread *a = *(const struct vthread *const *)pa, *b = *(const struct vthread *const *)pb;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->pid >= 0 && a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* A life of a TID that the user calls a vCPU, where another life of it is one. */
static bool is_other_life(const struct host_view *host, const struct vthread *th)
{
	if (th->seen || vcpu_number_in_name(trace_string(host->trace, th->comm)) >= 0)
		return false;
	for (size_t i = 0; i < host->threads; i++)
		if (host->thread[i].tid == th->tid && host->thread[i].seen)
			return true;
	return false;
}

void vm_list_make(struct host_view *host, struct vm_list *out)
{
	memset(out, 0, sizeof *out);
	const struct vthread **order = mem_new(host->threads, sizeof *order);
	size_t n = 0;
	for (size_t i = 0; i < host->threads; i++)
		if (!is_other_life(host, &host->thread[i]))
			order[n++] = &host->thread[i];
	if (n > 0)
		qsort(order, n, sizeof *order, by_life);
	for (size_t i = 0; i < n; i++) {
		struct vm_view *vm = vm_of(host, out, order[i]);
		vm->vcpu = mem_resize(vm->vcpu, vm->vcpus + 1, sizeof *vm->vcpu);
		vm->vcpu[vm->vcpus++] = (struct view_vcpu){ (size_t)(order[i] - host->thread), 0, VCPU_BY_ORDER };
	}
	free(order);
	for (size_t i = 0; i < out->len; i++)
		number_vcpus(host, &out->vm[i]);
	if (out->len > 0)
		qsort(out->vm, out->len, sizeof *out->vm, by_pid);
}

static void hint_vcpu(const struct host_view *host, struct vm_list *l, const struct trace_vcpu *known,
                      enum vcpu_evidence evidence)
{
	for (size_t i = 0; i < l->len; i++) {
		struct vm_view *vm = &l->vm[i];
		for (size_t k = 0; k < vm->vcpus; k++)
			if (host->thread[vm->vcpu[k].thread].tid == known->host_tid) {
				vm->vcpu[k].number = known->number;
				vm->vcpu[k].evidence = evidence;
				vm->given = known->guest;
			}
	}
}

/* VMs of one name are one, where the trace does not tell that they are two processes. */
static void join_given(struct vm_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		struct vm_view *vm = &l->vm[i], *other = NULL;
		for (size_t k = 0; k < n && !other && vm->given; k++)
			if (l->vm[k].given && strcmp(l->vm[k].given, vm->given) == 0 && (l->vm[k].pid < 0 || vm->pid < 0))
				other = &l->vm[k];
		if (!other) {
			l->vm[n++] = *vm;
			continue;
		}
		other->vcpu = mem_resize(other->vcpu, other->vcpus + vm->vcpus, sizeof *other->vcpu);
		memcpy(other->vcpu + other->vcpus, vm->vcpu, vm->vcpus * sizeof *vm->vcpu);
		other->vcpus += vm->vcpus;
		if (other->pid < 0) {
			other->pid = vm->pid;
			other->comm = vm->comm;
		}
		free(vm->vcpu);
	}
	l->len = n;
}

static bool user_names(const struct sync_hint *hint, size_t hints, const char *guest)
{
	for (size_t h = 0; h < hints; h++)
		if (hint[h].vcpus > 0 && strcmp(hint[h].guest, guest) == 0)
			return true;
	return false;
}

void vm_list_hint(const struct host_view *host, struct vm_list *l, const struct sync_hint *hint, size_t hints)
{
	const struct trace_info *info = trace_info(host->trace);
	for (size_t i = 0; i < info->vcpus; i++)
		if (!user_names(hint, hints, info->vcpu[i].guest))
			hint_vcpu(host, l, &info->vcpu[i], VCPU_BY_TRACER);
	for (size_t h = 0; h < hints; h++)
		for (size_t k = 0; k < hint[h].vcpus; k++) {
			const struct sync_hint_vcpu *v = &hint[h].vcpu[k];
			hint_vcpu(host, l, &(struct trace_vcpu){ hint[h].guest, v->number, v->host_tid }, VCPU_BY_SESSION);
		}
	join_given(l);
	for (size_t i = 0; i < l->len; i++)
		vm_sort(&l->vm[i]);
}

void vm_list_own(struct host_view *host, struct vm_list *l)
{
	const uint16_t nobodys = UINT16_MAX;  /* of a thread that is no VM's */
	uint16_t *owner = mem_new(host->threads, sizeof *owner);
	for (size_t i = 0; i < host->threads; i++)
		owner[i] = nobodys;
	for (size_t v = 0; v < l->len; v++) {
		struct vm_view *vm = &l->vm[v];
		const size_t first = vm_has_moved(vm) ? vm->moved.of[0] : v, second = vm_has_moved(vm) ? vm->moved.of[1] + 1 : 0;
		vm->owners = (struct mark_owners){ { (uint16_t)(first + 1), (uint16_t)second } };
		for (size_t i = 0; i < vm->vcpus && !vm_has_moved(vm); i++)
			owner[vm->vcpu[i].thread] = vm->owners.of[0];
	}
	for (size_t i = 0; i < host->marks.len; i++) {
		struct sync_mark *m = &host->marks.mark[i];
		const bool net = m->end == SYNC_NET_SEND || m->end == SYNC_NET_RECEIVE;
		m->owner = net || m->where < 0 ? 0 : owner[m->where];
	}
	free(owner);
	mark_list_sort(&host->marks);
}

void vm_list_release(struct vm_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->vm[i].vcpu);
	free(l->vm);
	memset(l, 0, sizeof *l);
}

bool *vm_threads(const struct host_view *host, const struct vm_view *vm)
{
	bool *mine = mem_new(host->threads, sizeof *mine);
	for (size_t i = 0; i < vm->vcpus; i++)
		mine[vm->vcpu[i].thread] = true;
	return mine;
}

const struct vthread *vm_thread_at(const struct host_view *host, const struct vm_view *vm, unsigned cpu, int64_t t)
{
	const struct vthread *best = NULL;
	for (size_t i = 0; i < vm->vcpus && vm->vcpu[i].number <= cpu; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (vm->vcpu[i].number == cpu && (!best || th->from <= t))
			best = th;
	}
	return best;
}
