/* The time ruler: ticks and their labels. Also formats times for the whole screen. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"

enum time_format { TIME_WALL, TIME_RELATIVE, TIME_TRACE, TIME_FORMATS };

/* Format of times: wall clock, or seconds since `origin` (marker A, or the trace's start). */
struct time_axis {
	enum time_format format;
	int64_t origin;   /* start of relative times, ns; used by TIME_RELATIVE and TIME_TRACE */
};

/* Returns a round distance of ticks, ns, that is at least `cells` columns of `step` ns. */
int64_t ruler_tick(int64_t step, int cells);
/* Counts the decimals of a second needed to distinguish multiples of `step`, 0 .. 9. */
int ruler_digits(int64_t step);
/* Formats a duration like time_duration(), a long one in days and hours: "3 d 4 h", "3.6 h". */
char *ruler_duration(char buf[TIME_TEXT], int64_t ns);
/* Formats a time with the precision of `step`: "12:03:04.1139" or "+0.1139 s". */
char *ruler_time(char buf[TIME_TEXT], const struct time_axis *axis, int64_t t, int64_t step);
/* Columns in which marks will be drawn over the ruler, so that labels avoid them. */
struct ruler_marks {
	size_t n;
	int col[3];
};

/* Draws the ruler into columns x .. x + w - 1 of line y: a bar at each tick, followed by its label if that fits. The
 * common beginning of the labels is drawn at column `left`. */
void ruler_draw(struct screen *s, int left, int x, int y, int w, const struct time_axis *axis, int64_t t0,
                int64_t step, const struct ruler_marks *marks, struct style style);
