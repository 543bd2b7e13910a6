/* Detects live migration between two processes of one machine.
 *
 * The destination process has its vCPU threads before the guest arrives, none of them in guest mode before that; they
 * start to run after the source process stopped for good. This is a hint, not a proof: the two processes together are
 * added as another VM candidate, and that candidate is tested like any other, by whether the guest's events lie within
 * both. */
#include "base/base.h"
#include "sync/evidence/vm_candidates.h"

#define STANDSTILL_MAX INT64_C(60000000000)  /* a migration's longest downtime, ns */

static int64_t last_exit(const struct host_timeline *host, const struct vm_candidate *vm)
{
	int64_t last = INT64_MIN;
	for (size_t i = 0; i < vm->vcpus; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (th->windows > 0 && th->window[th->windows - 1].to > last)
			last = th->window[th->windows - 1].to;
	}
	return last;
}

static int64_t first_entry(const struct host_timeline *host, const struct vm_candidate *vm)
{
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < vm->vcpus; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (th->windows > 0 && th->window[0].from < first)
			first = th->window[0].from;
	}
	return first;
}

/* Returns true if both VMs have the same CPUs, one thread each, and b's threads existed before a's last VM exit. */
static bool has_same_cpus(const struct host_timeline *host, const struct vm_candidate *a, const struct vm_candidate *b,
                          int64_t last)
{
	if (a->vcpus != b->vcpus)
		return false;
	for (size_t i = 0; i < a->vcpus; i++)
		if (a->vcpu[i].number != i || b->vcpu[i].number != i || host->thread[b->vcpu[i].thread].from >= last)
			return false;
	return true;
}

static bool is_continued_by(const struct host_timeline *host, const struct vm_candidate *a, const struct vm_candidate *b)
{
	int64_t last = last_exit(host, a), first = first_entry(host, b);
	bool given = a->guest_name == b->guest_name || !b->guest_name ||
		(a->guest_name && strcmp(a->guest_name, b->guest_name) == 0);
	return given && !a->domain && a->pid != b->pid && last != INT64_MIN && first != INT64_MAX && last < first &&
		first - last <= STANDSTILL_MAX && has_same_cpus(host, a, b, last);
}

/* Adds a VM that combines both processes. After a's last VM exit, b's threads run its vCPUs. */
static void add_migrated_vm(struct host_timeline *host, struct vm_list *l, size_t a, size_t b)
{
	const int64_t last = last_exit(host, &l->vm[a]), first = first_entry(host, &l->vm[b]);
	struct vm_candidate both = l->vm[a];
	both.vcpu = mem_new(2 * both.vcpus, sizeof *both.vcpu);
	both.vcpus *= 2;
	both.migration = (struct vm_migration){ { a, b }, { last, first } };
	for (size_t i = 0; i < l->vm[a].vcpus; i++) {
		both.vcpu[2 * i] = l->vm[a].vcpu[i];
		both.vcpu[2 * i + 1] = l->vm[b].vcpu[i];
		host->thread[both.vcpu[2 * i + 1].thread].from = last + 1;
	}
	*ARRAY_PUSH(l->vm, l->len, l->cap) = both;
}

void vm_list_add_migrated(struct host_timeline *host, struct vm_list *l)
{
	for (size_t a = 0, n = l->len; a < n; a++) {
		size_t next = n;
		for (size_t b = 0; b < n; b++)
			if (is_continued_by(host, &l->vm[a], &l->vm[b]) &&
			    (next == n || first_entry(host, &l->vm[b]) < first_entry(host, &l->vm[next])))
				next = b;
		if (next < n)
			add_migrated_vm(host, l, a, next);
	}
}
