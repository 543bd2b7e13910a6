/* Which rules of the scheduler's model reproduce a recording.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_CALIBRATE_H
#define STEALSCOPE_COMPARE_WHATIF_CALIBRATE_H

#include "compare/whatif/scheduler_replay.h"

#define PHASES 4             /* of the tick */
#define MODELS (PHASES + 1)

/* How CPUs may be shared, what reproduces the recording best first. */
struct models {
	struct rules rules[MODELS];
	unsigned n;
	double unlike;           /* of the best: by how many half octaves the waits are longer or shorter */
	unsigned other;          /* the best of the other kind, with ticks or without; 0: there is none */
};

/* Cost: some seventy replays of a part of the window, in which there are 200,000 bursts at most. */
int models_find(const struct wants *w, struct models *models, struct error *err);
/* Of the time that was waited as recorded, the share that the last replay got wrong, name by name, as it is told: which of
 * those of one name waits, and which does not, is chance where they live shortly. */
double wants_missed(const struct wants *w);

#endif
