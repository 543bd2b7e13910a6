/* Changes, made to what threads wanted.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_APPLY_CHANGES_H
#define STEALSCOPE_COMPARE_WHATIF_APPLY_CHANGES_H

#include "compare/whatif/scheduler_replay.h"

/* Does a change say where the task may run? */
bool apply_places(const struct replay_task *t, const struct whatif_change *change, size_t changes);
/* A quota that never held anybody back tells nothing: -1 and *err. */
int apply_check_quotas(const struct wants *w, const struct whatif_change *change, size_t changes, struct error *err);
/* Requests that came one upon the other because a quota held back who answers them come apart without it; how far, the
 * recording does not tell. */
bool apply_lifts_quota(const struct whatif_change *change, size_t changes);
void apply_changes(struct wants *w, const struct whatif_change *change, size_t changes);
/* Behind that: of who was seen on one CPU alone, and had no reason to leave it, nobody knows whether it is pinned.  With a
 * new CPU it may go there in one replay, and not in the other.  False: there is no such thread. */
bool apply_free(struct wants *w, const struct whatif_change *change, size_t changes);

#endif
