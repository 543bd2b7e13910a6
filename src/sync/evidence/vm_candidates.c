#include "sync/evidence/vm_candidates.h"

#include "base/base.h"
#include "base/vcpu_name.h"

ORDER_BY(compare_vcpus, struct candidate_vcpu, RISING(number) RISING(thread))

void vm_sort(struct vm_candidate *vm)
{
	qsort(vm->vcpu, vm->vcpus, sizeof *vm->vcpu, compare_vcpus);
}

ORDER_BY(compare_pids, struct vm_candidate, RISING(pid))

static bool lifetimes_overlap(const struct vthread *a, const struct vthread *b)
{
	return a->from <= b->to && b->from <= a->to;
}

/* Like lifetimes_overlap(), but with the earliest possible starts after a loss. */
static bool lifetimes_may_overlap(const struct vthread *a, const struct vthread *b)
{
	return a->earliest_start <= b->to && b->earliest_start <= a->to;
}

/* Ends the lifetime of `old` if its exit may have been lost and it has no event after `next` started. Returns true if
 * the lifetime was ended. */
static bool end_if_exit_lost(const struct host_timeline *host, struct vthread *old, const struct vthread *next)
{
	if (!host->has_loss || old->to != INT64_MAX || old->last_seen >= next->from || old->from >= next->from)
		return false;
	old->to = old->last_seen;
	return true;
}

/* Returns true if two threads have the same number and existed at the same time. */
static bool has_number_conflict(struct host_timeline *host, const struct vm_candidate *vm, const unsigned *number)
{
	for (size_t i = 0; i < vm->vcpus; i++)
		for (size_t k = 0; k < i; k++) {
			struct vthread *a = &host->thread[vm->vcpu[i].thread], *b = &host->thread[vm->vcpu[k].thread];
			if (number[i] == number[k] && lifetimes_overlap(a, b) && !end_if_exit_lost(host, a, b) &&
			    !end_if_exit_lost(host, b, a))
				return true;
		}
	return false;
}

