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
 *     samples       [{clock, monotonic, realtime}, ...]: the clocks during the recording, from `started` to `stopped`
 *     steal         {source, counter, offered, resolution, events: [SYSTEM/NAME, ...],
 *                   not_used: [{source, reason}, ...]}; steal_probes.h describes the sources
 *     proc_stat     {unit_hz, started: {CPU: n, ...}, stopped: {CPU: n, ...}}: steal of /proc/stat, in 1/unit_hz s
 *     vm            {vendor, product, uuid, serial, asset_tag, instance_id, cloud, region}, as far as they are readable
 *
 * The trace clock is x86-tsc if possible: only there a pause shows. `millihertz` is the measured frequency.
 *
 * A watchdog removes the instance and the probes if the recorder is killed. */
#pragma once

#include "record/clock_sample.h"
#include "record/host.h"
#include "record/steal_probes.h"
#include "record/watchdog.h"

#define CLOCK_SAMPLES_MAX 256

struct cpu_steal { unsigned cpu; uint64_t ticks; };  /* of /proc/stat */
struct proc_steal { struct cpu_steal *cpu; size_t cpus, cap; };

struct guest_only {
	struct guest_platform hypervisor;
	struct steal_probes steal;
	char *name, *dir_name;       /* hostname; name of the machine's directory, "guest-HOSTNAME" */
	struct clock_sample sample[CLOCK_SAMPLES_MAX];
	size_t samples;
	int64_t period, next;        /* time between samples, ns; monotonic time of the next one */
	struct proc_steal started, stopped;
	struct watchdog watchdog;
};

/* Returns true if the options request a recording of this machine as a guest, or if they request nothing that this
 * machine cannot do better: no VM is named or runs here (`vms`, `hidden` as in vms_find()), and it is a guest. */
bool guest_only_is_wanted(const struct record_options *o, size_t vms, size_t hidden);

/* Initializes *h and h->alone, in place of host_init(). Defines the probes. Always call host_release(). */
int guest_only_init(struct host *h, const struct record_options *o, struct error *err);
void guest_only_release(struct guest_only *g);  /* NULL is allowed; after the tracefs instance was removed */

/* Called before and after tracing, and repeatedly in between: read the clocks and /proc/stat. */
void guest_only_begin(struct host *h);
void guest_only_tick(struct host *h);
void guest_only_end(struct host *h);

/* Returns the TSC's frequency, millihertz; 0: unknown. Segments with a pause or migration are excluded.
 * *segments, *excluded: number of segments between samples. */
uint64_t guest_only_frequency(const struct clock_sample *sample, size_t n, size_t *segments, size_t *excluded);

void guest_only_put(struct yaml_out *o, const struct host *h);  /* Writes guest_only of about.yaml. */
/* Writes about.yaml and session.yaml. before, after: this machine's control groups. dir: descriptor of the recording's
 * directory. */
int guest_only_describe(const struct host *h, const struct cgroups *before, const struct cgroups *after, int dir,
                        struct error *err);
