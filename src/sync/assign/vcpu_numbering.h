/* Numbers the vCPU threads of a VM by the guest CPUs that pairs or containment prove (private to sync/). */
#pragma once

#include "sync/assign/guest_vm_match.h"

/* Assigns to each thread the number of the guest CPU that at least 3/4 of its pairs belong to. A thread without such
 * pairs keeps its number unless another thread is proven to have it. */
void number_by_pairs(struct vm_candidate *vm, const struct pair_list *pairs);

/* Marks the vCPU numbers as proven by containment if the match is: each CPU's events are in the guest mode of its own
 * thread. */
void number_by_containment(struct match *m);
