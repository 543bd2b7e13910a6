/* What ends a flight: conditions that are looked at ten times a second, in /proc alone, without any tracing (private to
 * record/).
 *
 *	gap(WHO)>D             a vCPU waited for a CPU for more than D since the last look
 *	steal(WHO)>P% [for D]  so much of the last D (1 s) was taken from the vCPUs, on the average
 *	load>N                 the host's load over the last minute
 *	exit(COMMAND)          COMMAND, which a shell began with the flight, has ended
 *	signal                 SIGUSR1; it always counts
 *
 * WHO is a VM, VM/CPUn, or any.  A thread's wait for a CPU is the kernel's own sum (schedstat), exact to the ns; it is
 * added when the wait is over; one that lasts for more than 1.5 s counts meanwhile. */
#ifndef STEALSCOPE_RECORD_TRIGGER_H
#define STEALSCOPE_RECORD_TRIGGER_H

#include "record/vm_discovery.h"

#define TRIGGER_LOOK 100000000  /* ns between two looks */

struct triggers;

/* Refuses what means nothing, and VMs that are not there.  root, text and vm are borrowed. */
struct triggers *triggers_new(const char *root, const char *const *text, size_t n, const struct vm *vm, size_t vms,
                              struct error *err);
void triggers_free(struct triggers *t);  /* NULL is allowed */

/* From now on: what was before does not count. */
void triggers_arm(struct triggers *t, int64_t now);
/* At `now` (ns, monotonic): the text of the one that fires, or NULL. */
const char *triggers_look(struct triggers *t, int64_t now);

#endif
