/* The vocabulary of states: vCPUs and threads (paper, Fig. 5 and Table 2; ours beyond the paper are marked *).
 *
 * A history file stores these as numbers and carries the names beside them, in this order; a reader of another
 * version must go by the names. */
#ifndef STEALSCOPE_BASE_STATES_H
#define STEALSCOPE_BASE_STATES_H

/* X(code, name, what it means) */
#define VCPU_STATES(X) \
	X(VCPU_UNKNOWN, "UNKNOWN", "events were lost: nothing is known") \
	X(VCPU_IDLE, "IDLE", "no guest thread wants this vCPU") \
	X(VCPU_RUNNING, "RUNNING", "guest code executes") \
	X(VCPU_VMM, "VMM", "the hypervisor executes on the vCPU's behalf") \
	X(VCPU_PREEMPTED, "PREEMPTED", "a guest thread wants to run; the host runs something else") \
	X(VCPU_HOST_BLOCKED, "HOST_BLOCKED", "a guest thread wants to run; the vCPU's host thread sleeps") /* * */ \
	X(VCPU_WAKING, "WAKING", "an idle vCPU was woken and waits for a pCPU") /* * */

#define THREAD_STATES(X) \
	X(THREAD_UNKNOWN, "UNKNOWN", "events were lost: nothing is known") \
	X(THREAD_RUNNING, "RUNNING", "executes on its CPU") \
	X(THREAD_BLOCKED, "BLOCKED", "sleeps, waits for something") \
	X(THREAD_PREEMPTED, "PREEMPTED", "runnable, waits for its CPU") \
	X(THREAD_VIRT_PREEMPTED, "VIRT_PREEMPTED", "on its vCPU, and the vCPU is not executing")

/* What keeps a vCPU from its CPU although nobody else needs that. */
#define OUT_REASONS(X) \
	X(OUT_QUOTA, "quota", "its threads may not run: their CPU time of this period is used up") \
	X(OUT_PAUSE, "pause", "the machine is stopped, by its monitor or with that") \
	X(OUT_MIGRATION, "migration", "the machine moves to another monitor") \
	X(OUT_FAULT, "fault", "memory that its guest touched has to be fetched first") \
	X(OUT_UNSURE, "quota or others", "its threads may not run, or others go first: no event tells which") \
	X(OUT_STOPPED, "pause or migration", "its monitor has stopped it, and may have another one go on with it")

/* A vCPU has halted, and its host runs on for a while, lest something wakes it at once. */
#define POLL_OUTCOMES(X) \
	X(POLL_WON, "won", "something did") \
	X(POLL_LOST, "lost", "nothing did: it went to sleep then") \
	X(POLL_UNTOLD, "untold", "no event tells whether its halts are polled at all")

/* Who has a CPU of the host; behind these, in a history, the VMs by name. */
#define OWNER_STATES(X) \
	X(PCPU_IDLE, "idle", "nobody") \
	X(PCPU_HOST, "host", "a thread of the host that is no vCPU") \
	X(PCPU_UNKNOWN, "unknown", "events were lost") \
	X(PCPU_OTHER_VM, "other VM", "one of more VMs than a set of states can hold")

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
