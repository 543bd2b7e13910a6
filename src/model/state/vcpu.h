/* The state machine of one vCPU, a pure function (paper, section "Virtual CPU states", Fig. 5). */
#ifndef STEALSCOPE_MODEL_STATE_VCPU_H
#define STEALSCOPE_MODEL_STATE_VCPU_H

#include <stdbool.h>

#include "base/states.h"

/* What the host (or, for a nested guest, the outer guest) does with the thread that is the vCPU. */
enum vcpu_place {
	PLACE_UNTRACED,  /* nobody traced the machine that runs the vCPU, or nobody knows which thread it is */
	PLACE_UNKNOWN,   /* that machine's events were lost, or its trace has not begun or is over */
	PLACE_GONE,      /* the thread does not exist */
	PLACE_IN,        /* scheduled in */
	PLACE_BLOCKED,   /* scheduled out, sleeps */
	PLACE_RUNNABLE,  /* scheduled out although it wanted to go on */
	PLACE_WOKEN,     /* was asleep, was woken, waits for a pCPU */
	PLACE_QUEUED,    /* waits for a pCPU; which of these two, nobody knows */
	PLACES
};

/* What a scheduled-in vCPU thread executes, by kvm entry and exit. */
enum vcpu_mode {
	MODE_UNTRACED,   /* there are no kvm events: VMM is never entered */
	MODE_UNKNOWN,    /* events were lost */
	MODE_VMM,        /* the hypervisor */
	MODE_GUEST,      /* the guest's code */
	VCPU_MODES
};

/* What the guest's own scheduler has put on the vCPU. */
enum vcpu_current {
	CURRENT_UNTRACED,  /* the guest is not traced (here, or not yet, or no longer) */
	CURRENT_UNKNOWN,   /* the guest's events were lost; or it is not traced, and may idle without halting */
	CURRENT_QUIET,     /* the guest's trace has no event of this CPU: it has always been idle, or always been busy */
	CURRENT_IDLE,      /* its idle thread (swapper) */
	CURRENT_BUSY,      /* any other thread */
	VCPU_CURRENTS
};

extern const signed char vcpu_states[PLACES][VCPU_MODES][VCPU_CURRENTS];

/* The vCPU's enum vcpu_state; -1 (null) while its thread does not exist. */
static inline int vcpu_status(enum vcpu_place place, enum vcpu_mode mode, enum vcpu_current current)
{
	return vcpu_states[place][mode][current];
}

/* Folds the two refinements back into the paper's four states: HOST_BLOCKED into PREEMPTED, WAKING into IDLE. */
int vcpu_fold(int status);

/* The number of the transition between two states in Fig. 5 of the paper, 0 when the figure does not have it. */
int vcpu_transition(int from, int to);

/* The status of the guest thread that is current on a vCPU of that status: enum thread_state. */
static inline int vcpu_guest_thread(int status)
{
	switch (status) {
	case VCPU_RUNNING:
		return THREAD_RUNNING;
	case VCPU_VMM:
	case VCPU_PREEMPTED:
	case VCPU_HOST_BLOCKED:
		return THREAD_VIRT_PREEMPTED;
	default:  /* IDLE and WAKING cannot be: they mean that the idle thread is current */
		return THREAD_UNKNOWN;
	}
}

#endif
