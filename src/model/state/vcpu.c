#include "model/state/vcpu.h"

#define ANY_MODE(...) \
	{ [MODE_UNTRACED] = { __VA_ARGS__ }, [MODE_UNKNOWN] = { __VA_ARGS__ }, [MODE_VMM] = { __VA_ARGS__ }, \
	  [MODE_GUEST] = { __VA_ARGS__ } }

const signed char vcpu_states[HOST_STATES][VCPU_MODES][VCPU_CURRENTS] = {
	/*                                     untraced      unknown       quiet         idle          busy */
	[HOST_UNTRACED] = ANY_MODE(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING),
	[HOST_UNKNOWN] = ANY_MODE(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN),
	[HOST_ABSENT] = ANY_MODE(-1, -1, -1, -1, -1),
	/* Scheduled in. The mode decides first: while the hypervisor executes, the guest's current thread does not matter. */
	[HOST_IN] = {
		[MODE_UNTRACED] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
		[MODE_UNKNOWN] = { VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN },
		[MODE_VMM] = { VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM },
		[MODE_GUEST] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
	},
	/* Scheduled out. The guest's current thread decides whether time is lost. For an untraced guest the host state
	 * decides: a vCPU that sleeps was idle, and is still idle when it is woken. */
	[HOST_BLOCKED] = ANY_MODE(VCPU_IDLE, VCPU_UNKNOWN, VCPU_IDLE, VCPU_IDLE, VCPU_HOST_BLOCKED),
	[HOST_RUNNABLE] = ANY_MODE(VCPU_PREEMPTED, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_PREEMPTED),
	[HOST_WOKEN] = ANY_MODE(VCPU_WAKING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_WAKING, VCPU_PREEMPTED),
	[HOST_CLAIMS] = ANY_MODE(VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_WAKING, VCPU_PREEMPTED),
	[HOST_HELD] = ANY_MODE(VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_PREEMPTED, VCPU_HOST_BLOCKED, VCPU_PREEMPTED),
	[HOST_QUEUED] = ANY_MODE(VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_PREEMPTED),
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
