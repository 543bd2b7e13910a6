/* Sources of stolen time inside a guest, through tracefs.
 *
 * STEAL_EVENT_PROBES, STEAL_KERNEL_PROBES: probes that read the counter which the hypervisor keeps in the memory of the
 *   guest: events steal_switch and steal_timer with the fields cpuN (u64, ns stolen from vCPU N since boot). With more
 *   than STEAL_FIELDS_MAX CPUs there is one pair of events per CPU, each with the field of its own CPU. Xen also has
 *   offlineN: ns that vCPU N was offline; cpuN then is the runnable time.
 *   Event probes: attached to sched_switch (follow it, belong to the outgoing thread) and hrtimer_expire_entry.
 *   Kernel probes: attached to finish_task_switch (belong to the incoming thread) and hrtimer_interrupt.
 * STEAL_RUNTIME: sched_stat_runtime. The kernel subtracts stolen time from its field `runtime`; the difference to wall
 *   time was stolen.
 * STEAL_RETURN_PROBE: event steal, field ret: the counter as the kernel reads it at ticks; exact totals, but no threads.
 *
 * The group of the probes (probe_definitions.h) has a suffix _cN if they are for one CPU. */
#pragma once

#include "base/base.h"
#include "base/yaml_out.h"
#include "record/hypervisor.h"

#define STEAL_FIELDS_MAX 4  /* CPUs whose counters one event contains */

enum steal_source { STEAL_EVENT_PROBES, STEAL_KERNEL_PROBES, STEAL_RUNTIME, STEAL_RETURN_PROBE, STEAL_NONE };

struct steal_probes {
	enum steal_source source;
	const char *root;
	char *tracefs;           /* path of tracefs */
	const char *counter;     /* name of the hypervisor's counter; NULL: none known for this machine */
	enum offered offered;    /* see struct guest_platform */
	char **event;            /* the source's events, "group/name"; the caller records them */
	size_t events, cap;
	unsigned cpus;           /* highest CPU number + 1 */
	bool per_cpu;            /* one pair of events per CPU */
	char *not_used[STEAL_NONE];  /* reason why a better source is not used; NULL: none */
};

/* Returns false if the text (auto, or a source's name) is unknown; *from: first source to try; *to: last one. */
bool steal_source_parse(const char *text, enum steal_source *from, enum steal_source *to);

/* Finds the best source within [from, to] and defines its probes, which record nothing until an instance enables them.
 * Never fails: the source may be STEAL_NONE. */
void steal_probes_open(struct steal_probes *p, const char *root, const char *tracefs, const struct guest_platform *h,
                       enum steal_source from, enum steal_source to);
/* Sets the filters of per-CPU events in a tracefs instance, before the events are enabled. */
void steal_probes_filter(const struct steal_probes *p, const char *instance);
/* Removes the definitions; no instance may use them. */
void steal_probes_close(struct steal_probes *p);

/* Writes the mapping `steal` of about.yaml (guest_only.h). */
void steal_probes_put(const struct steal_probes *p, struct yaml_out *o, int map);
/* Returns one sentence for people about source, exactness and cost; the caller frees. */
char *steal_probes_text(const struct steal_probes *p);
