/* Finds out why a vCPU does not run although it could: a CFS quota, a pause of the VM, or a page fault.
 *
 * CFS quota (CFS bandwidth control, cpu.max): the vCPU's thread is throttled.
 *   Evidence: the thread is runnable, but the scheduler leaves its CPU idle, or repeatedly runs a task of far less
 *   weight. It does so only with a thread that it may not choose. These cases prove nothing:
 *     - a CPU that was already idle at the wakeup, unless interrupts occurred since (each one reschedules): the host
 *       itself may be held up;
 *     - a thread that was just moved to the CPU, or with only sched_waking recorded: it may not have arrived;
 *     - a task that was not interrupted, or runs in the kernel: it is not preempted.
 *   Start: when the thread began to wait. Only running uses up a quota, so throttling cannot start later. If another
 *   vCPU of the VM, which may share the quota, ran on that CPU during the wait: when that vCPU left it.
 *   End: the refill timer's expiry, if it is known (cfs_quota_period.h). Otherwise the last time at which the CPU
 *   was idle or ran a light task and did not already prepare the switch (interrupts in quick succession until the thread
 *   ran). A wait of IDLE_MIN for an idle CPU that ends right after an expiry of the refill timer of this vCPU, or of a
 *   sibling, also counts.
 *   Unsure (OUT_QUOTA_OR_OTHERS, without a culprit); if the control group of the thread was recorded, group_quota.h
 *   decides instead of the last three of these rules:
 *     - after a proven quota, if no timer shows the refill and other tasks had the CPU after its end;
 *     - a vCPU of this VM was throttled within the last PERIOD_MAX, and the thread waits LIGHT_MIN for a task of no more
 *       weight by its nice level: the task's cgroup may be heavier;
 *     - such waits end repeatedly after the expiry of a timer that may refill a quota: all of these waits, unless
 *       another reason was written for a later time;
 *     - a far lighter task has the CPU, but no interrupts are recorded that could prove throttling.
 *
 * Pause: the VMM stops the VM (QMP stop, SIGSTOP, migration).
 *   Evidence: all vCPU threads returned from the guest to the VMM with EINTR and sleep there, for PAUSE_MIN together.
 *   Start: when the thread returned to the VMM, or, if that is not recorded, blocked after an interrupt. End: its next
 *   kvm_entry.
 *
 * Page fault: KVM fetches a page of the guest's memory.
 *   Evidence: the last exit was for memory that was not mapped, and before the thread entered the guest or returned to
 *   the VMM again it slept uninterruptibly. If returns to the VMM are not recorded (or none was recorded yet), such a
 *   sleep may be the VMM's own, and nothing is written.
 *
 * All intervals are written when they have ended. Cost: O(1) per event; when a vCPU runs again, O(LEVELS), or O(vCPUs of
 * its VM). Memory: 1.4 KiB per CPU of the host; in addition cfs_quota_period.h. Quotas inside nested VMs are not
 * detected, because an idle CPU proves nothing if it is a vCPU itself. */
#pragma once

#include "base/base.h"
#include "model/inference/cfs_quota_period.h"

#define NICE_RT (-21)
#define NICE_UNKNOWN INT8_MAX

#define IDLE_REACTION 20000  /* time within which an idle CPU that must run a thread has an event, and then another, ns */

/* Weight of the task that a CPU runs: nice level + 20, or idle. LEVEL_NONE: any other task, or unknown. */
enum { LEVEL_IDLE = 40, LEVELS, LEVEL_NONE = -1 };

/* Fewest interrupts that a task must have survived to prove that no other thread may run: the scheduler's
 * first tick preempts it, or the second if the first came early. */
enum { INTERRUPTS_MIN = 3 };

/* Interval in which a CPU ran tasks of one level, host ns. end: switch to the next thread. to: time at which the CPU may
 * have begun to prepare that switch; equal to `end` if not idle. interrupted: start of the INTERRUPTS_MIN interrupts
 * before `to`; INT64_MIN: fewer. */
struct vcpu_run_interval { int64_t from, to, end, interrupted; };

struct run_levels {
	int8_t level;         /* level of the current task */
	int64_t since;
	int64_t interrupt[INTERRUPTS_MIN];  /* last interrupts since `since`, earliest first; INT64_MIN: fewer */
	int64_t active_since; /* start of the last series of events without pauses, host ns */
	int64_t last_event;   /* time of the last event, host ns */
	int64_t pause_ns;     /* pause before the last event, ns */
	bool preempted;       /* the last thread was switched out while runnable */
	uint64_t seen;        /* bit set of levels with a valid `last` */
	/* Per level: the last interval, and the last interval that is long enough to be evidence. */
	struct vcpu_run_interval last[LEVELS];
	struct vcpu_run_interval proof[LEVELS];
	/* Last intervals of threads. A thread that runs again within INTERRUPTS_APART was chosen again and continues its
	 * interval. */
	struct run_slice { int64_t tid, since, until, interrupt[INTERRUPTS_MIN]; int8_t level; } slice, long_slice;
};

struct throttling {
	int64_t waiting_since;     /* start of the thread's wait for a CPU, host ns; INT64_MAX: does not wait */
	int64_t in_since;          /* start of the thread's current time on a CPU, host ns */
	int64_t last_in, last_out; /* start and end of its last time on a CPU, host ns */
	int32_t last_cpu;          /* CPU of that time; -1: never ran */
	int64_t vmm_since;         /* time of the return to the VMM, host ns; INT64_MAX: not in the VMM */
	bool may_be_moving;        /* at waiting_since the thread may not have arrived on its CPU yet */
	bool asleep;               /* in the VMM, and has slept there */
	bool paused;               /* the VM was paused; reset by the next VM entry */
	bool entered;              /* entered the guest at least once */
	bool interrupted;          /* the last VM exit was an interrupt, not an action of the guest */
	bool memory_exit;          /* the last VM exit was for unmapped memory, and no return to the VMM followed */
	bool uninterruptible;      /* the thread sleeps uninterruptibly */
	int64_t fault_since;       /* the page fault's start, host ns; INT64_MAX: none */
	struct quota_timer refill_timer;  /* timer that refills the quota */
	struct quota_timer contested_timer;  /* timer that may refill the quota, learned on a contested CPU */
	struct { int64_t from, to; } unsure_wait[QUOTA_CONTESTED];  /* waits from which contested_timer was learned; written
	                                                             * once it is */
	uint8_t unsure_waits;      /* stored wait count */
	int64_t written_until;     /* end of the last written interval, host ns; earlier times cannot be written */
	struct quota_pattern pattern;        /* of the waits without another reason */
	int64_t throttled_at;      /* last time at which the thread was throttled, or, by contested_timer, may have been,
	                            * host ns; INT64_MIN: never */
	uint8_t host_state;        /* enum vcpu_host_state */
	uint32_t attr;             /* attribute CPU_OUT_BY; HISTORY_NONE: not declared */
};

#define THROTTLING_INIT { .waiting_since = INT64_MAX, .last_cpu = -1, .vmm_since = INT64_MAX, .fault_since = INT64_MAX, \
	.throttled_at = INT64_MIN, .written_until = INT64_MIN, .attr = HISTORY_NONE }
