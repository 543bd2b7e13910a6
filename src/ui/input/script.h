/* Running the viewer without a person: scripts and benchmarks. */
#ifndef STEALSCOPE_UI_INPUT_SCRIPT_H
#define STEALSCOPE_UI_INPUT_SCRIPT_H

#include "ui/core/viewer.h"

/* Each line of the file is
 *   :command            as typed on the command line (":screen FILE" keeps the screen as text)
 *   key > <Enter>       keys, with spaces between them ignored
 *   >j<C-d>             keys; a space is a space
 *   # comment           or an empty line
 * Stops at the first line that ends in an error, and tells it; and at q. */
int script_run(struct app *app, const char *file, struct error *err);

/* Draws about `frames` frames for each way of moving (panning, rows, zooming, gaps, folding, sorting, searching) on a
 * terminal of $TERM (or xterm-256color) that writes to a file; prints the time from the key to the last byte and the
 * bytes of each, and the memory used.  See bench.c. */
int bench_run(struct app *app, unsigned frames, struct error *err);

#endif
