/* State of the search for lock waits, shared by locks.c and spin_waits.c. Private to query/. */
#pragma once

#include "base/strtab.h"
#include "query/query_internal.h"
#include "query/stepped_query.h"

/* Spinning behaviour of the threads and vCPUs of a machine, learned from the whole history. */
struct spin_pattern {
	bool is_known;
	int32_t *tid;             /* threads that were current at a VM exit by PAUSE */
	size_t tids, cap;
	int64_t *longest;         /* by vCPU of the machine: longest time that it executes between two exits by PAUSE while
	                           * it spins, ns */
};

struct lock_search {
	struct query q;
	struct lock_list list;
	size_t cap;
	struct strtab names;
	struct target target;
	bool all;         /* the query is for all machines */
	uint32_t at;      /* current row: 0 .. catalog->threads - 1: a thread; above: a CPU */
	bool is_open;        /* the cursor is open on the current row */
	struct history_cursor cursor;
	uint64_t asleep, runnable;      /* states of threads that mean BLOCKED, and PREEMPTED: bit n = state number n of the
	                                 * history */
	uint64_t in_vmm, executing; /* states of vCPUs that mean VMM, and RUNNING: bit n = state number n of the history */
	struct spin_pattern *patterns;  /* per machine */
	struct last_spin {           /* index of the latest wait of the current CPU in the list, which may continue */
		bool is, joined;
		int32_t suspect;         /* vCPU on which the suspected holder runs */
	} last;
	struct error *err;
};

extern const struct actor locks_no_actor;

int locks_actor(struct lock_search *c, uint32_t machine, int32_t tid, int64_t t, struct actor *out);
struct actor locks_named(struct lock_search *c, const struct actor *p, char **name);

/* Finds the suspected holder of the lock for which the target spun on vCPU `own`. *vcpu: vCPU of the same machine that
 * runs the holder; -1: ambiguous. */
int spin_suspects(struct lock_search *c, const struct target *target, int own, struct lock_wait *wait, int32_t *vcpu);

/* Adds the spin waits of vCPU v within the window, given an exit by PAUSE in the interval `pause`. spin_end_vcpu() ends
 * the vCPU. */
int spin_of_vcpu(struct lock_search *c, uint32_t v, const struct interval *pause);
int spin_end_vcpu(struct lock_search *c, uint32_t v);
bool spin_is_pause(const char *exit);
