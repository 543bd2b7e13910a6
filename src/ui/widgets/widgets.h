/* Parts of a frame, one source file each. They draw the state; they change only scroll positions and caches. */
#pragma once

#include "ui/core/app.h"

/* Draws the window's rows. The ancestors of the selected row stay visible. */
int rows_draw(struct app *app, struct screen *s, int y, int height);  /* returns the first line without a row */
/* Finds the row on line y of the last frame. Returns false if there is none. */
bool rows_at(const struct app *app, int y, struct row_id *id);
/* Kinds of lanes: in a list; of a row, with names in its bars and lines at cursor and markers; of the selected row. */
enum lane_kind { LANE_LISTED, LANE_ROW, LANE_SELECTED };
/* Draws the cells of a row into the time area of line y. */
void rows_draw_lane(struct app *app, struct screen *s, int y, struct row_id row, enum lane_kind kind);
/* Draws the summed lane of a group of threads of one machine; threads > 0. */
void rows_draw_group_lane(struct app *app, struct screen *s, int y, const uint32_t *thread, size_t threads);
/* Finds the CPU of the host on which the row runs, or for which it waits, at the cursor: index into catalog->cpu; -1:
 * none, or unknown. */
int rows_host_cpu(const struct app *app, struct row_id row);

/* Formats the time that a row lost in the window, in the chosen unit: "47%". Writes "" if the row has no such value. */
void lost_text(struct app *app, struct row_id row, char *buf, size_t size);
const char *lost_heading(const struct app *app);
void lost_next_unit(struct app *app);

/* The map of the whole trace: one line with the lost time, and the window's position. */
void minimap_init(struct app *app);
void minimap_release(struct app *app);
void minimap_forget(struct app *app);
bool minimap_work(struct app *app, int64_t budget_ns, bool *changed);
int minimap_line(const struct app *app);  /* screen line of the map; -1: the screen is too small */
void minimap_draw(struct app *app, struct screen *s, int y);
int64_t minimap_time(const struct app *app, int column);  /* time of this column of the map */

/* Draws a histogram of lengths between the shortest and the longest length. Returns the columns used. */
int histogram_draw(const struct app *app, struct screen *s, int x, int y, int width, const uint64_t bin[LENGTH_BINS]);

void footer_draw(struct app *app, struct screen *s);
