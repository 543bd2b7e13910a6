/* Merges the traces of all machines into one stream in host time.
 *
 * Input per machine: its trace, its clock, and one event read ahead. The time of a machine never decreases: where two
 * segments of its clock overlap, its events keep the last time until the clock has caught up. At equal times the machine
 * with the lower index comes first, so the host precedes its guests. Cost: O(log machines) per step. With worker threads
 * the steps are produced in batches ahead of the caller, by an ordered job (base/ordered_jobs.h); the result is the
 * same. */
#pragma once

#include "base/prefetch.h"
#include "sync/sync.h"
#include "trace/trace.h"

enum merge_kind { MERGE_BEGIN, MERGE_EVENT, MERGE_END };

struct merge_step {
	struct merge_point {
		int64_t t;          /* host ns */
		uint32_t machine;
		uint16_t kind;      /* enum merge_kind; 16 bits, because steps are copied between CPUs */
		bool others_remain; /* MERGE_END: traces of other machines continue */
	} at;
	struct event ev;        /* valid if MERGE_EVENT */
};

struct merge {
	struct merge_streams *streams; /* the steps' producer; used only by its thread until merge_close() */
	struct prefetch *ahead;
	const struct merge_step *at, *end;  /* next step of the current batch, and end of the batch */
};

/* Opens trace[i] (NULL: none) with clock[i] (NULL: host time) for each machine i of n. The arrays may be freed after the
 * call. Returns 0, or -1 with *err set. */
int merge_open(struct merge *m, const struct trace *const *trace, const struct clock_map *const *clock, size_t n,
               struct ordered_jobs *ordered_jobs, struct error *err);
/* Gets the next batch. Returns 1, 0 at the end, or -1 with *err set. */
int merge_more(struct merge *m, struct error *err);
/* Sets *s to the next step, valid until the next call. A machine's steps are MERGE_BEGIN at the time of its first
 * event, its events, and MERGE_END 1 ns after its last event. Returns 1, 0 at the end, or -1 with *err set. */
static inline int merge_next(struct merge *m, const struct merge_step **s, struct error *err)
{
	const int got = m->at < m->end ? 1 : merge_more(m, err);
	*s = m->at;
	m->at += got > 0;
	return got;
}
/* Returns the host time of the last event of all machines, ns; valid after the last step. */
int64_t merge_last(const struct merge *m);
void merge_close(struct merge *m);
