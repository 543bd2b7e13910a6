/* Live migration between two processes of one machine, as the machine that runs both shows it.
 *
 * The process that waits for the guest has its vCPUs' threads before the guest comes, and none of them has been in guest
 * mode; it goes on where the other one has stopped for good.  That alone is a sign, no proof: what is made of the two is
 * one more VM that a guest may be, and whether its events lie within both is seen as for any other. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/evidence/vm_candidates.h"

#define STANDSTILL_MAX INT64_C(60000000000)  /* ns */

static int64_t last_exit(const struct host_view *host, const struct vm_view *vm)
{
	int64_t last = INT64_MIN;
	for (size_t i = 0; i < vm->vcpus; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (th->windows > 0 && th->window[th->windows - 1].to > last)
			last = th->window[th->windows - 1].to;
	}
	return last;
}

static int64_t first_entry(const struct host_view *host, const struct vm_view *vm)
{
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < vm->vcpus; i++) {
		const struct vthread *th = &host->thread[vm->vcpu[i].thread];
		if (th->windows > 0 && th->window[0].from < first)
			first = th->window[0].from;
	}
	return first;
}

/* The same CPUs, each by one thread in either; b's were there when a went out of guest mode for the last time. */
static bool same_cpus(const struct host_view *host, const struct vm_view *a, const struct vm_view *b, int64_t last)
{
	if (a->vcpus != b->vcpus)
		return false;
	for (size_t i = 0; i < a->vcpus; i++)
		if (a->vcpu[i].number != i || b->vcpu[i].number != i || host->thread[b->vcpu[i].thread].from >= last)
			return false;
	return true;
}

static bool continues(const struct host_view *host, const struct vm_view *a, const struct vm_view *b)
{
	int64_t last = last_exit(host, a), first = first_entry(host, b);
	bool given = a->given == b->given || !b->given || (a->given && strcmp(a->given, b->given) == 0);
	return given && a->pid != b->pid && last != INT64_MIN && first != INT64_MAX && last < first &&
		first - last <= STANDSTILL_MAX && same_cpus(host, a, b, last);
}

/* Which of its CPUs a thread was it at which time, and that there is a VM of both. */
static void join(struct host_view *host, struct vm_list *l, size_t a, size_t b)
{
	const int64_t last = last_exit(host, &l->vm[a]), first = first_entry(host, &l->vm[b]);
	struct vm_view both = l->vm[a];
	both.vcpu = mem_new(2 * both.vcpus, sizeof *both.vcpu);
	both.vcpus *= 2;
	both.moved = (struct vm_move){ { a, b }, { last, first } };
	for (size_t i = 0; i < l->vm[a].vcpus; i++) {
		both.vcpu[2 * i] = l->vm[a].vcpu[i];
		both.vcpu[2 * i + 1] = l->vm[b].vcpu[i];
		host->thread[both.vcpu[2 * i + 1].thread].from = last + 1;
	}
	*ARRAY_PUSH(l->vm, l->len, l->cap) = both;
}

void vm_list_moves(struct host_view *host, struct vm_list *l)
{
	for (size_t a = 0, n = l->len; a < n; a++) {
		size_t next = n;
		for (size_t b = 0; b < n; b++)
			if (continues(host, &l->vm[a], &l->vm[b]) &&
			    (next == n || first_entry(host, &l->vm[b]) < first_entry(host, &l->vm[next])))
				next = b;
		if (next < n)
			join(host, l, a, next);
	}
}
