#include "sync/assign/vcpu_numbering.h"

#include "base/base.h"

void number_by_pairs(struct vm_candidate *vm, const struct pair_list *pairs)
{
	enum { CPUS = 512 };
	if (vm->vcpus > 0 && vm->vcpu[0].evidence == VCPU_BY_HYPERVISOR)
		return;  /* the numbers are certain */
	unsigned *votes = mem_new(vm->vcpus * CPUS, sizeof *votes);
	for (size_t i = 0; i < pairs->len; i++) {
		const struct pair *p = &pairs->pair[i];
		for (size_t k = 0; k < vm->vcpus && p->cpu >= 0 && p->cpu < CPUS && !p->rejected; k++)
			votes[k * CPUS + (size_t)p->cpu] += vm->vcpu[k].thread == (size_t)p->thread;
	}
	for (size_t k = 0; k < vm->vcpus; k++) {
		unsigned best = 0, all = 0;
		for (unsigned c = 0; c < CPUS; c++) {
			all += votes[k * CPUS + c];
			if (votes[k * CPUS + c] > votes[k * CPUS + best])
				best = c;
		}
		if (vm->vcpu[k].evidence == VCPU_BY_SESSION || all == 0 || votes[k * CPUS + best] * 4 < all * 3)
			continue;
		for (size_t o = 0; o < vm->vcpus; o++)  /* threads with weaker evidence for this number swap */
			if (vm->vcpu[o].number == best && vm->vcpu[o].evidence != VCPU_BY_SYNC &&
			    vm->vcpu[o].evidence != VCPU_BY_SESSION)
				vm->vcpu[o].number = vm->vcpu[k].number;
		vm->vcpu[k].number = best;
		vm->vcpu[k].evidence = VCPU_BY_SYNC;
	}
	free(votes);
	vm_sort(vm);
}

void number_by_containment(struct match *m)
{
	for (size_t i = 0; i < m->view.vcpus && m->inside_share >= LINE_SHARE_MIN && !m->candidate.reason; i++)
		if (m->view.vcpu[i].evidence == VCPU_BY_ORDER || m->view.vcpu[i].evidence == VCPU_BY_KVM_VCPU_ID)
			m->view.vcpu[i].evidence = VCPU_BY_CONTAINMENT;
}
