#include "model/state/vcpu.h"

#define WHATEVER_IT_EXECUTES(...) \
	{ [MODE_UNTRACED] = { __VA_ARGS__ }, [MODE_UNKNOWN] = { __VA_ARGS__ }, [MODE_VMM] = { __VA_ARGS__ }, \
	  [MODE_GUEST] = { __VA_ARGS__ } }

const signed char vcpu_states[PLACES][VCPU_MODES][VCPU_CURRENTS] = {
	/*                                     untraced      unknown       quiet         idle          busy */
	[PLACE_UNTRACED] = WHATEVER_IT_EXECUTES(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING),
	[PLACE_UNKNOWN] = WHATEVER_IT_EXECUTES(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN),
	[PLACE_GONE] = WHATEVER_IT_EXECUTES(-1, -1, -1, -1, -1),
	/* Scheduled in.  The mode decides first: while the hypervisor executes, nothing the guest does matters. */
	[PLACE_IN] = {
		[MODE_UNTRACED] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
		[MODE_UNKNOWN] = { VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN },
		[MODE_VMM] = { VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM },
		[MODE_GUEST] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
	},
	/* Scheduled out.  The guest's current thread decides whether anybody suffers; of an untraced one, how it went out: who
	 * sleeps was idle, and is still when it is woken. */
	[PLACE_BLOCKED] = WHATEVER_IT_EXECUTES(VCPU_IDLE, VCPU_UNKNOWN, VCPU_IDLE, VCPU_IDLE, VCPU_HOST_BLOCKED),
	[PLACE_RUNNABLE] = WHATEVER_IT_EXECUTES(VCPU_PREEMPTED, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_PREEMPTED),
	[PLACE_WOKEN] = WHATEVER_IT_EXECUTES(VCPU_WAKING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_WAKING, VCPU_PREEMPTED),
	[PLACE_QUEUED] = WHATEVER_IT_EXECUTES(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_PREEMPTED),
};

int vcpu_fold(int status)
{
	switch (status) {
	case VCPU_HOST_BLOCKED:
		return VCPU_PREEMPTED;
	case VCPU_WAKING:
		return VCPU_IDLE;
	default:
		return status;
	}
}

int vcpu_transition(int from, int to)
{
	from = vcpu_fold(from);
	to = vcpu_fold(to);
	if (from == VCPU_VMM && to == VCPU_RUNNING)
		return 1;  /* kvm entry */
	if (from == VCPU_RUNNING && to == VCPU_VMM)
		return 2;  /* kvm exit */
	if (from == VCPU_IDLE && to == VCPU_VMM)
		return 3;  /* scheduled in (or a kvm exit out of the idle thread) */
	if (from == VCPU_VMM && to == VCPU_IDLE)
		return 4;  /* scheduled out with only the idle thread to run (or an entry into it) */
	if (from == VCPU_VMM && to == VCPU_PREEMPTED)
		return 5;  /* scheduled out while it served a thread */
	if (from == VCPU_PREEMPTED && to == VCPU_VMM)
		return 6;  /* scheduled in again */
	return 0;
}
