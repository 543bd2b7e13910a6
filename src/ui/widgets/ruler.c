#include "ui/widgets/ruler.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define NS_PER_S INT64_C(1000000000)
#define DAY      (86400 * NS_PER_S)
#define LEAST_APART 10  /* columns from a tick to the next one */

static int64_t floor_to(int64_t t, int64_t unit)
{
	int64_t rest = t % unit;
	return t - (rest < 0 ? rest + unit : rest);
}

int64_t ruler_tick(int64_t step, int cells)
{
	static const int64_t seconds[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200,
		86400 };
	int64_t least;
	if (__builtin_mul_overflow(step, (int64_t)cells, &least))
		least = INT64_MAX;
	for (int64_t decade = 1; decade < NS_PER_S; decade *= 10)
		for (int64_t m = 1; m <= 5; m += m == 1 ? 1 : 3)
			if (decade * m >= least)
				return decade * m;
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
		if (seconds[i] * NS_PER_S >= least)
			return seconds[i] * NS_PER_S;
	int64_t tick = DAY;
	while (tick < least && tick <= INT64_MAX / 2)
		tick *= 2;
	return tick;
}

int ruler_digits(int64_t step)
{
	int digits = 9;
	for (; digits > 0 && step >= 10; step /= 10)
		digits--;
	return digits;
}

/* Seconds from the origin, e.g. "+0.1139". */
static void relative(char buf[TIME_TEXT], int64_t ns, int digits)
{
	uint64_t mag = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	uint64_t frac = mag % (uint64_t)NS_PER_S;
	for (int i = digits; i < 9; i++)
		frac /= 10;
	int n = snprintf(buf, TIME_TEXT, "%c%" PRIu64, ns < 0 ? '-' : '+', mag / (uint64_t)NS_PER_S);
	if (digits > 0 && digits <= 9 && n > 0)
		snprintf(buf + n, TIME_TEXT - (size_t)n, ".%0*" PRIu64, digits, frac);
}

static int64_t from_origin(const struct time_axis *axis, int64_t t)
{
	int64_t d;
	return __builtin_sub_overflow(t, axis->origin, &d) ? INT64_MAX : d;
}

char *ruler_time(char buf[TIME_TEXT], const struct time_axis *axis, int64_t t, int64_t step)
{
	int digits = ruler_digits(step);
	if (axis->format == TIME_WALL)
		return time_clock(buf, t, digits);
	relative(buf, from_origin(axis, t), digits);
	strncat(buf, " s", TIME_TEXT - strlen(buf) - 1);
	return buf;
}

/* Characters of "12:03:04.5" that are the same on all ticks of the window and stand before the ruler. */
static size_t shared_part(int64_t span, int digits)
{
	if (span < NS_PER_S && digits)
		return 8;
	if (span < 60 * NS_PER_S && digits)
		return 6;
	return span < 3600 * NS_PER_S ? 3 : 0;
}

/* Of a window of days: the day on its first tick, the time of day on the others. */
static void day_label(char buf[TIME_TEXT], int64_t t, int64_t tick)
{
	char before[TIME_TEXT];
	time_day(buf, t);
	if (!strcmp(buf, time_day(before, t - tick))) {
		time_clock(buf, t, 0);
		buf[sizeof "12:03" - 1] = '\0';
	}
}

/* What a tick says: the parts of its time that change within the window of `span` ns. */
static void tick_label(char buf[TIME_TEXT], const struct time_axis *axis, int64_t t, int64_t tick, int64_t span)
{
	char full[TIME_TEXT];
	int digits = ruler_digits(tick);
	if (axis->format != TIME_WALL) {
		relative(buf, from_origin(axis, t), digits);
		return;
	}
	if (span >= DAY) {
		day_label(buf, t, tick);
		return;
	}
	time_clock(full, t, digits);
	size_t skip = shared_part(span, digits);
	snprintf(buf, TIME_TEXT, "%s", strlen(full) > skip ? full + skip : full);
}

/* The shared beginning of the labels: "12:03:04." */
static void draw_prefix(struct screen *s, int left, int x, int y, const struct time_axis *axis, int64_t t0,
                        int64_t tick, int64_t span, struct style style)
{
	char buf[TIME_TEXT];
	if (axis->format == TIME_WALL) {
		size_t keep = shared_part(span, ruler_digits(tick));
		time_clock(buf, t0, 0);
		if (keep < strlen(buf))
			buf[keep] = '\0';
	} else {
		snprintf(buf, sizeof buf, "%s", axis->format == TIME_TRACE ? "trace, s" : "from A, s");
	}
	screen_text(s, left, y, x - left, style, buf);
}

/* Ticks so far apart that the label of each fits between it and the next one. */
static int64_t tick_of(const struct time_axis *axis, int64_t t0, int64_t step, int64_t span)
{
	int64_t tick = ruler_tick(step, LEAST_APART);
	char label[TIME_TEXT];
	tick_label(label, axis, t0, tick, span);
	int needs = text_width(label) + 2;
	return needs > LEAST_APART ? ruler_tick(step, needs) : tick;
}

/* Where the label of the tick in column `col` goes: behind that, and behind a mark that would stand upon it, which is drawn
 * later.  -1: moved out of a mark's way it has no room before the column `end`. */
static int label_column(int col, int width, int end, const struct ruler_marks *marks)
{
	int at = col + 1;
	for (size_t i = 0; i < marks->n; i++)
		if (marks->col[i] >= at && marks->col[i] < at + width) {
			at = marks->col[i] + 1;
			i = (size_t)-1;
		}
	return at == col + 1 || at + width < end ? at : -1;
}

void ruler_draw(struct screen *s, int left, int x, int y, int w, const struct time_axis *axis, int64_t t0,
                int64_t step, const struct ruler_marks *marks, struct style style)
{
	int64_t span;
	if (__builtin_mul_overflow(step, (int64_t)w, &span))
		span = INT64_MAX;
	int64_t base = axis->format == TIME_WALL ? 0 : axis->origin, tick = tick_of(axis, t0, step, span);
	draw_prefix(s, left, x, y, axis, t0, tick, span, style);
	int64_t t = floor_to(from_origin(&(struct time_axis){ axis->format, base }, t0), tick);
	for (int guard = 0; guard < w + 2; guard++, t += tick) {
		int64_t at;
		if (__builtin_add_overflow(t, base, &at) || at < t0)
			continue;
		int64_t col = (at - t0) / step, next = col + tick / step;
		if (col >= w)
			break;
		char label[TIME_TEXT];
		tick_label(label, axis, at, tick, span);
		screen_put(s, x + (int)col, y, '|', style);
		int to = label_column((int)col, text_width(label), next < w ? (int)next : w, marks);
		if (to >= 0)
			screen_phrases(s, x + to, y, w - to, style, label);
	}
}
