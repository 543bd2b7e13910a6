/* Looking ahead at the host while its guests' clocks are still looked for: that needs no clock, and takes a tenth of a
 * second.  Whoever replays the traces takes over what was found. */
#ifndef STEALSCOPE_MODEL_LOSS_HOST_PRESCAN_H
#define STEALSCOPE_MODEL_LOSS_HOST_PRESCAN_H

#include "model/model.h"
#include "model/loss/initial_state.h"

/* Was it this trace that was looked at? */
bool model_look_is_of(const struct model_look *l, const struct trace *trace);
/* *start is the caller's, also after a failure; once only. */
int model_look_take(struct model_look *l, struct start *start, struct error *err);

#endif
