/* Match of one guest trace with one VM of a machine: tests whether the guest runs in this VM, and estimates its clock
 * (private to sync/). */
#pragma once

#include "sync/assign/containment.h"
#include "sync/fit/piecewise_fit.h"
#include "sync/search/search.h"

#define SAMPLES 2

struct guest_view {
	const struct trace *trace;
	int64_t begin, end;
	bool has_plausible_times;                /* false: arithmetic with its times may overflow */
	bool is_duplicate;                       /* the same trace was given for another machine, perhaps as an excerpt */
	unsigned workers;                        /* threads shared by all guests */
	const atomic_size_t *pending_searches;               /* guests with a running or pending search */
	struct sync_event_set sync_events;
	struct sync_event_set sample[SAMPLES];  /* samples of sync_events of growing size, see sync_event_set_sample() */
	struct activity activity;
	bool has_activity;        /* activity is loaded (on first use) */
	const struct host_timeline *activity_host;  /* first machine that needed the activity: its min_gap_ns determines
	                                             * which events are skipped */
};

/* Reads the sync events; the fields above them must be set. */
int guest_view_load(struct guest_view *g, struct error *err);
/* Drops sync events with keys that no machine's set keeps (see sync_event_set_thin()), and draws the samples. */
void guest_view_thin(struct guest_view *g, unsigned key_bits);
/* Frees a search's data. A later search loads the activity again, and has no sync events. */
void guest_view_forget(struct guest_view *g);
void guest_view_release(struct guest_view *g);

/* A possible assignment: the clock of `guest` if the guest runs in `vm`. */
struct match {
	size_t guest, hypervisor, vm;      /* indices; vm == NO_INDEX: the machine's trace shows no VM */
	struct vm_candidate view;          /* copy of the VM with the vCPU numbers found by this match; owns its vcpu array */
	struct clock_candidate candidate;  /* clock, and evidence for and against it */
	enum sync_method method;
	struct pair_list events;  /* pairs of sync events, with verdicts */
	uint64_t unmatched;       /* sync events without a partner */
	int64_t error_width_events, error_width_containment;
	double outlier_share;     /* contradicting pairs / all pairs; may exceed 1, because a change of the clock supported
	                           * by few pairs counts as FIT_SUSPECTS contradictions */
	bool postponed;           /* not fitted, because the pairs conflict; usually the pairs of another VM agree, otherwise
	                           * match_fit() follows */
	struct containment containment;
	double inside_share;             /* inside / (inside + outside) of containment; -1: no event to judge */
};

/* Fits *m to the sync events, without containment. m->candidate.pairs is 0 if no pair exists. Reuses the memory of the
 * pairs in *m; the caller may reuse that memory if the match is postponed. */
int match_events(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
                 struct match *m, struct error *err);
/* Fits a postponed match, and computes its exact outlier share. */
int match_fit(const struct host_timeline *host, const struct guest_view *guest, struct match *m, struct error *err);
/* Fits *m by containment alone; steps: see search_containment(). */
int match_containment(const struct host_timeline *host, const struct vm_candidate *vm, struct guest_view *guest,
                      bool steps, struct match *m, struct error *err);
/* Adds pairs of containment to a match by sync events; leaves the match unchanged if both do not agree. bands: also
 * computes the error bounds by containment alone, which takes another fit. */
int match_both(const struct host_timeline *host, struct guest_view *guest, struct match *m, bool bands, struct error *err);
/* Counts the pairs that are violated by every clock within the error bounds. */
size_t match_count_violations(const struct pair_list *pairs, const struct clock_map *clock);
/* If pairs at an end of the list violate every clock within the bounds, and no pair closer to that end shows that they
 * are outliers, cuts *out to start (or end) at the next pair that the clock satisfies. Returns true if *out was cut. */
bool match_verified_range(const struct pair_list *pairs, const struct clock_map *clock, struct ns_interval *out);
/* Uses the given clock host = guest + offset. */
int match_offset(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
                 int64_t offset, struct match *m, struct error *err);
/* Sets *beats_shifted to true if clearly more events are in guest mode under this clock than under the same clock shifted
 * by a few ms. For a guest of another host all clocks fit about equally. */
int match_beats_shifted_clocks(const struct host_timeline *host, const struct guest_view *guest, struct match *m,
                               bool *beats_shifted, struct error *err);
/* Uses the clock computed from the TSC, which is exact if the TSC data is right. */
int match_tsc(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
              const struct clock_line *line, struct match *m, struct error *err);
/* Measure the containment of m->candidate.clock. match_measure_and_load() also loads the activity, in parallel. */
int match_measure_and_load(const struct host_timeline *host, struct guest_view *guest, struct match *m, struct error *err);
int match_measure(const struct host_timeline *host, const struct guest_view *guest, struct match *m, struct error *err);
/* Returns true if less than OUTLIER_SHARE_MAX of the pairs contradict the others. */
bool match_agrees(const struct match *m);
/* Returns true if enough events are contained and the pairs agree: no further search is needed. */
bool match_is_proven(const struct match *m);
/* Drops the pairs and a rejected match's clock, so that they contradict no other match. */
void match_drop_clock(struct match *m);
void match_release(struct match *m);
