/* Control groups of the host's threads (groups.c). */
#pragma once

#include "sim.h"

bool group_keeps_off(const struct thread *t);  /* Returns true if a quota ends its time on a CPU, or denies it one. */
/* Charges CPU time to a group and the groups above. Returns true if a quota is used up now. */
bool group_charge(struct quota_group *g, int64_t ns);
/* Called when a thread waits for a CPU: writes when its group keeps it off. */
void group_limit(struct cpu *c, struct thread *t);
/* --quota-facts queue: called when a thread that wants to run leaves CPU c, before and after its switch. */
void group_throttle_queue(struct cpu *c, const struct thread *t);
void group_limit_queue(struct cpu *c, const struct thread *t);
void group_requeued(struct cpu *c, struct thread *t);  /* Called when a thread has another CPU or group. */
void group_throttled(struct cpu *c, struct quota_group *g);    /* Called when group_charge() returned true. */
void group_unthrottled(struct cpu *c, struct quota_group *g);  /* Called at the end of each period, on CPU c. */
void groups_sample(struct sim *s);
void groups_end(struct sim *s);                    /* Ends the truth. */
void groups_write(FILE *f, const struct sim *s);   /* Writes the groups into the session file, as a part of the host. */
void groups_move_thread(struct sim *s);  /* Moves a random thread to another group. */
