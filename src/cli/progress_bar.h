/* Progress bar with rate and ETA on stderr, if it is a terminal. Ctrl-C cancels the work. */
#pragma once

#include <stdint.h>

#include "base/progress.h"
#include "index/index.h"

struct progress_bar {
	const char *phase;  /* name of the phase that was drawn last; NULL: none */
	const enum build_phase *step;  /* current phase of a build; NULL: not a build */
	int64_t phase_start;  /* monotonic ns */
	int64_t drawn;      /* time of the last drawing, monotonic ns; 0: never */
	int tty;            /* stderr is a terminal */
};

#define PROGRESS_STEPS PHASE_WRITE  /* phases that are numbered; the last phase is too short */

/* Installs signal handlers until progress_bar_end(): SIGINT cancels the work. Returns the callback for the work. */
struct progress progress_bar_begin(struct progress_bar *bar, const enum build_phase *step);
void progress_bar_end(struct progress_bar *bar);
