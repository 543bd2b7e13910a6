/* Jumps from a row to the cause of its interval: culprit, waker or host thread. A worker thread searches for the
 * culprit. */
#pragma once

#include "ui/core/app.h"

void follow_init(struct app *app);
void follow_release(struct app *app);
void follow_remap(struct app *app, const struct rows *old, const struct rows *new);
void follow_cause(struct app *app);
/* Selects the row of an actor that a pane lists, if the actor has a row; follow_back() returns to the previous row. */
void follow_to_actor(struct app *app, const struct actor *actor, const char *name);
void follow_push(struct app *app, struct row_id from);  /* records a row for follow_back() */
void follow_back(struct app *app);
bool follow_work(struct app *app);  /* true: the answer arrived and the culprit was selected */
void follow_drop(struct app *app);
