/* States of vCPUs and threads (paper, Fig. 5 and Table 2; * marks states that the paper lacks).
 *
 * A history file stores the states as numbers, and their names in this order. Readers of another version must use the
 * names. */
#ifndef STEALSCOPE_BASE_STATES_H
#define STEALSCOPE_BASE_STATES_H

/* X(code, name, meaning) */
#define VCPU_STATES(X) \
	X(VCPU_UNKNOWN, "UNKNOWN", "state unknown, events were lost") \
	X(VCPU_IDLE, "IDLE", "no guest thread is runnable on this vCPU") \
	X(VCPU_RUNNING, "RUNNING", "executes guest code") \
	X(VCPU_VMM, "VMM", "the hypervisor works on behalf of the vCPU") \
	X(VCPU_PREEMPTED, "PREEMPTED", "a guest thread is runnable; the host runs another thread") \
	X(VCPU_HOST_BLOCKED, "HOST_BLOCKED", "a guest thread is runnable; the vCPU's host thread sleeps") /* * */ \
	X(VCPU_WAKING, "WAKING", "an idle vCPU was woken and waits for a pCPU") /* * */

#define THREAD_STATES(X) \
	X(THREAD_UNKNOWN, "UNKNOWN", "state unknown, events were lost") \
	X(THREAD_RUNNING, "RUNNING", "executes on its CPU") \
	X(THREAD_BLOCKED, "BLOCKED", "sleeps, not runnable") \
	X(THREAD_PREEMPTED, "PREEMPTED", "runnable, waits for a CPU") \
	X(THREAD_VIRT_PREEMPTED, "VIRT_PREEMPTED", "current on its vCPU, and the vCPU does not execute")

/* Reasons for which a vCPU is off its CPU although that is not busy. */
#define OUT_REASONS(X) \
	X(OUT_QUOTA, "quota", "throttled: the CFS quota of this period is used up") \
	X(OUT_PAUSE, "pause", "the VMM has stopped the VM, or is stopped itself") \
	X(OUT_MIGRATION, "migration", "the VM migrates to another VMM process") \
	X(OUT_PAGE_FAULT, "fault", "the host fetches memory that the guest accessed") \
	X(OUT_QUOTA_OR_OTHERS, "quota or others", \
	  "throttled, or other threads have higher priority: the events do not show which") \
	X(OUT_PAUSE_OR_MIGRATION, "pause or migration", "the VMM has stopped the VM, which may continue in another process") \
	X(OUT_MOVE, "move", "the hypervisor moves the vCPU to another runqueue") \
	X(OUT_HELD, "pause or quota", "the hypervisor does not let the vCPU run, and the events do not show why") \
	X(OUT_PROVIDER, "provider", "the provider took the vCPU, according to the guest's steal clock; the reason is unknown") \
	X(OUT_PROVIDER_QUOTA, "provider: quota", "the provider throttled the VM: the times taken have a constant period") \
	X(OUT_PROVIDER_PAUSE, "provider: pause", "the provider paused the VM: the guest's clock stood still") \
	X(OUT_PROVIDER_MIGRATION, "provider: migration", "the VM was migrated: its TSC was set back against its clock") \
	X(OUT_PROVIDER_NEIGHBOUR, "provider: neighbour", "the vCPU shared its CPU: taken in slices of the host's tick") \
	X(OUT_VCPU_TAKEN, "vCPU taken", "of a thread that waits: the provider took the vCPU from the thread that was current")

/* Outcome of halt polling: the guest has halted, and the host polls for a wakeup before it blocks the vCPU's thread. */
#define POLL_OUTCOMES(X) \
	X(POLL_SUCCEEDED, "won", "a wakeup came while the host polled") \
	X(POLL_FAILED, "lost", "no wakeup came: the thread was blocked") \
	X(POLL_UNKNOWN, "untold", "no event shows whether halts of this vCPU are polled")

/* Owner of a pCPU. A history appends the names of the VMs. */
#define OWNER_STATES(X) \
	X(PCPU_IDLE, "idle", "no thread runs") \
	X(PCPU_HOST, "host", "a host thread that is not a vCPU") \
	X(PCPU_UNKNOWN, "unknown", "events were lost") \
	X(PCPU_OTHER_VM, "other VM", "a VM beyond the maximum number of states")

#define STATE_CODE(code, name, help) code,
enum vcpu_state { VCPU_STATES(STATE_CODE) VCPU_STATE_COUNT };
enum thread_state { THREAD_STATES(STATE_CODE) THREAD_STATE_COUNT };
enum out_reason { OUT_REASONS(STATE_CODE) OUT_REASON_COUNT };
enum poll_outcome { POLL_OUTCOMES(STATE_CODE) POLL_OUTCOME_COUNT };
enum pcpu_owner { OWNER_STATES(STATE_CODE) PCPU_VM };
#undef STATE_CODE

extern const char *const vcpu_state_name[VCPU_STATE_COUNT];
extern const char *const thread_state_name[THREAD_STATE_COUNT];
extern const char *const out_reason_name[OUT_REASON_COUNT];
extern const char *const poll_outcome_name[POLL_OUTCOME_COUNT];
extern const char *const pcpu_owner_name[PCPU_VM];

#endif
