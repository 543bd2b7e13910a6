/* Sources of stolen time inside a guest, through tracefs.
 *
 * event_probes, kernel_probes: probes that read the counter which the hypervisor keeps in the memory of the guest:
 *   events steal_switch and steal_timer with the fields cpuN (u64, ns stolen from vCPU N since boot). With more than
 *   STEAL_FIELDS_MAX CPUs there is one pair of events per CPU, each with the field of its own CPU. Xen also has offlineN:
 *   ns that vCPU N was offline; cpuN then is the runnable time.
 *   event_probes: attached to sched_switch (follows it, belongs to the outgoing thread) and hrtimer_expire_entry.
 *   kernel_probes: attached to finish_task_switch (belongs to the incoming thread) and hrtimer_interrupt.
 * sched_stat_runtime: the kernel subtracts stolen time from the field `runtime`; the difference to wall time was stolen.
 * return_probe: event steal, field ret: the counter as the kernel reads it at ticks; exact totals, but not per thread.
 *
 * Definitions of probes are global in tracefs. Their group is stealscope_PID_START (with a suffix _cN for one CPU) and
 * identifies their owner. */
#ifndef STEALSCOPE_RECORD_STEAL_PROBES_H
#define STEALSCOPE_RECORD_STEAL_PROBES_H
#endif
