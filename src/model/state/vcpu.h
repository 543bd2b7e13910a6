/* State of one vCPU as a pure function (paper, section "Virtual CPU states", Fig. 5). */
#pragma once

#include <stdbool.h>

#include "base/states.h"

/* State of the vCPU's thread in the scheduler of the machine that runs the VM (the host, or an outer guest). */
enum vcpu_host_state {
	HOST_UNTRACED, /* that machine was not traced, or the vCPU's thread was not identified */
	HOST_UNKNOWN,  /* events of that machine were lost, or its trace has not begun or has ended */
	HOST_ABSENT,   /* the thread does not exist */
	HOST_IN,       /* scheduled in */
	HOST_BLOCKED,  /* scheduled out, sleeps */
	HOST_RUNNABLE, /* scheduled out while runnable */
	HOST_WOKEN,    /* woken from sleep, waits for a pCPU */
	HOST_QUEUED,   /* waits for a pCPU; unknown whether preempted or woken */
	HOST_CLAIMS,   /* waits for a pCPU, according to the hypervisor: it is not idle, whatever its guest's current thread */
	HOST_HELD,     /* the hypervisor does not let it run */
	HOST_STATES
};

/* Code executed by a vCPU thread while scheduled in, from VM entries and exits. */
enum vcpu_mode {
	MODE_UNTRACED, /* no VM entries in the trace: state VMM is never used */
	MODE_UNKNOWN,  /* events were lost */
	MODE_VMM,      /* hypervisor */
	MODE_GUEST,    /* guest code */
	VCPU_MODES
};

/* Thread that the guest's own scheduler runs on the vCPU. */
enum vcpu_current {
	CURRENT_UNTRACED,  /* the guest is not traced at this time */
	CURRENT_UNKNOWN,   /* the guest's events were lost, or the guest is not traced and may idle without halting */
	CURRENT_NO_EVENTS, /* the guest's trace has no event of this CPU: it was idle, or busy, all the time */
	CURRENT_IDLE,      /* idle thread (swapper) */
	CURRENT_BUSY,      /* any other thread */
	VCPU_CURRENTS
};

extern const signed char vcpu_states[HOST_STATES][VCPU_MODES][VCPU_CURRENTS];

/* Returns enum vcpu_state; -1 (null) while the vCPU's thread does not exist. */
static inline int vcpu_status(enum vcpu_host_state place, enum vcpu_mode mode, enum vcpu_current current)
{
	return vcpu_states[place][mode][current];
}

/* Maps the two states that the paper does not have to its four states: HOST_BLOCKED to PREEMPTED, WAKING to IDLE. */
int vcpu_fold(int status);

/* Returns the enum thread_state of the guest thread that is current on a vCPU with this status. */
static inline int vcpu_guest_thread(int status)
{
	switch (status) {
	case VCPU_RUNNING:
		return THREAD_RUNNING;
	case VCPU_VMM:
	case VCPU_PREEMPTED:
	case VCPU_HOST_BLOCKED:
		return THREAD_VIRT_PREEMPTED;
	default:  /* IDLE and WAKING: impossible, because the idle thread is current then */
		return THREAD_UNKNOWN;
	}
}
