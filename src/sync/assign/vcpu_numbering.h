/* Which thread of a VM is which CPU of the guest: what pairs and containment prove (private to sync/). */
#ifndef STEALSCOPE_SYNC_ASSIGN_VCPU_NUMBERING_H
#define STEALSCOPE_SYNC_ASSIGN_VCPU_NUMBERING_H

#include "sync/assign/guest_vm_match.h"

/* Numbers the vCPUs by which guest CPU sent the keys that each thread served; a thread without keys keeps what it
 * has unless another one proved to be that vCPU. */
void number_by_pairs(struct vm_view *vm, const struct pair_list *pairs);

/* Every CPU's events lie in its own thread's guest mode: that settles which is which. */
void number_by_containment(struct match *m);

#endif
