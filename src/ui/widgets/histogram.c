/* Draws lengths as bars: one column for each power of two between the shortest and the longest; heights are relative to
 * the highest bar. */
#include "ui/widgets/widgets.h"

#include "base/timefmt.h"

int histogram_draw(const struct app *app, struct screen *s, int x, int y, int width, const uint64_t bin[LENGTH_BINS])
{
	struct style style = app->appearance.palette.part[PART_RULER], bars = app->appearance.palette.part[PART_STEAL];
	unsigned first = LENGTH_BINS, last = 0;
	uint64_t highest = 0;
	char from[TIME_TEXT], to[TIME_TEXT];
	for (unsigned b = 0; b < LENGTH_BINS; b++) {
		highest = bin[b] > highest ? bin[b] : highest;
		first = bin[b] && first == LENGTH_BINS ? b : first;
		last = bin[b] ? b : last;
	}
	if (!highest)
		return 0;
	int begin = x, end = x + width;
	x += screen_printf(s, x, y, end - x, style, "%s ", time_duration(from, first ? INT64_C(1) << first : 0));
	for (unsigned b = first; b <= last && x < end; b++)
		screen_put(s, x++, y, appearance_bar(app, (double)bin[b] / (double)highest), bars);
	x += screen_printf(s, x, y, end - x, style, " %s", time_duration(to, (INT64_C(1) << last) - 1 + (INT64_C(1) << last)));
	return x - begin;
}
