/* Text forms of durations and times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALL_CLOCK_MIN (INT64_C(10) * 365 * 86400 * 1000000000)  /* ns; earlier times count from a boot */
#define TIME_TEXT 40  /* bytes of a buffer for any text written here */

/* Formats a duration: "5.21 ms", "812 ns", "1.25 s": three significant digits, at most 8 columns below 10 000 s. */
char *time_duration(char buf[TIME_TEXT], int64_t ns);

/* Formats a signed duration exactly, in the largest unit without a fraction: "+3 us", "-1500 ns", "+2 s", "0". */
char *time_exact(char buf[TIME_TEXT], int64_t ns);

/* Formats a local time of day: "12:03:04.123456789"; t: ns since the epoch, digits: 0 to 9 digits after the point. */
char *time_clock(char buf[TIME_TEXT], int64_t t, int digits);
/* The end of a window that starts at `from`: with its date if that is another day. */
const char *time_end(char buf[TIME_TEXT], int64_t from, int64_t to, int digits);

#define TIME_DATE 10  /* characters of a date */
#define TIME_ZONE 6   /* characters of the zone at the end: " +0100" */
/* Formats a local date and time: "2026-11-20 12:03:04.123456789 +0100". */
char *time_date(char buf[TIME_TEXT], int64_t t, int digits);
/* Formats the month and day: "11-20". */
char *time_day(char buf[TIME_TEXT], int64_t t);

/* Parses a point in time within [begin, end]:
 *   1795152647842459259               absolute ns
 *   12:03:04.5, 12:03                 time of day on the day of begin
 *   2026-11-20 12:03                  on another day; also as time_date() writes it, and ISO 8601: 2026-11-20T12:03:04Z
 *   +3ms, 12.5s; -3ms                 relative to begin; to end
 *   50%                               share of the window
 * Units: ns us ms s min h. Returns false for other texts, overflow, and ns long before begin except 0: "50" is meant in
 * another unit. */
bool time_parse(const char *text, int64_t begin, int64_t end, int64_t *t);

/* Returns true if a text is a number without a unit. */
bool time_is_plain_number(const char *text);

/* Returns the resolution of a text that time_parse() accepted, ns: the unit of the last digit of a time of day (".1139":
 * 100 us); 1 for other forms. */
int64_t time_precision(const char *text);

/* Parses a duration: "3ms", "-3us", "250 us", "1.5s"; the unit is required unless the number is 0. */
bool time_parse_duration(const char *text, int64_t *ns);
/* The same, but a number without a unit is ns: the form in which programs write clock offsets. */
bool time_parse_offset(const char *text, int64_t *ns);
