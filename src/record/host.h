/* The host while it is recorded. */
#ifndef STEALSCOPE_RECORD_HOST_H
#define STEALSCOPE_RECORD_HOST_H

#include "record/buffer_sizing.h"
#include "record/clock_sample.h"
#include "record/record.h"
#include "record/tracer.h"

struct host {
	const char *root;
	char *place;          /* of tracefs */
	int64_t hold;         /* ns: the buffers turn over, and this is kept of them; 0: they are kept whole */
	bool tsc;             /* its clock is x86-tsc, else mono */
	char **event;         /* that the kernel has, "system/name" */
	char **missing;       /* that it should have, and has not */
	size_t events, missings;
	struct tracer *tracer;
	struct forecast forecast;
	int folder;           /* descriptor, or -1 */
	struct moment started, stopped;
	uint64_t bytes, lost;
	int64_t look_at;      /* when to see again whether its buffers are half full */
	char *threads;
};

/* Looks what this host can do: tracefs, clock, events.  clock: "auto", or the one that is wanted.  Makes nothing. */
int host_init(struct host *h, const char *root, const char *clock, const char *const *extra, size_t extras,
              struct error *err);
void host_release(struct host *h);
const char *host_clock(const struct host *h);
/* Some events this cannot do without: those of the scheduler, and of KVM. */
int host_has_all(const struct host *h, struct error *err);

/* Makes the instance, looks for a short time at what comes, and makes the buffers for that time (h->hold, if that is
 * set). */
int host_prepare(struct host *h, int64_t duration, struct error *err);
int host_start(struct host *h, struct error *err);
/* What comes from there on (of buffers that turn over: what they hold) goes into that folder (a descriptor, which it
 * takes). */
int host_keep(struct host *h, int folder, struct error *err);
/* Reads buffers that fill. */
int host_tick(struct host *h, struct error *err);
/* The end, and all that is left; and what explains it. */
int host_stop(struct host *h, struct error *err);

#endif
