/* The plot is read from the middle: there is the clock, and rows are distances from it, in steps of 1, 2, 5. */
#include "cli/clock_plot.h"

#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"

#define ROWS 8  /* above and below the clock, at most */

static const char *const side_name[] = { [SYNC_ABOVE] = "+", [SYNC_BELOW] = "-" };

struct plot {
	const struct sync_delays *delays;
	int edge[2][SYNC_SPANS];  /* steps from the clock to the edges of the corridor; -1 = unknown */
	unsigned first, last;     /* steps that have a row: what is nearer is in the first one, what is farther in the last */
};

static void measure(struct plot *p, const struct sync_vm *vm)
{
	const struct trace_info *info = trace_info(vm->guest);
	const int64_t width = sync_span_ns(info);
	for (size_t i = 0; i < SYNC_SPANS; i++) {
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
		for (size_t i = 0; i < SYNC_SPANS; i++)
			if (p->edge[side][i] == (int)step || p->delays->seen[side][step][i])
				return true;
	return false;
}

/* From the nearest thing to the farthest one, as far as rows go. */
static void choose_steps(struct plot *p)
{
	for (p->first = 0; p->first + 1 < SYNC_DELAY_STEPS && !step_used(p, p->first);)
		p->first++;
	for (p->last = SYNC_DELAY_STEPS - 1; p->last > p->first && !step_used(p, p->last);)
		p->last--;
	if (p->last - p->first >= ROWS)
		p->last = p->first + ROWS - 1;
}

/* What has been seen at the row's distance. */
static unsigned seen_at(const struct plot *p, enum sync_side side, unsigned step, size_t span)
{
	unsigned from = step == p->first ? 0 : step, to = step == p->last ? SYNC_DELAY_STEPS - 1 : step, seen = 0;
	for (unsigned s = from; s <= to; s++)
		seen |= p->delays->seen[side][s][span];
	return seen;
}

static char letter(const struct plot *p, enum sync_side side, unsigned step, size_t span)
{
	unsigned seen = seen_at(p, side, step, span);
	int edge = p->edge[side][span], last = (int)p->last;
	if (seen & SYNC_SEEN_OUTLIER)
		return '!';
	if (seen & SYNC_SEEN_EVENT)
		return 'o';
	if (seen & SYNC_SEEN_CONTAINMENT)
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
	for (size_t i = 0; i < SYNC_SPANS; i++)
		putc(letter(p, side, step, i), out);
	fputs("|\n", out);
}

static void tell_bands(const struct sync_vm *vm, FILE *out)
{
	char events[TIME_TEXT] = "none", containment[TIME_TEXT] = "none";
	if (vm->band_events >= 0)
		time_duration(events, vm->band_events);
	if (vm->band_containment >= 0)
		time_duration(containment, vm->band_containment);
	fprintf(out, "band in mid-trace: by sync events alone %s, by containment alone %s\n", events, containment);
}

void clock_plot(const struct sync_vm *vm, FILE *out)
{
	struct plot p = { .delays = &vm->delays };
	char name[200], span[TIME_TEXT];
	const struct trace_info *info = trace_info(vm->guest);
	if (info->begin > info->end)
		return;  /* nothing was recorded */
	measure(&p, vm);
	choose_steps(&p);
	fprintf(out, "\nclock of %s over %s\n", text_escape(name, sizeof name, vm->name),
	        time_duration(span, info->end - info->begin));
	fputs(". may be true   - edge   o sync events   x containment   ! contradiction\n", out);
	for (unsigned step = p.last + 1; step-- > p.first;)
		draw_row(&p, SYNC_ABOVE, step, out);
	fprintf(out, "%13s |", "clock");
	for (size_t i = 0; i < SYNC_SPANS; i++)
		putc('=', out);
	fputs("|\n", out);
	for (unsigned step = p.first; step <= p.last; step++)
		draw_row(&p, SYNC_BELOW, step, out);
	if (vm->band_events >= 0 || vm->band_containment >= 0)
		tell_bands(vm, out);
}
