/* Results of the replays as intervals, and notes about their limits. Private to compare/. */
#pragma once

#include "compare/whatif/calibrate.h"
#include "compare/compare.h"
#include "compare/whatif/wait_graph.h"
#include "compare/whatif/scheduler_replay.h"
#include "compare/whatif/request_replay.h"

#define RUNS (2 * MODELS)    /* each model in a closed and in an open loop */
#define OPEN 1               /* index of the run of the best model in an open loop */

/* The replay's variants: without changes, with the changes, and with the changes if tasks of unknown pinning are
 * movable. */
enum { UNCHANGED, CHANGED, UNPINNED, VARIANTS };

/* Results of all replays for one quantity. */
struct replay_values { double value[VARIANTS][RUNS]; };

/* Waits of a VM's vCPUs, or of the host threads of one name. */
struct waiting {
	char target[TARGET_TEXT];
	uint8_t kind;
	bool removed;
	double recorded;
	double throttled, throttled_changed;  /* time off the CPU because of quotas; share of a CPU */
	struct replay_values replayed;
	double slice_waits[2][DIFF_SLICES];  /* ns waited with the changes, by the window's slice, in the first two runs */
	unsigned threads;
};

struct replays {
	struct host_demand *w;
	struct waiting *waiting;  /* by task, until waits are merged by name */
	struct replayed_list *requests;
	size_t omitted;          /* rows that are omitted because they depend on pinning */
	char *vague;             /* list of rows with too wide intervals, for a note; NULL: none */
	int64_t *ends;           /* by request: time at which it ends with the changes in an open loop; INT64_MIN: never */
	bool lifts_quota;        /* a change lifts a quota */
	unsigned runs;           /* runs of each variant with changes; UNCHANGED has two runs */
	struct wait_graph waits_for[2];  /* waits without and with the changes */
	double *latency[VARIANTS][RUNS];  /* by request, ns; NAN: it does not end */
};

/* Append rows to *out. whatif_report_waits() merges r->waiting by name: call it once. */
void whatif_report_waits(struct replays *r, struct whatif *out, struct notes *notes);
void whatif_report_requests(struct replays *r, struct whatif *out, struct notes *notes);
/* Add notes about omitted rows, weights that were not observed, and waits unlike the recorded ones. Those with `out` set
 * its weights_uncertain. */
void whatif_note_omitted(const struct replays *r, const struct whatif_change *change, size_t changes, struct notes *notes);
/* Adds notes about CPUs to which threads are pinned while another CPU of the core is busy. */
void whatif_note_siblings(const struct host_demand *d, const struct whatif_change *change, size_t changes,
                          struct notes *notes);
void whatif_note_vague(struct replays *r, struct notes *notes);
void whatif_note_untested(const struct replays *r, struct whatif *out, struct notes *notes);
void whatif_note_wait_lengths(const struct host_demand *d, double length_mismatch, struct whatif *out, struct notes *notes);
