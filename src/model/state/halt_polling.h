/* Halt polling: a vCPU that has halted is awaited running for a while, since waking its thread up takes longer.
 *
 * The kernel tells of each halt when it is over how long it lasted, and whether the thread slept; and of each change how
 * long it polls from then on, and did up to then.  So a halt without a sleep was polled through; one with a sleep from its
 * beginning until the thread left its CPU, or for as long as it may poll, if that is less.  Where no event told how long
 * that is, or that it is not at all, it is not known whether it polled.
 *
 * All of it is told when the halt is over.  O(1) per event. */
#ifndef STEALSCOPE_MODEL_STATE_HALT_POLLING_H
#define STEALSCOPE_MODEL_STATE_HALT_POLLING_H

#include <stdbool.h>
#include <stdint.h>

struct polling {
	int64_t window;         /* ns: how long it polls; -1 unknown */
	int64_t next;           /* ns: from the next halt on */
	int64_t since;          /* no halt at hand can have begun before */
	int64_t out;            /* its thread sleeps since then, INT64_MAX: it has not slept in this halt */
	bool untold;            /* as written: it is not known whether it polls */
	uint32_t attr;          /* CPU_POLLING, or HISTORY_NONE */
};

#define POLLING_INIT { .window = -1, .next = -1, .since = INT64_MIN, .out = INT64_MAX, .attr = HISTORY_NONE }

void polling_exit(struct polling *p, int64_t now);
void polling_sleeps(struct polling *p, int64_t now);  /* its thread does */
void polling_forget(struct polling *p);  /* events were lost */

#endif
