/* The synchronization beacon: a program in a guest that causes sync events, without a kernel module (paper, section
 * "Implementation in virtualized systems").
 *
 * A pulse consists of:
 * - event a: text in the guest's kernel trace
 * - hypercall with the same key: the host traces it as event b before it checks privileges; the next VM entry is c
 * - event d: text in the guest's kernel trace, key + 1 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define BEACON_HYPERCALL 0x56534e43U  /* hypercall number; unknown to KVM, which rejects it without side effects */

typedef void (*beacon_hypercall)(uint32_t nr, uint64_t a0, uint64_t a1);

struct beacon_options {
	double rate;          /* pulses per second */
	int64_t duration;     /* ns; 0: until interrupted */
	const char *output;      /* file for the texts; NULL: the LTTng logger, or trace_marker if there is none */
	uint32_t uid;         /* this guest's key; 0: random */
	bool keep_idle;          /* send pulses even if the guest is idle */
	beacon_hypercall hypercall;  /* hypercall instruction; NULL: chosen by CPU vendor; tests replace it */
};

struct beacon_counts {
	uint64_t pulses;   /* recorded */
	uint64_t skipped;  /* skipped because the guest was idle */
	uint64_t not_traced;     /* pulses sent while tracing was off */
	uint32_t uid;
};

/* Sends pulses until the duration has passed or *stop is not 0. Fails outside a virtual machine, and if no pulse was
 * ever recorded: the recording may begin later than the beacon. */
int beacon_run(const struct beacon_options *o, const volatile int *stop, struct beacon_counts *counts,
               struct error *err);

/* Costs: medians over `rounds`, as in the paper's Table 1. */
struct beacon_cost {
	int64_t write_ns;      /* ns: one text in the kernel trace */
	int64_t hypercall_ns;  /* ns: one hypercall round trip */
	int64_t pulse_ns;      /* ns: a whole pulse: two texts and a hypercall */
};
int beacon_measure(const struct beacon_options *o, unsigned rounds, struct beacon_cost *cost, struct error *err);
