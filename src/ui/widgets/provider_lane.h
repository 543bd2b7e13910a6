/* Error bounds of the gaps in a provider row's lane. */
#pragma once

#include "ui/core/app.h"
#include "ui/widgets/cells.h"

/* Replaces the cells of the window that lie for more than half in the error bound of a gap of this vCPU by VIS_UNKNOWN. */
void provider_lane_mark_bounds(const struct app *app, uint32_t cpu, struct cell *cell, int n);
