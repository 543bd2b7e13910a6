#include "cli/clock_plot.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"

#define PLOT_COLS 64   /* columns of the plot itself; the labels stand left of it */
#define PLOT_HALF 6    /* rows above and below the clock */

struct corridor {
	int64_t above[PLOT_COLS], below[PLOT_COLS];  /* ns from the clock to the edges; -1 = unknown */
	int64_t widest;                              /* of all */
};

static void measure(const struct sync_vm *vm, struct corridor *c)
{
	const struct trace_info *info = trace_info(vm->guest);
	int64_t span = info->end - info->begin;
	c->widest = 1;
	for (int i = 0; i < PLOT_COLS; i++) {
		int64_t low, high, t = info->begin + span / (PLOT_COLS - 1) * i;
		c->above[i] = c->below[i] = -1;
		if (!clock_map_bounds(&vm->clock, t, &low, &high))
			continue;
		int64_t at = clock_map_at(&vm->clock, t);
		c->above[i] = high > at ? high - at : 0;
		c->below[i] = at > low ? at - low : 0;
		c->widest = c->above[i] > c->widest ? c->above[i] : c->widest;
		c->widest = c->below[i] > c->widest ? c->below[i] : c->widest;
	}
}

/* The letter of a row at distance `from`..`to` ns from the clock: inside the corridor, its edge, or outside. */
static char letter(int64_t edge, int64_t from, int64_t to)
{
	if (edge < 0)
		return '?';
	return edge > to ? '.' : edge >= from ? '-' : ' ';
}

static void draw_row(const struct corridor *c, const int64_t *edge, int row, char sign, FILE *out)
{
	char label[TIME_TEXT], signed_label[TIME_TEXT + 1];
	int64_t from = c->widest * row / PLOT_HALF, to = c->widest * (row + 1) / PLOT_HALF;
	snprintf(signed_label, sizeof signed_label, "%c%s", sign, time_duration(label, to));
	fprintf(out, "%10s |", signed_label);
	for (int i = 0; i < PLOT_COLS; i++)
		putc(letter(edge[i], from, row == PLOT_HALF - 1 ? to + 1 : to), out);
	fputs("|\n", out);
}

void clock_plot(const struct sync_vm *vm, FILE *out)
{
	struct corridor c;
	char name[200], span[TIME_TEXT];
	const struct trace_info *info = trace_info(vm->guest);
	measure(vm, &c);
	fprintf(out, "\ncorridor of the clock of %s (the true one lies within) over %s\n",
	        text_escape(name, sizeof name, vm->name), time_duration(span, info->end - info->begin));
	for (int row = PLOT_HALF - 1; row >= 0; row--)
		draw_row(&c, c.above, row, '+', out);
	fprintf(out, "%10s |", "clock");
	for (int i = 0; i < PLOT_COLS; i++)
		putc('=', out);
	fputs("|\n", out);
	for (int row = 0; row < PLOT_HALF; row++)
		draw_row(&c, c.below, row, '-', out);
	if (vm->band_events >= 0 || vm->band_containment >= 0) {
		char events[TIME_TEXT] = "none", containment[TIME_TEXT] = "none";
		if (vm->band_events >= 0)
			time_duration(events, vm->band_events);
		if (vm->band_containment >= 0)
			time_duration(containment, vm->band_containment);
		fprintf(out, "band in mid-trace: by sync events alone %s, by containment alone %s\n", events, containment);
	}
}
