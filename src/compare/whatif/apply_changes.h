/* Applies hypothetical changes to the demand of the host's threads. Private to compare/. */
#pragma once

#include "compare/whatif/scheduler_replay.h"

/* Returns true if a change sets the CPUs that the task may use. */
bool apply_sets_cpus(const struct replay_task *t, const struct whatif_change *change, size_t changes);
/* Fails if a change lifts a quota that never throttled its target in the window: such a quota is not visible in a
 * recording. Returns 0, or -1 with *err. */
int apply_check_quotas(const struct host_demand *d, const struct whatif_change *change, size_t changes, struct error *err);
/* Returns true if a change lifts a quota. Then requests that queued because their server was throttled would spread out
 * by an unknown amount. */
bool apply_lifts_quota(const struct whatif_change *change, size_t changes);
void apply_changes(struct host_demand *d, const struct whatif_change *change, size_t changes);
/* Allows tasks of which pinning is unknown (task_may_be_pinned) to use the added CPU, for a second replay of the same
 * changes. Returns false if there is no added CPU or no such task. */
bool apply_unpin(struct host_demand *d, const struct whatif_change *change, size_t changes);
