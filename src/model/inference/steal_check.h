/* Check of the host's trace by a guest's steal clock: between two reads, the clock of a vCPU rises by the time for
 * which the vCPU's thread waited for a CPU of the host (its run delay).
 *
 * Cost: O(1) per change of the host's state of a vCPU and per read. */
#pragma once

#include "base/base.h"
#include "base/notes.h"

struct model;
struct machine;

/* Initialize with { 0 }. */
struct steal_check {
	uint8_t host_state;            /* enum vcpu_host_state since `since` */
	int64_t since;                 /* host ns */
	int64_t delay, unknown;        /* run delay, and time in unknown states, up to `since`, ns */
	bool has_reads;
	int64_t first, last;           /* values of the first and last read, ns */
	int64_t delay_first, delay_last, unknown_first, unknown_last;  /* sums at these reads, ns */
};

void steal_check_set_host_state(struct steal_check *c, uint8_t host_state, int64_t now);
/* value: the steal clock of the vCPU at `now`, ns. */
void steal_check_read(struct steal_check *c, int64_t value, int64_t now);
/* Adds a warning for each vCPU if its clock and the host's trace differ, and a note on the sum of the others. */
void steal_check_add_notes(const struct model *m, const struct machine *mc, struct notes *notes);
