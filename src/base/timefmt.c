
#include <time.h>

#include "base/base.h"
#include "base/int128.h"

static const struct unit { const char *name; int64_t ns; } units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_S }, { "min", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
};

char *time_duration(char buf[TIME_TEXT], int64_t ns)
{
	uint64_t mag = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	const char *sign = ns < 0 ? "-" : "";
	size_t u = 0;
	/* 999.5 would round to 1000: use the next unit. */
	while (u < 3 && (double)mag >= 999.5 * (double)units[u].ns)
		u++;
	double v = (double)mag / (double)units[u].ns;
	int digits = u == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
	snprintf(buf, TIME_TEXT, "%s%.*f %s", sign, digits, v, units[u].name);
	return buf;
}

char *time_exact(char buf[TIME_TEXT], int64_t ns)
{
	size_t u = sizeof units / sizeof *units - 1;
	while (ns % units[u].ns != 0)
		u--;
	if (ns == 0)
		snprintf(buf, TIME_TEXT, "0");
	else
		snprintf(buf, TIME_TEXT, "%+" PRId64 " %s", ns / units[u].ns, units[u].name);
	return buf;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static char *format_tm(char buf[TIME_TEXT], const char *fmt, const char *zone, int64_t t, int digits)
{
	time_t s = (time_t)floor_div(t, NS_PER_S);
	int64_t frac = t - (int64_t)s * NS_PER_S;
	struct tm tm;
	if (!localtime_r(&s, &tm)) {
		snprintf(buf, TIME_TEXT, "%" PRId64, t);
		return buf;
	}
	size_t n = strftime(buf, TIME_TEXT - 17, fmt, &tm);
	if (digits > 0) {
		for (int i = digits; i < 9; i++)
			frac /= 10;
		n += (size_t)snprintf(buf + n, TIME_TEXT - n, ".%0*" PRId64, digits, frac);
	}
	strftime(buf + n, TIME_TEXT - n, zone, &tm);
	return buf;
}

char *time_clock(char buf[TIME_TEXT], int64_t t, int digits)
{
	return format_tm(buf, "%H:%M:%S", "", t, digits);
}

char *time_date(char buf[TIME_TEXT], int64_t t, int digits)
{
	return format_tm(buf, "%Y-%m-%d %H:%M:%S", " %z", t, digits);
}

char *time_day(char buf[TIME_TEXT], int64_t t)
{
	return format_tm(buf, "%m-%d", "", t, 0);
}

/* Parses a decimal number with up to 9 digits after the point; *out: the number times scale, exact. Returns the rest of
 * the text, or NULL if it is invalid. */
static const char *parse_decimal(const char *s, int64_t scale, int64_t *out)
{
	const char *start = s;
	int128 v = 0;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (*s - '0');
		if (v > INT64_MAX)
			return NULL;
	}
	v *= scale;
	size_t digits = (size_t)(s - start);
	if (*s == '.') {
		int128 num = 0, den = 1;
		for (s++; *s >= '0' && *s <= '9'; s++, digits++) {
			if (den < (int128)NS_PER_S * NS_PER_S) {
				num = num * 10 + (*s - '0');
				den *= 10;
			}
		}
		v += scale * num / den;
	}
	if (digits == 0 || v > INT64_MAX)
		return NULL;
	*out = (int64_t)v;
	return s;
}

static int64_t parse_unit(const char *s)
{
	while (*s == ' ')
		s++;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(s, units[i].name) == 0)
			return units[i].ns;
	return *s == '\0' ? 1 : 0;
}

/* Parses a number with an optional unit; without one it is ns. */
static bool parse_ns(const char *text, int64_t *ns)
{
	bool negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	int64_t ignored;
	const char *rest = parse_decimal(text, 1, &ignored);
	int64_t scale = rest ? parse_unit(rest) : 0;
	if (scale == 0 || !parse_decimal(text, scale, ns))
		return false;
	if (negative)
		*ns = -*ns;
	return true;
}

bool time_parse_duration(const char *text, int64_t *ns)
{
	return parse_ns(text, ns) && (*ns == 0 || text[strspn(text, "+-.0123456789 ")] != '\0');
}

bool time_parse_offset(const char *text, int64_t *ns)
{
	return parse_ns(text, ns);
}

/* Parses the date of "2026-11-20 12:03" or "2026-11-20T12:03" into *day; without a date, *day is the day of begin.
 * Returns the rest with the time, or NULL if the date is invalid. */
