/* What the replays of a recording say, each figure as an interval, and what makes it doubtful.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_WHATIF_REPORT_H
#define STEALSCOPE_COMPARE_WHATIF_WHATIF_REPORT_H

#include "compare/whatif/calibrate.h"
#include "compare/compare.h"
#include "compare/whatif/wait_graph.h"
#include "compare/whatif/scheduler_replay.h"
#include "compare/whatif/request_replay.h"

#define RUNS (2 * MODELS)    /* each in a closed and an open loop */
#define OPEN 1               /* the run of the best model in an open loop */

/* The replays: as it was, changed, and changed for all who may not be pinned. */
enum { AS_IT_WAS, CHANGED, FREED, VARIANTS };

/* One figure of all replays: [variant][run]. */
struct figure { double value[VARIANTS][RUNS]; };

/* What the vCPUs of a VM, or the threads of one name, waited. */
struct waiting {
	char subject[SUBJECT_TEXT];
	uint8_t kind;
	bool gone;
	double recorded;
	double held, held_then;    /* by quotas */
	struct figure replayed;
	double in[2][DIFF_SLICES]; /* ns with the changes, of the first runs */
	unsigned threads;
};

struct replays {
	struct wants *w;
	struct waiting *waiting;   /* by task, until they are joined */
	struct served_list *served;
	size_t untold;               /* figures that hang on who is pinned */
	char *vague;                 /* figures whose intervals say nothing; or NULL */
	int64_t *ends;               /* of each request: when it is answered with the changes, if all come by the clock;
	                                INT64_MIN: never */
	bool apart;                  /* see apply_lifts_quota() */
	unsigned runs;               /* with the changes; as it was, there are two */
	struct contests met[2];      /* as it was, and changed */
	double *again[VARIANTS][RUNS];  /* ns of each request; NAN: it does not end */
};

/* Appends rows to *out.  Joins r->waiting by name, so once. */
void outlook_waits(struct replays *r, struct whatif *out, struct notes *notes);
void outlook_requests(struct replays *r, struct whatif *out, struct notes *notes);
/* Notes, of which some make all of *out doubted: figures that are left out, weights that nobody tried, waits unlike those
 * recorded. */
void outlook_untold(const struct replays *r, const struct whatif_change *change, size_t changes, struct notes *notes);
void outlook_vague(struct replays *r, struct notes *notes);
void outlook_untried(const struct replays *r, struct whatif *out, struct notes *notes);
void outlook_unlike(const struct wants *w, double unlike, struct whatif *out, struct notes *notes);

#endif
