/* The synchronization beacon: runs inside a guest, without any kernel module (paper, section
 * "Implementation in virtualized systems").
 *
 * One pulse = event a (text in the guest's kernel trace), hypercall with the same key (the host traces it as event b
 * before it looks at privileges; the VM entry that follows is c), event d (text again, key + 1). */
#ifndef STEALSCOPE_BEACON_BEACON_H
#define STEALSCOPE_BEACON_BEACON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define BEACON_HYPERCALL 0x56534e43U  /* number of the hypercall; KVM does not know it and refuses it, harmlessly */

typedef void (*beacon_hypercall)(uint32_t nr, uint64_t a0, uint64_t a1);

struct beacon_options {
	double rate;          /* pulses per second */
	int64_t duration;     /* ns, 0 = until interrupted */
	const char *output;   /* file that puts text into the kernel trace; NULL = the LTTng logger, else trace_marker */
	uint32_t uid;         /* of this guest, 0 = drawn at random */
	bool keep_idle;       /* pulse although the guest is idle */
	beacon_hypercall hypercall;  /* NULL = the processor's instruction; tests put their own here */
};

struct beacon_counts {
	uint64_t pulses;   /* recorded */
	uint64_t skipped;  /* because the guest was idle */
	uint64_t unheard;  /* sent while tracing was off */
	uint32_t uid;
};

/* Runs until the duration is over, or *stop becomes other than 0.  Refuses outside a virtual machine, and fails when
 * nothing was recorded at any time: a recording may begin later than the beacon, but it must begin. */
int beacon_run(const struct beacon_options *o, const volatile int *stop, struct beacon_counts *counts,
               struct error *err);

/* Medians over `rounds` measured like the paper's Table 1. */
struct beacon_cost {
	int64_t write_ns;      /* one text in the kernel trace */
	int64_t hypercall_ns;  /* one hypercall round trip */
	int64_t pulse_ns;      /* a whole pulse: two texts and a hypercall */
};
int beacon_measure(const struct beacon_options *o, unsigned rounds, struct beacon_cost *cost, struct error *err);

#endif
