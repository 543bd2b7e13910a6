/* Another history in the place of the one that is shown: a guest's clock is moved by hand (:offset). */
#ifndef STEALSCOPE_UI_CORE_CLOCK_OFFSET_H
#define STEALSCOPE_UI_CORE_CLOCK_OFFSET_H

#include "ui/core/app.h"

void nudge_init(struct app *app, const struct ui_clocks *clocks);   /* clocks NULL: they cannot be moved */
void nudge_release(struct app *app);
void nudge_end(struct app *app);                                    /* they cannot be moved any more */
void nudge_met(struct app *app);                                    /* a history that was not shown before */
void nudge_start(struct app *app, const char *guest, int64_t ns);   /* that clock, by ns in all */
int nudge_save(struct app *app, const char *file, char *said, size_t size, struct error *err);
bool nudge_cancel(struct app *app);                                 /* false when there is nothing to cancel */
/* true: another history was made, to be shown instead.  The caller owns it. */
bool nudge_take(struct app *app, struct history **h, struct topo *topo, struct rows *rows, bool *changed);
bool nudge_able(const struct app *app);                             /* clocks can be moved */
bool nudge_busy(const struct app *app);
bool nudge_text(struct app *app, char *buf, size_t size);           /* how far it is; false when none is in the making */
const char *nudge_list(const struct app *app);                      /* whose clocks are moved: "Debian +3 us", or "" */

#endif
