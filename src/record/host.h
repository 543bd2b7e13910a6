/* Recording of the host: its tracefs instance, buffers, events and clock samples. */
#pragma once

#include "record/buffer_sizing.h"
#include "record/clock_sample.h"
#include "record/events.h"
#include "record/record.h"
#include "record/quota_samples.h"
#include "record/request_uprobes.h"
#include "record/tracer.h"
#include "record/watchdog.h"
#include "record/xen_host.h"

struct host {
	const char *root;
	char *tracefs;        /* path of tracefs */
	int64_t hold;         /* flight recording: ns of trace that the buffers shall hold (overwrite mode); 0: no flight
	                       * recording */
	bool tsc;             /* the trace clock is x86-tsc; otherwise mono */
	char **event;         /* recorded events, "system/name" */
	char **missing;       /* requested events that the kernel does not have */
	size_t events, n_missing;
	struct tracer *tracer;
	struct forecast forecast;
	int dir;              /* descriptor of the host's directory in the recording; -1: none */
	struct clock_sample started, stopped;
	uint64_t bytes, lost;  /* bytes of pages written; lost events */
	int64_t next_check;   /* monotonic time of the next check for half-full buffers, ns */
	struct guest_only *alone;  /* this machine is recorded as a guest, without its host (guest_only.h); NULL: as a host */
	struct xen_host *xen; /* this machine is dom0 of a Xen host: the host of xentrace; NULL: no Xen */
	struct request_uprobes requests;  /* request probes; no members: none requested */
	struct watchdog watchdog;
	bool throttled;       /* a BPF program prints throttled threads */
	struct quota_samples *quotas;  /* NULL: no quotas, or not recording */
	char *threads;        /* threads at the start, lines "TID PROCESS NAME" */
	char *namespaces;     /* threads in containers at the start, see dir_namespaces() */
};

/* Finds tracefs and chooses clock and events, without changes to the host except that tracefs is mounted if necessary.
 * clock: auto, x86-tsc or mono. Always call host_release(). */
int host_init(struct host *h, const char *root, const char *clock, const char *const *extra, size_t extras,
              struct error *err);
void host_release(struct host *h);
/* Chooses the events of this side that the kernel has, and lists those that it lacks. spare: room for more events. */
void host_choose_events(struct host *h, enum event_side side, const char *machine, const char *const *extra, size_t extras,
                        size_t spare);
/* Adds the event of o->counters. Defines the probes of o->request_spec and adds their events. A watchdog removes the probes
 * if this process is killed. */
int host_add_requests(struct host *h, const struct record_options *o, struct error *err);
/* Returns the trace clock's name. */
const char *host_clock(const struct host *h);
/* Returns -1 with *err if the kernel lacks one of the required scheduler and KVM events. */
int host_check_events(const struct host *h, struct error *err);

/* Creates the tracefs instance, measures the event rate in a short test, and allocates buffers for a recording of
 * `duration` ns (0: unknown), or for h->hold if it is set. */
int host_prepare(struct host *h, int64_t duration, struct error *err);
/* Clears the buffers and starts tracing. groups: groups with quotas to sample; NULL: unknown. */
int host_start(struct host *h, const struct cgroups *groups, struct error *err);
/* Sets the directory to which buffers are written from now on, including their present content. Takes ownership of the
 * descriptor. */
int host_store_in(struct host *h, int dir, struct error *err);
/* Writes buffers that are more than half full to the directory, at intervals that depend on their size. */
int host_tick(struct host *h, struct error *err);
/* Stops tracing, writes the rest of the buffers, the statistics, and the files that are needed to decode the pages. */
int host_stop(struct host *h, struct error *err);
