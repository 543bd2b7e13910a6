/* Prescan of the host in parallel with its guests' synchronization: it needs no clock, and takes about 0.1 s. The
 * model takes over the result. */
#pragma once

#include "model/model.h"
#include "model/loss/initial_state.h"

/* Returns true if the prescan has finished and belongs to this trace. */
bool host_prescan_matches(const struct host_prescan *l, const struct trace *trace);
/* Moves the result to *prescan, which the caller releases, even after a failure; call it once. Returns 0, or -1 with
 * *err set. */
int host_prescan_take(struct host_prescan *l, struct prescan *prescan, struct error *err);
