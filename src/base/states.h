/* States of vCPUs and threads (paper, Fig. 5 and Table 2; * marks states that the paper lacks).
 *
 * A history file stores the states as numbers, and their names in this order. Readers of another version must use the
 * names. */
#pragma once

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
/* Reasons for which a vCPU or thread is kept off its CPU. A history's state names are `name`.
 * X(code, name, meaning, label, words, clause, advice)
 *   label   in tables for people; words: after "due to"
 *   clause  a sentence: the first %s is the victim, the second one the time
 *   advice  the next step for the user */
#define OUT_REASONS(X) \
	X(OUT_QUOTA, "quota", "throttled: the CFS quota of this period is used up", "throttled", \
	  "its CPU quota or cap (it was throttled)", "a CPU quota (cpu.max) throttled %s for %s", \
	  "check its CPU limit (cpu.max of its cgroup; under Xen its cap, `xl sched-credit2`); the limit was used up, not " \
	  "its CPU") \
	X(OUT_PAUSE, "pause", "the VMM has stopped the VM, or is stopped itself", "paused", \
	  "a pause of the VM (stopped by its monitor, or together with it)", "%s was paused for %s", \
	  "find out why the VM was stopped (virsh suspend, xl pause, snapshot, migration, SIGSTOP); its CPU was not taken") \
	X(OUT_MIGRATION, "migration", "the VM migrates to another VMM process", "migration", \
	  "a live migration (the VM moved to another process)", "%s was migrated to another process and stood still for %s", \
	  "check what the migration copied while the VM was stopped (downtime-limit, bandwidth)") \
	X(OUT_PAGE_FAULT, "fault", "the host fetches memory that the guest accessed", "page fault", \
	  "page faults (guest memory was not present)", "page faults on the host stopped %s for %s", \
	  "check the host's memory; it has swapped out memory of the VM (VmSwap, memory.swap.current), or provided it slowly") \
	X(OUT_QUOTA_OR_OTHERS, "quota or others", \
	  "throttled, or other threads have higher priority: the events do not show which", "throttled, or others", \
	  "a CPU quota, or the threads on its CPU (no event shows which)", \
	  "a CPU quota or threads of higher priority kept %s off the CPU for %s", \
	  "check the CPU limits of its cgroup (cpu.max; nr_throttled in cpu.stat), and the threads on its CPU") \
	X(OUT_PAUSE_OR_MIGRATION, "pause or migration", "the VMM has stopped the VM, which may continue in another process", \
	  "paused, or migration", "a pause or a live migration of the VM (no event shows which)", \
	  "%s was paused or migrated for %s", \
	  "find out why the VM was stopped or moved (virsh suspend, a migration); its CPU was not taken") \
	X(OUT_MOVE, "move", "the hypervisor moves the vCPU to another runqueue", "move", \
	  "a move to another runqueue of the hypervisor", "moves to other runqueues kept %s off the CPU for %s", \
	  "pin the vCPU (xl vcpu-pin), so that the hypervisor does not move it") \
	X(OUT_HELD, "pause or quota", "the hypervisor does not let the vCPU run, and the events do not show why", \
	  "paused, or throttled", "a pause or a limit of the hypervisor (no event shows which)", \
	  "a pause or a cap kept %s off the CPU for %s", \
	  "record all events of the scheduler (xentrace -e 0x0002f000), and check `xl list` and `xl sched-credit2`") \
	X(OUT_PROVIDER, "provider", "the provider took the vCPU, according to the guest's steal clock; the reason is unknown", \
	  "provider", "the provider (its reason is unknown)", \
	  "the provider took the CPU of %s for %s, for an unknown reason", \
	  "ask the provider which task or limit kept the vCPU from running at these times (UTC)") \
	X(OUT_PROVIDER_QUOTA, "provider: quota", "the provider throttled the VM: the times taken have a constant period", \
	  "throttled by provider", "the provider, by a CPU quota (the VM was throttled with a constant period)", \
	  "the provider throttled %s for %s", \
	  "ask the provider for the CPU limit of this VM (cpu.max, credits); it was used up at these times (UTC)") \
	X(OUT_PROVIDER_PAUSE, "provider: pause", "the provider paused the VM: the guest's clock stood still", \
	  "paused by provider", "the provider, by a pause of the VM", "the provider paused %s for %s", \
	  "ask the provider why the VM was stopped at these times (UTC): snapshot, migration, maintenance") \
	X(OUT_PROVIDER_MIGRATION, "provider: migration", "the VM was migrated: its TSC was set back against its clock", \
	  "provider: migration", "the provider, by a live migration of the VM", \
	  "the provider migrated %s, which stood still for %s", \
	  "ask the provider for the migration of the VM at this time (UTC)") \
	X(OUT_PROVIDER_NEIGHBOUR, "provider: neighbour", "the vCPU shared its CPU: taken in slices of the host's tick", \
	  "provider: neighbour", "the provider, for a neighbour on the same CPU (another VM or a task of its host)", \
	  "the provider took the CPU of %s for %s, for a neighbour on the same CPU", \
	  "ask the provider for the load and the overcommitment of the host's CPUs at these times (UTC)") \
	X(OUT_VCPU_TAKEN, "vCPU taken", "of a thread that waits: the provider took the vCPU from the thread that was current", \
	  "vCPU taken", "its vCPU, which the provider took from the thread before it", \
	  "the provider took the vCPU that %s waited for: %s", "explain the vCPU: the provider took it")

/* Outcome of halt polling: the guest has halted, and the host polls for a wakeup before it blocks the vCPU's thread. */
#define POLL_OUTCOMES(X) \
	X(POLL_SUCCEEDED, "won", "a wakeup came while the host polled") \
	X(POLL_FAILED, "lost", "no wakeup came: the thread was blocked") \
	X(POLL_UNKNOWN, "untold", "no event shows whether halts of this vCPU are polled")

/* Owner of a pCPU. A history appends the VMs' names. */
#define OWNER_STATES(X) \
	X(PCPU_IDLE, "idle", "no thread runs") \
	X(PCPU_HOST, "host", "a host thread that is not a vCPU") \
	X(PCPU_UNKNOWN, "unknown", "events were lost") \
	X(PCPU_OTHER_VM, "other VM", "a VM beyond the maximum number of states")

#define STATE_CODE(code, name, help) code,
enum vcpu_state { VCPU_STATES(STATE_CODE) VCPU_STATE_COUNT };
enum thread_state { THREAD_STATES(STATE_CODE) THREAD_STATE_COUNT };
enum poll_outcome { POLL_OUTCOMES(STATE_CODE) POLL_OUTCOME_COUNT };
enum pcpu_owner { OWNER_STATES(STATE_CODE) PCPU_VM };
#undef STATE_CODE
#define REASON_CODE(code, name, meaning, label, words, clause, advice) code,
enum out_reason { OUT_REASONS(REASON_CODE) OUT_REASON_COUNT };
#undef REASON_CODE
struct out_reason_row { const char *label, *words, *clause, *advice; };

extern const char *const vcpu_state_name[VCPU_STATE_COUNT];
extern const char *const thread_state_name[THREAD_STATE_COUNT];
extern const char *const out_reason_name[OUT_REASON_COUNT];
extern const struct out_reason_row out_reason_row[OUT_REASON_COUNT + 1];  /* the last row: an unknown reason */
extern const char *const poll_outcome_name[POLL_OUTCOME_COUNT];
extern const char *const pcpu_owner_name[PCPU_VM];