static const char *parse_day(const char *text, int64_t begin, struct tm *day)
{
	time_t s = (time_t)floor_div(begin, NS_PER_S);
	int year, month, n = 0;
	if (!localtime_r(&s, day))
		return NULL;
	if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day->tm_mday, &n) < 3 || n != TIME_DATE ||
	    (text[n] != ' ' && text[n] != 'T'))
		return strchr(text, '-') && strchr(text, '-') < strchr(text, ':') ? NULL : text;
	day->tm_year = year - 1900;
	day->tm_mon = month - 1;
	struct tm same = *day;
	return timegm(&same) != -1 && same.tm_mday == day->tm_mday && same.tm_mon == day->tm_mon ? text + n + 1 : NULL;
}

/* Parses "Z", "+0100" or "+01:00". *s: seconds ahead of UTC. */
static bool parse_utc_offset(const char *text, int *s)
{
	char sign[2], h[3], m[3];
	int n = 0;
	*s = 0;
	if (sscanf(text, "%1[+-]%2[0-9]%2[0-9]%n", sign, h, m, &n) < 3)
		sscanf(text, "%1[+-]%2[0-9]:%2[0-9]%n", sign, h, m, &n);
	if (n == 0 || text[n] || !h[1] || !m[1])
		return strcmp(text, "Z") == 0;
	*s = (*sign == '-' ? -1 : 1) * (atoi(h) * 3600 + atoi(m) * 60);
	return atoi(h) < 24 && atoi(m) < 60;
}

/* Converts *day to seconds since the epoch. text: "" for local time, or the time zone, optionally after a space. */
static bool parse_zone(const char *text, const struct tm *day, time_t *s)
{
	struct tm tm = *day;
	int utc_offset = 0;
	if (!*text) {
		tm.tm_isdst = -1;
		*s = mktime(&tm);
		return true;
	}
	if (!parse_utc_offset(text + (*text == ' '), &utc_offset))
		return false;
	*s = timegm(&tm) - utc_offset;
	return true;
}

static bool parse_time_of_day(const char *text, int64_t begin, int64_t *t)
{
	struct tm tm;
	char *rest;
	time_t s;
	int64_t frac = 0;
	text = parse_day(text, begin, &tm);
	unsigned long h = text ? strtoul(text, &rest, 10) : 24, m = 0;
	if (h > 23 || *rest != ':')
		return false;
	m = strtoul(rest + 1, &rest, 10);
	if (m > 59)
		return false;
	const char *zone = rest;
	if (*rest == ':' && (!(zone = parse_decimal(rest + 1, NS_PER_S, &frac)) || frac >= 61 * NS_PER_S))
		return false;
	tm.tm_hour = (int)h;
	tm.tm_min = (int)m;
	tm.tm_sec = 0;
	return parse_zone(zone, &tm, &s) && !__builtin_mul_overflow((int64_t)s, NS_PER_S, t) &&
	       !__builtin_add_overflow(*t, frac, t);
}

const char *time_end(char buf[TIME_TEXT], int64_t from, int64_t to, int digits)
{
	char first[TIME_TEXT], last[TIME_TEXT];
	time_date(first, from, 0);
	time_date(last, to, 0);
	const bool same_day = strncmp(first, last, strcspn(first, " ") + 1) == 0;
	return same_day ? time_clock(buf, to, digits) : time_date(buf, to, digits);
}

int64_t time_precision(const char *text)
{
	static const char digits[] = "0123456789";
	const char *at = strchr(text, ':');
	if (!at)
		return 1;
	at += 1 + strspn(at + 1, digits);
	if (*at != ':')
		return 60 * NS_PER_S;
	at += 1 + strspn(at + 1, digits);
	int64_t unit = NS_PER_S;
	for (at += *at == '.'; *at >= '0' && *at <= '9' && unit > 1; at++)
		unit /= 10;
	return unit;
}

bool time_is_plain_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

bool time_parse(const char *text, int64_t begin, int64_t end, int64_t *t)
{
	size_t n = strlen(text);
	if (n > 1 && text[n - 1] == '%') {
		int64_t millionths;
		const char *rest = parse_decimal(text, 1000000, &millionths);
		if (!rest || rest[0] != '%' || rest[1])
			return false;
		*t = begin + (int64_t)((int128)(end - begin) * millionths / 100000000);
		return true;
	}
	if (strchr(text, ':'))
		return parse_time_of_day(text, begin, t);
	if (time_is_plain_number(text))
		return parse_ns(text, t) && (*t == 0 || *t >= begin / 10);
	int64_t ns;
	return time_parse_duration(text, &ns) && !__builtin_add_overflow(*text == '-' ? end : begin, ns, t);
}
