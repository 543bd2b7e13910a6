#include "model/vcpu.h"

/* Scheduled in.  The mode decides first: while the hypervisor executes, nothing the guest does matters. */
static const signed char in[][5] = {
	/*                 untraced      unknown       quiet         idle       busy */
	[MODE_UNTRACED] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
	[MODE_UNKNOWN] = { VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN },
	[MODE_VMM] = { VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM, VCPU_VMM },
	[MODE_GUEST] = { VCPU_RUNNING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_RUNNING },
};

/* Scheduled out.  The guest's current thread decides whether anybody suffers; of an untraced one, how it went out: who
 * sleeps was idle, and is still when it is woken. */
static const signed char out[][5] = {
	/*                  untraced        unknown       quiet         idle          busy */
	[PLACE_BLOCKED] = { VCPU_IDLE, VCPU_UNKNOWN, VCPU_IDLE, VCPU_IDLE, VCPU_HOST_BLOCKED },
	[PLACE_RUNNABLE] = { VCPU_PREEMPTED, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_IDLE, VCPU_PREEMPTED },
	[PLACE_WOKEN] = { VCPU_WAKING, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_WAKING, VCPU_PREEMPTED },
	[PLACE_QUEUED] = { VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_UNKNOWN, VCPU_PREEMPTED },
};

int vcpu_status(enum vcpu_place place, enum vcpu_mode mode, enum vcpu_current current)
{
	switch (place) {
	case PLACE_UNTRACED:
		return current == CURRENT_UNTRACED ? VCPU_UNKNOWN : in[MODE_UNTRACED][current];  /* somebody must have seen it */
	case PLACE_UNKNOWN:
		return VCPU_UNKNOWN;
	case PLACE_GONE:
		return -1;
	case PLACE_IN:
		return in[mode][current];
	case PLACE_BLOCKED:
	case PLACE_RUNNABLE:
	case PLACE_WOKEN:
	case PLACE_QUEUED:
		return out[place][current];
	}
	return VCPU_UNKNOWN;
}

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

int vcpu_guest_thread(int status)
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
