/* The time ruler: where ticks go and what they say; and how a point in time is written. */
#ifndef STEALSCOPE_UI_WIDGETS_RULER_H
#define STEALSCOPE_UI_WIDGETS_RULER_H

#include <stdint.h>

#include "base/timefmt.h"
#include "ui/terminal/screen.h"

enum time_format { TIME_WALL, TIME_RELATIVE, TIME_TRACE, TIME_FORMATS };

/* How times are written: wall clock, seconds from `origin` (marker A, or the start of the trace). */
struct time_axis {
	enum time_format format;
	int64_t origin;   /* ns; for TIME_RELATIVE and TIME_TRACE */
};

/* Ticks every *tick ns, a round number, at least `cells` columns of `step` ns apart. */
int64_t ruler_tick(int64_t step, int cells);
/* Digits after the second that tell multiples of `step` apart, 0 .. 9. */
int ruler_digits(int64_t step);
/* "12:03:04.1139" or "+0.1139 s", to the precision of `step`. */
char *ruler_time(char buf[TIME_TEXT], const struct time_axis *axis, int64_t t, int64_t step);
/* Columns of the window in which a mark will stand upon the ruler: no label goes there. */
struct ruler_marks {
	size_t n;
	int col[3];
};

/* Draws the ruler into columns x .. x + w - 1 of line y: a bar at each tick, its label, whole or not at all, behind it.
 * The part that all labels share stands at column `left`. */
void ruler_draw(struct screen *s, int left, int x, int y, int w, const struct time_axis *axis, int64_t t0,
                int64_t step, const struct ruler_marks *marks, struct style style);

#endif
