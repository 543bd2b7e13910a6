/* Runs the viewer without a user, for scripts and benchmarks. */
#pragma once

#include "ui/core/viewer.h"

/* Runs a script's lines:
 *
 *   :command            as typed on the command line (":screen FILE" saves the screen as text)
 *   key > <Enter>       keys; spaces between them are ignored
 *   >j<C-d>             keys; a space is a key
 *   # comment           or an empty line
 *
 * Stops at the first line that fails, with an error that contains its number, or when a line quits the viewer. Returns 0,
 * or -1. */
int script_run(struct app *app, const char *file, struct error *err);

/* Runs the benchmark: draws about `frames` frames for each kind of movement (panning, rows, zooming, gaps, folding,
 * sorting, searching) on a terminal of type $TERM (or xterm-256color) that writes to a file. Prints the time from key to
 * last byte, the bytes sent per frame, and the memory used. See bench.c. Returns 0, or -1. */
int bench_run(struct app *app, unsigned frames, struct error *err);
