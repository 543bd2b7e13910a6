/* Recording inside a guest, without its host: `record --guest-only`.
 *
 * The guest is traced through tracefs as a host is (host.h), with the events of guests and with a source of stolen time
 * (steal_probes.h). A recording contains one machine and no host:
 *
 *   session.yaml            guests: [{name: HOSTNAME, dir: guest-HOSTNAME, facts: {...}}]; no key `host`
 *   guest-HOSTNAME/         pages, stats, events, header_page, header_event, saved_cmdlines, saved_tgids, as of any machine
 *   guest-HOSTNAME/about.yaml  as of any machine, and the mapping `guest_only`:
 *
 *     hypervisor    kvm, xen, vmware, hyperv or unknown
 *     clocksource   current clocksource: with kvm-clock, CLOCK_MONOTONIC stands still while the VM is paused, with tsc it
 *                   runs on
 *     hz            ticks/s of the kernel; absent: unknown
 *     frequency     {millihertz, source: measured, segments, excluded, hypervisor_khz}: TSC frequency from the clock
 *                   samples; excluded: segments that differ from the median by more than 200 ppm (pause, migration);
 *                   hypervisor_khz: the frequency in CPUID, if present
 *     samples       [{clock, monotonic, realtime}, ...]: the clocks during the recording, between `started` and `stopped`
 *     steal         {source, counter, offered, events: [SYSTEM/NAME, ...], resolution,
 *                   not_used: [{source, reason}, ...]}; see enum steal_source for the values of `source`
 *     proc_stat     {unit_hz, started: {CPU: n, ...}, stopped: {CPU: n, ...}}: steal of /proc/stat, in 1/unit_hz s
 *     vm            {vendor, product, uuid, serial, asset_tag, instance_id, cloud, region}, as far as they are readable
 *
 * The trace clock is x86-tsc if possible: only there a pause shows. `millihertz` is the measured frequency. */
#ifndef STEALSCOPE_RECORD_GUEST_ONLY_H
#define STEALSCOPE_RECORD_GUEST_ONLY_H
#endif
