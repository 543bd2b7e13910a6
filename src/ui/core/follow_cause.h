/* From a row to the cause of its interval: culprit, waker, host thread.  A culprit is asked for. */
#ifndef STEALSCOPE_UI_CORE_FOLLOW_CAUSE_H
#define STEALSCOPE_UI_CORE_FOLLOW_CAUSE_H

#include "ui/core/app.h"

void follow_init(struct app *app);
void follow_release(struct app *app);
void follow_carry(struct app *app, const struct rows *was, const struct rows *is);
void follow_cause(struct app *app);
/* To the row of a thief or victim that a pane names, if one stands for it; follow_back() comes from there. */
void follow_party(struct app *app, const struct party *who, const char *name);
void follow_leave(struct app *app, struct row_id from);  /* follow_back() goes there again */
void follow_back(struct app *app);
bool follow_work(struct app *app);  /* true when the culprit has come to be known */
void follow_drop(struct app *app);

#endif
