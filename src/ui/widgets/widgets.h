/* Parts of the frame, one file each.  They draw the state and change none of it but scroll positions and caches. */
#ifndef STEALSCOPE_UI_WIDGETS_WIDGETS_H
#define STEALSCOPE_UI_WIDGETS_WIDGETS_H

#include "ui/core/app.h"

/* The rows of the window, with the parents of the selected one in sight. */
void rows_draw(struct app *app, struct screen *s, int y, int height);
/* The row on line y of the last frame; false: there is none. */
bool rows_at(const struct app *app, int y, struct row_id *id);
/* The cells of a row in the time area of line y, the cursor in it if it is `selected`. */
void rows_draw_lane(struct app *app, struct screen *s, int y, struct row_id row, bool selected);

/* "47%": how much a row lost in the window, in the chosen unit; "" where that has no meaning. */
void figure_text(struct app *app, struct row_id row, char *buf, size_t size);
/* What stands behind a share of the time wanted: "%", or "?" where more is unknown than is known to have been wanted. */
const char *figure_per(const struct demand *d);
const char *figure_heading(const struct app *app);
void figure_next_unit(struct app *app);

/* Waits for a CPU over the whole trace, in one line, and where the window is. */
void minimap_init(struct app *app);
void minimap_release(struct app *app);
void minimap_forget(struct app *app);
bool minimap_work(struct app *app, int64_t budget_ns, bool *changed);
int minimap_line(const struct app *app);  /* where it is; -1: the screen has no room for it */
void minimap_draw(struct app *app, struct screen *s, int y);
int64_t minimap_time(const struct app *app, int column);  /* that this column stands for */

/* Bars of lengths, with the shortest and the longest beside them; returns the columns used. */
int histogram_draw(const struct app *app, struct screen *s, int x, int y, int width, const uint64_t bin[LENGTH_BINS]);

void foot_draw(struct app *app, struct screen *s);

#endif
