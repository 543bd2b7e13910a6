/* When the CPUs of a guest recorded something: the times that can touch the edge of a span in guest mode (private to
 * sync/).
 *
 * An event whose neighbours on the same CPU are both nearer than the shortest span out of guest mode lies in the same
 * window as they do and bounds nothing; it is left out.  At most ACTIVITY_MAX times are kept; past that, only those
 * in some slices of time. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_ACTIVITY_H
#define STEALSCOPE_SYNC_EVIDENCE_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "trace/trace.h"

struct activity_cpu {
	int64_t *ts;
	size_t len, cap;
};

struct activity {
	struct activity_cpu *cpu;
	unsigned cpus;
	size_t len;         /* of all CPUs */
	bool lossy;         /* events were lost: that there is none says nothing */
	unsigned sliced;    /* one slice in 2^sliced is kept */
	int64_t begin, end; /* of the guest's trace */
	const struct trace_info *of;
};

/* quiet: the shortest span out of guest mode, ns; stop: see struct host_view. */
int activity_load(struct activity *a, const struct trace *guest, int64_t quiet, const atomic_bool *stop,
                  struct error *err);
void activity_release(struct activity *a);
/* Index of the first time >= t. */
size_t activity_find(const struct activity_cpu *c, int64_t t);

/* A stretch of a guest's time, ns, both included. */
struct segment { int64_t from, to; };
/* The part of `a` that lies in it; borrows the times of `a`.  activity_view_end() frees the view. */
struct activity activity_view(const struct activity *a, struct segment seg);
void activity_view_end(struct activity *view);
size_t activity_count(const struct activity *a, struct segment seg);

#endif