/* Numbers vCPUs by the first evidence without conflicts: the threads' names, KVM's vcpu_id, the order of TIDs. */
static void number_vcpus(struct host_timeline *host, struct vm_candidate *vm)
{
	unsigned *number = mem_new(vm->vcpus, sizeof *number);
	enum vcpu_evidence evidence = VCPU_BY_NAME;
	bool ok = true;
	const bool is_reported = vm->vcpus > 0 && host->thread[vm->vcpu[0].thread].is_reported;
	for (size_t i = 0; i < vm->vcpus && !is_reported; i++) {
		int n = vcpu_name_number(trace_string(host->trace, host->thread[vm->vcpu[i].thread].comm));
		ok = ok && n >= 0;
		number[i] = (unsigned)(n < 0 ? 0 : n);
	}
	for (size_t i = 0; i < vm->vcpus && is_reported; i++)
		number[i] = (unsigned)host->thread[vm->vcpu[i].thread].vcpu_id;
	evidence = is_reported ? VCPU_BY_HYPERVISOR : evidence;
	if (!is_reported && (!ok || has_number_conflict(host, vm, number))) {
		evidence = VCPU_BY_KVM_VCPU_ID;
		ok = true;
		for (size_t i = 0; i < vm->vcpus; i++) {
			int64_t vcpu_id = host->thread[vm->vcpu[i].thread].vcpu_id;
			ok = ok && vcpu_id >= 0 && vcpu_id < (int64_t)vm->vcpus;
			number[i] = (unsigned)(vcpu_id < 0 ? 0 : vcpu_id);
		}
	}
	if (!is_reported && (!ok || has_number_conflict(host, vm, number))) {
		/* QEMU starts vCPU threads in their number's order; a thread started after the end of another takes over its
		 * number. */
		evidence = VCPU_BY_ORDER;
		for (size_t i = 0; i < vm->vcpus; i++) {
			const struct vthread *th = &host->thread[vm->vcpu[i].thread];
			number[i] = 0;
			for (size_t k = 0; k < vm->vcpus; k++) {
				const struct vthread *o = &host->thread[vm->vcpu[k].thread];
				number[i] += o->tid < th->tid && lifetimes_overlap(o, th);
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

/* Returns true for a thread "CPU 0/KVM", which is its VM's first when threads are sorted by TID. Used without
 * process ids. */
static bool starts_new_vm(const struct host_timeline *host, const struct vthread *th)
{
	return vcpu_name_number(trace_string(host->trace, th->comm)) == 0;
}

static struct vm_candidate *find_or_add_vm(const struct host_timeline *host, struct vm_list *l, const struct vthread *th)
{
	for (size_t i = l->len; i-- > 0;) {
		struct vm_candidate *vm = &l->vm[i];
		if (vm->pid != th->pid)
			continue;
		if (th->pid < 0 && starts_new_vm(host, th))
			break;
		/* a reused process id has threads at other times */
		for (size_t k = 0; k < vm->vcpus; k++)
			if (th->pid < 0 || lifetimes_may_overlap(&host->thread[vm->vcpu[k].thread], th))
				return vm;
	}
	struct vm_candidate *vm = ARRAY_PUSH(l->vm, l->len, l->cap);
	*vm = (struct vm_candidate){ .pid = th->pid, .comm = "", .grouped_by_tid = th->pid < 0,
		.domain = th->is_reported ? trace_string(host->trace, th->comm) : NULL };
	uint64_t *comm = th->pid < 0 ? NULL : map_find(&host->comm, (uint64_t)(uint32_t)th->pid);
	if (comm)
		vm->comm = trace_string(host->trace, (int64_t)*comm);
	else if (th->pid >= 0)  /* the main thread slept during the whole trace */
		vm->comm = trace_find_saved_name(host->trace, th->pid);
	return vm;
}

/* qsort() order for grouping threads into VMs: by process and time; by TID if the process is unknown. */
static int compare_lifetimes(const void *pa, const void *pb)
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

/* Returns true for a lifetime without kvm events of a TID specified by the user, if another lifetime of the TID has
 * some. */
static bool is_unused_lifetime(const struct host_timeline *host, const struct vthread *th)
{
	if (th->has_guest_mode || vcpu_name_number(trace_string(host->trace, th->comm)) >= 0)
		return false;
	for (size_t i = 0; i < host->threads; i++)
		if (host->thread[i].tid == th->tid && host->thread[i].has_guest_mode)
			return true;
	return false;
}

void vm_list_make(struct host_timeline *host, struct vm_list *out)
{
	memset(out, 0, sizeof *out);
	const struct vthread **order = mem_new(host->threads, sizeof *order);
	size_t n = 0;
	for (size_t i = 0; i < host->threads; i++)
		if (!is_unused_lifetime(host, &host->thread[i]))
			order[n++] = &host->thread[i];
	ARRAY_SORT(order, n, compare_lifetimes);
	for (size_t i = 0; i < n; i++) {
		struct vm_candidate *vm = find_or_add_vm(host, out, order[i]);
		vm->vcpu = mem_resize(vm->vcpu, vm->vcpus + 1, sizeof *vm->vcpu);
		vm->vcpu[vm->vcpus++] = (struct candidate_vcpu){ (size_t)(order[i] - host->thread), 0, VCPU_BY_ORDER };
	}
	free(order);
	for (size_t i = 0; i < out->len; i++)
		number_vcpus(host, &out->vm[i]);
	ARRAY_SORT(out->vm, out->len, compare_pids);
}

static void apply_vcpu_hint(const struct host_timeline *host, struct vm_list *l, const struct trace_vcpu *known,
                            enum vcpu_evidence evidence)
{
	for (size_t i = 0; i < l->len; i++) {
		struct vm_candidate *vm = &l->vm[i];
		for (size_t k = 0; k < vm->vcpus; k++)
			if (host->thread[vm->vcpu[k].thread].tid == known->host_tid) {
				vm->vcpu[k].number = known->number;
				vm->vcpu[k].evidence = evidence;
				vm->guest_name = known->guest;
			}
	}
}

/* Merges VMs with the same guest name unless the trace shows that they are two processes. */
static void merge_same_guest(struct vm_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		struct vm_candidate *vm = &l->vm[i], *other = NULL;
		for (size_t k = 0; k < n && !other && vm->guest_name; k++)
			if (l->vm[k].guest_name && strcmp(l->vm[k].guest_name, vm->guest_name) == 0 &&
			    (l->vm[k].pid < 0 || vm->pid < 0))
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

static bool is_named_by_user(const struct sync_hint *hint, size_t hints, const char *guest)
{
	for (size_t h = 0; h < hints; h++)
		if (hint[h].vcpus > 0 && strcmp(hint[h].guest, guest) == 0)
			return true;
	return false;
}

void vm_list_apply_hints(const struct host_timeline *host, struct vm_list *l, const struct sync_hint *hint, size_t hints)
{
	const struct trace_info *info = trace_info(host->trace);
	for (size_t i = 0; i < info->vcpus; i++)
		if (!is_named_by_user(hint, hints, info->vcpu[i].guest))
			apply_vcpu_hint(host, l, &info->vcpu[i], VCPU_BY_TRACER);
	for (size_t h = 0; h < hints; h++)
		for (size_t k = 0; k < hint[h].vcpus; k++) {
			const struct sync_hint_vcpu *v = &hint[h].vcpu[k];
			apply_vcpu_hint(host, l, &(struct trace_vcpu){ hint[h].guest, v->number, v->host_tid }, VCPU_BY_SESSION);
		}
	merge_same_guest(l);
	for (size_t i = 0; i < l->len; i++)
		vm_sort(&l->vm[i]);
}

void vm_list_assign_sync_events(struct host_timeline *host, struct vm_list *l)
{
	const uint16_t no_owner = UINT16_MAX;  /* marks threads that belong to no VM */
	uint16_t *owner = mem_new(host->threads, sizeof *owner);
	for (size_t i = 0; i < host->threads; i++)
		owner[i] = no_owner;
	for (size_t v = 0; v < l->len; v++) {
		struct vm_candidate *vm = &l->vm[v];
		const size_t first = vm_is_migrated(vm) ? vm->migration.part[0] : v,
			second = vm_is_migrated(vm) ? vm->migration.part[1] + 1 : 0;
		vm->owners = (struct sync_event_owners){ { (uint16_t)(first + 1), (uint16_t)second } };
		for (size_t i = 0; i < vm->vcpus && !vm_is_migrated(vm); i++)
			owner[vm->vcpu[i].thread] = vm->owners.owner[0];
	}
	for (size_t i = 0; i < host->sync_events.len; i++) {
		struct sync_event *m = &host->sync_events.event[i];
		const bool net = m->end == SYNC_NET_SEND || m->end == SYNC_NET_RECEIVE;
		m->owner = net || m->origin < 0 ? 0 : owner[m->origin];
	}
	free(owner);
	sync_event_set_sort(&host->sync_events);
}

void vm_list_release(struct vm_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->vm[i].vcpu);
	free(l->vm);
	memset(l, 0, sizeof *l);
}

bool *vm_threads(const struct host_timeline *host, const struct vm_candidate *vm)
{
	bool *selected = mem_new(host->threads, sizeof *selected);
	for (size_t i = 0; i < vm->vcpus; i++)
		selected[vm->vcpu[i].thread] = true;
	return selected;
}

const struct vthread *vm_thread_at(const struct host_timeline *host, const struct vm_candidate *vm, unsigned cpu, int64_t t)
{
	const struct vthread *best = NULL;
	for (size_t i = 0; i < vm->vcpus && vm->vcpu[i].number <= cpu; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (vm->vcpu[i].number == cpu && (!best || th->from <= t))
			best = th;
	}
	return best;
}
