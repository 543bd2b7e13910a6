/* A progress bar with rate and ETA on stderr when that is a terminal; Ctrl-C cancels the work, not the shell. */
#ifndef STEALSCOPE_CLI_PROGRESS_BAR_H
#define STEALSCOPE_CLI_PROGRESS_BAR_H

#include <stdint.h>

#include "base/progress.h"
#include "index/index.h"

struct progress_bar {
	const char *phase;  /* shown last */
	const enum build_phase *step;  /* of a build; NULL: there is one step */
	int64_t begun;      /* ns, monotonic: of the phase */
	int64_t drawn;      /* ns, monotonic: of the last drawing */
	int tty;            /* draw at all */
};

#define PROGRESS_STEPS PHASE_WRITE  /* of a build that are shown: the last one is short */

/* From here to progress_bar_end(), SIGINT asks for cancellation. */
struct progress progress_bar_begin(struct progress_bar *bar, const enum build_phase *step);
void progress_bar_end(struct progress_bar *bar);

#endif
