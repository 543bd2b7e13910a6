/* Control groups of the host's threads (groups.c). */
#pragma once

#include "sim.h"

bool group_is_throttled(const struct quota_group *g);  /* NULL: false */
/* Charges CPU time to a group and the groups above. Returns true if a quota is used up now. */
bool group_charge(struct quota_group *g, int64_t ns);
/* Called when a thread waits for a CPU: writes when its group keeps it off. */
void group_limit(struct cpu *c, struct thread *t);
void group_throttled(struct cpu *c, struct quota_group *g);    /* Called when group_charge() returned true. */
void group_unthrottled(struct cpu *c, struct quota_group *g);  /* Called at the end of each period, on CPU c. */
void groups_sample(struct sim *s);
void groups_end(struct sim *s);                    /* Ends the truth. */
void groups_write(FILE *f, const struct sim *s);   /* Writes the groups into the session file, as a part of the host. */
void groups_move_thread(struct sim *s);  /* Moves a random thread to another group. */
