/* Goes to the longest gap of a row (command longest, option --longest). */
#pragma once

#include "ui/core/app.h"

/* Selects the row of a target (name, or TID; "": the selected row) and zooms to its longest gap in the whole history. If a
 * thread executes one vCPU, the row is that of the vCPU. Shows a message if there is no such row or gap. */
void longest_gap_show(struct app *app, const char *text);
/* Options --row and --at: selects the row (NULL: the selected one) and zooms to its gap at that time; without a gap there,
 * the cursor goes to the time. time: as for :goto; NULL: the time stays. */
void gap_place_show(struct app *app, const char *text, const char *time);
