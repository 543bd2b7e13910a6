/* Steal clock: CPU time that the hypervisor took, as a guest without a host trace sees it.
 *
 * Reads of a vCPU's clock (EV_STEAL) show how much was stolen between two reads, not when. The vCPU executes nothing in
 * a gap, so its events leave a silence of at least that length. A gap ends at the event after the silence, because a
 * due timer fires at once, and begins its length before. If no silence is long enough, several gaps were merged between
 * the two reads: the longest silences are filled first. A gap's error bound is the rest of its silence, and the part
 * of it that may belong to other silences between the two reads.
 *
 * A pause is not in the clock: the TSC runs on while the guest's CLOCK_MONOTONIC (hrtimer_entry.now) stands still.
 *
 * steal_clock_read() makes one pass over the trace before the model. Memory: one struct steal_gap per gap. */
#pragma once

#include "base/base.h"
#include "base/notes.h"
#include "base/states.h"
#include "sync/sync.h"

struct machine;

/* Interval in which a vCPU did not execute. */
struct steal_gap {
	int64_t begin, end;  /* ns, history time; the vCPU executes again at `end` */
	int64_t bound;       /* error bound of begin and end, ns: the gap may begin and end earlier by up to this;
	                      * with a doubtful part, also later */
	uint32_t cpu;
	uint8_t kind;        /* enum out_reason: OUT_PROVIDER ... OUT_PROVIDER_NEIGHBOUR */
};

/* Begin or end of a gap. */
struct steal_change { int64_t t; uint32_t gap; bool is_end; };

struct steal_clock {
	struct steal_gap *gap;       /* by CPU in order of time, without overlap */
	size_t gaps, gaps_cap;
	struct steal_change *change; /* [2 * gaps], sorted by time */
	size_t next;                 /* next change to apply */
	uint32_t cpus;               /* highest CPU with reads + 1; 0: no steal clock */
	bool *has_reads;             /* [cpus] */
	bool declared;               /* the attributes of these vCPUs exist */
	int64_t stolen;              /* sum of the increases, ns */
	int64_t unplaced;            /* part of it for which there is no silence, ns */
};

/* Returns 0, or -1 with *err set. */
int steal_clock_read(struct steal_clock *s, const struct trace *trace, const struct clock_map *clock, struct error *err);
/* Applies all changes up to time t to the machine. Call it before the event at t. Returns the time of the next change;
 * INT64_MAX: none, or the machine is not active yet. */
int64_t steal_clock_advance(struct steal_clock *s, struct machine *mc, int64_t t);
/* machines: number of machines in the history; guest_only: recorded by `record --guest-only`. */
void steal_clock_add_notes(const struct steal_clock *s, const struct machine *mc, size_t machines, bool guest_only,
                           struct notes *notes);
void steal_clock_release(struct steal_clock *s);
