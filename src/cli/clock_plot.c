/* Plots the distance of the error bounds and of sync events from the estimated clock, which is the middle row. Rows are
 * steps of distance: 1, 2, 5, ... */
#include "cli/clock_plot.h"

#include "base/base.h"

#define ROWS 8  /* maximum rows above and below the clock */

static const char *const side_name[] = { [SYNC_ABOVE] = "+", [SYNC_BELOW] = "-" };

struct plot {
	const struct sync_delays *delays;
	int edge[2][SYNC_DELAY_SLICES];  /* step of the error bound on each side of the clock; -1: unknown */
	unsigned first, last;     /* steps of the first and last row; smaller and larger distances are drawn in these rows */
};

static void measure_plot(struct plot *p, const struct sync_vm *vm)
{
	const struct trace_info *info = trace_info(vm->guest);
	const int64_t width = sync_delay_slice_ns(info);
	for (size_t i = 0; i < SYNC_DELAY_SLICES; i++) {
		int64_t low, high, t = info->begin + width * (int64_t)i + width / 2;
		bool known = clock_map_bounds(&vm->clock, t, &low, &high);
		int64_t at = clock_map_at(&vm->clock, t);
		p->edge[SYNC_ABOVE][i] = known ? (int)sync_delay_step(high - at) : -1;
		p->edge[SYNC_BELOW][i] = known ? (int)sync_delay_step(at - low) : -1;
	}
}

static bool step_used(const struct plot *p, unsigned step)
{
	for (int side = SYNC_ABOVE; side <= SYNC_BELOW; side++)
		for (size_t i = 0; i < SYNC_DELAY_SLICES; i++)
			if (p->edge[side][i] == (int)step || p->delays->seen[side][step][i])
				return true;
	return false;
}

/* Chooses the steps from the smallest distance on, at most ROWS. */
static void choose_steps(struct plot *p)
{
	for (p->first = 0; p->first + 1 < SYNC_DELAY_STEPS && !step_used(p, p->first);)
		p->first++;
	for (p->last = SYNC_DELAY_STEPS - 1; p->last > p->first && !step_used(p, p->last);)
		p->last--;
	if (p->last - p->first >= ROWS)
		p->last = p->first + ROWS - 1;
}

/* Returns the kinds of sync pairs (SYNC_PAIR_...) in a cell. */
static unsigned pairs_at(const struct plot *p, enum sync_side side, unsigned step, size_t column)
{
	unsigned from = step == p->first ? 0 : step, to = step == p->last ? SYNC_DELAY_STEPS - 1 : step, pairs = 0;
	for (unsigned s = from; s <= to; s++)
		pairs |= p->delays->seen[side][s][column];
	return pairs;
}

static char cell_letter(const struct plot *p, enum sync_side side, unsigned step, size_t column)
{
	unsigned pairs = pairs_at(p, side, step, column);
	int edge = p->edge[side][column], last = (int)p->last;
	if (pairs & SYNC_PAIR_OUTLIER)
		return '!';
	if (pairs & SYNC_PAIR_EVENT)
		return 'o';
	if (pairs & SYNC_PAIR_CONTAINMENT)
		return 'x';
	if (edge < 0)
		return '?';
	edge = edge > last ? last : edge;
	return edge > (int)step ? '.' : edge == (int)step ? '-' : ' ';
}

static void draw_row(const struct plot *p, enum sync_side side, unsigned step, FILE *out)
{
	char label[TIME_TEXT], with_sign[TIME_TEXT + 4];
	bool more = step == p->last && step + 1 < SYNC_DELAY_STEPS;
	snprintf(with_sign, sizeof with_sign, "%s%s%s", side_name[side], time_duration(label, sync_delay_bound(step)),
	         more ? " .." : "");
	fprintf(out, "%13s |", with_sign);
	for (size_t i = 0; i < SYNC_DELAY_SLICES; i++)
		putc(cell_letter(p, side, step, i), out);
	fputs("|\n", out);
}

static void print_error_bounds(const struct sync_vm *vm, FILE *out)
{
	char events[TIME_TEXT] = "none", containment[TIME_TEXT] = "none";
	if (vm->error_width_events >= 0)
		time_duration(events, vm->error_width_events);
	if (vm->error_width_containment >= 0)
		time_duration(containment, vm->error_width_containment);
	fprintf(out, "error bound mid-trace: sync events alone %s, containment alone %s\n", events, containment);
}

void clock_plot(const struct sync_vm *vm, FILE *out)
{
	struct plot p = { .delays = &vm->delays };
	char name[200], column[TIME_TEXT];
	const struct trace_info *info = trace_info(vm->guest);
	if (info->begin > info->end)
		return;  /* nothing was recorded */
	measure_plot(&p, vm);
	choose_steps(&p);
	fprintf(out, "\nclock of %s over %s\n", text_escape(name, sizeof name, vm->name),
	        time_duration(column, info->end - info->begin));
	fputs(". may be true   - edge   o sync events   x containment   ! contradiction\n", out);
	for (unsigned step = p.last + 1; step-- > p.first;)
		draw_row(&p, SYNC_ABOVE, step, out);
	fprintf(out, "%13s |", "clock");
	for (size_t i = 0; i < SYNC_DELAY_SLICES; i++)
		putc('=', out);
	fputs("|\n", out);
	for (unsigned step = p.first; step <= p.last; step++)
		draw_row(&p, SYNC_BELOW, step, out);
	if (vm->error_width_events >= 0 || vm->error_width_containment >= 0)
		print_error_bounds(vm, out);
}
