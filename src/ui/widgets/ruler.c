#include "ui/widgets/ruler.h"

#define TICK_COLUMNS_MIN 10  /* smallest distance of two ticks, columns */

static int64_t floor_to(int64_t t, int64_t unit)
{
	int64_t remainder = t % unit;
	return t - (remainder < 0 ? remainder + unit : remainder);
}

int64_t ruler_tick(int64_t step, int cells)
{
	static const int64_t seconds[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200,
		86400 };
	int64_t min_tick;
	if (__builtin_mul_overflow(step, (int64_t)cells, &min_tick))
		min_tick = INT64_MAX;
	for (int64_t decade = 1; decade < NS_PER_S; decade *= 10)
		for (int64_t m = 1; m <= 5; m += m == 1 ? 1 : 3)
			if (decade * m >= min_tick)
				return decade * m;
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
		if (seconds[i] * NS_PER_S >= min_tick)
			return seconds[i] * NS_PER_S;
	int64_t tick = NS_PER_DAY;
	while (tick < min_tick && tick <= INT64_MAX / 2)
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

#define NS_PER_HOUR (3600 * NS_PER_S)

char *ruler_duration(char buf[TIME_TEXT], int64_t ns)
{
	if (ns >= 2 * NS_PER_DAY)
		snprintf(buf, TIME_TEXT, "%" PRId64 " d %" PRId64 " h", ns / NS_PER_DAY, ns % NS_PER_DAY / NS_PER_HOUR);
	else if (ns >= 3 * NS_PER_HOUR)
		snprintf(buf, TIME_TEXT, "%.*f h", ns < 10 * NS_PER_HOUR, (double)ns / (double)NS_PER_HOUR);
	else
		time_duration(buf, ns);
	return buf;
}

/* Formats seconds relative to the origin: "+0.1139". */
static void format_relative(char buf[TIME_TEXT], int64_t ns, int digits)
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
	format_relative(buf, from_origin(axis, t), digits);
	strncat(buf, " s", TIME_TEXT - strlen(buf) - 1);
	return buf;
}

/* Counts the leading characters of "12:03:04.5" that are the same for most ticks, up to a unit; they are shown
 * left of the ruler. */
static size_t shared_length(int64_t window_ns, int digits)
{
	return window_ns < NS_PER_S && digits ? 8 : window_ns < 60 * NS_PER_S ? 6 : 0;
}

/* Formats a tick of a window of several days: the date on the first tick of a day, the time of day on the others. */
static void day_label(char buf[TIME_TEXT], int64_t t, int64_t tick)
{
	char before[TIME_TEXT];
	time_day(buf, t);
	if (!strcmp(buf, time_day(before, t - tick))) {
		time_clock(buf, t, 0);
		buf[sizeof "12:03" - 1] = '\0';
	}
}

/* Formats a tick in a window of window_ns from t0: the parts of its time that are not in the common beginning, as ":48"
 * and ".5"; the whole time if it does not begin as t0. */
static void tick_label(char buf[TIME_TEXT], const struct time_axis *axis, int64_t t, int64_t tick, int64_t t0,
                       int64_t window_ns)
{
	char full[TIME_TEXT], first[TIME_TEXT];
	int digits = ruler_digits(tick);
	if (axis->format != TIME_WALL) {
		format_relative(buf, from_origin(axis, t), digits);
		return;
	}
	if (window_ns >= NS_PER_DAY) {
		day_label(buf, t, tick);
		return;
	}
	time_clock(full, t, digits);
	const size_t shared = shared_length(window_ns, digits), skip = shared == 6 ? 5 : shared;
	const bool same = strncmp(full, time_clock(first, t0, digits), shared) == 0;
	snprintf(buf, TIME_TEXT, "%s", same ? full + skip : full);
}

/* Draws the common beginning of the labels: "12:03:04." */
static void draw_prefix(struct screen *s, int left, int x, int y, const struct time_axis *axis, int64_t t0,
                        int64_t tick, int64_t window_ns, struct style style)
{
	char buf[TIME_TEXT];
	if (axis->format == TIME_WALL) {
		size_t shared = shared_length(window_ns, ruler_digits(tick));
		time_clock(buf, t0, 0);
		if (shared < strlen(buf))
			buf[shared] = '\0';
	} else {
		snprintf(buf, sizeof buf, "%s", axis->format == TIME_TRACE ? "trace, s" : "from A, s");
	}
	screen_text(s, left, y, x - left, style, buf);
}

/* Returns a distance of ticks with space for a label between two ticks. */
static int64_t choose_tick(const struct time_axis *axis, int64_t t0, int64_t step, int64_t window_ns)
{
	int64_t tick = ruler_tick(step, TICK_COLUMNS_MIN);
	char label[TIME_TEXT];
	tick_label(label, axis, t0, tick, t0, window_ns);
	int label_w = text_width(label) + 2;
	return label_w > TICK_COLUMNS_MIN ? ruler_tick(step, label_w) : tick;
}

/* Returns the column for the label of a tick in column `col`: after the tick, and after marks that would be drawn over
 * the label. -1: the label does not fit before column `end`. */
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
	int64_t window_ns;
	if (__builtin_mul_overflow(step, (int64_t)w, &window_ns))
		window_ns = INT64_MAX;
	int64_t base = axis->format == TIME_WALL ? 0 : axis->origin, tick = choose_tick(axis, t0, step, window_ns);
	draw_prefix(s, left, x, y, axis, t0, tick, window_ns, style);
	int64_t t = floor_to(from_origin(&(struct time_axis){ axis->format, base }, t0), tick);
	for (int count = 0; count < w + 2; count++, t += tick) {
		int64_t at;
		if (__builtin_add_overflow(t, base, &at) || at < t0)
			continue;
		int64_t col = (at - t0) / step, next = col + tick / step;
		if (col >= w)
			break;
		char label[TIME_TEXT];
		tick_label(label, axis, at, tick, t0, window_ns);
		screen_put(s, x + (int)col, y, '|', style);
		int to = label_column((int)col, text_width(label), next < w ? (int)next : w, marks);
		if (to >= 0)
			screen_phrases(s, x + to, y, w - to, style, label);
	}
}
