/* Durations and points in time as people write them. */
#ifndef STEALSCOPE_BASE_TIMEFMT_H
#define STEALSCOPE_BASE_TIMEFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_TEXT 40  /* bytes that hold any text written here */

/* "5.21 ms", "812 ns", "1.25 s": three significant digits, at most 8 columns (below 10 000 s). */
char *time_duration(char buf[TIME_TEXT], int64_t ns);

/* "+3 us", "-1500 ns", "+2 s": with its sign, exact, in the largest unit of which it is a whole number; "0". */
char *time_exact(char buf[TIME_TEXT], int64_t ns);

/* "12:03:04.123456789": time of day (local) of t ns since the epoch with `digits` (0..9) after the second. */
char *time_clock(char buf[TIME_TEXT], int64_t t, int digits);

#define TIME_DATE 10  /* characters of its day */
#define TIME_ZONE 6   /* of its end, " +0100" */
/* "2026-11-20 12:03:04.123456789 +0100" */
char *time_date(char buf[TIME_TEXT], int64_t t, int digits);
/* "11-20": its day, of which the year is known. */
char *time_day(char buf[TIME_TEXT], int64_t t);

/* Parses a point in time within [begin, end]: absolute ns ("1795152647842459259"), time of day on the day of
 * begin ("12:03:04.5", "12:03") or of another ("2026-11-20 12:03", and as time_date() or ISO 8601 has it, as
 * "2026-11-20T12:03:04Z"), relative to begin ("+3ms", "12.5s") or to end ("-3ms"), or a share of the span ("50%").
 * Units: ns us ms s min h.  False when the text is none of these or overflows; and for ns long before begin, but 0: who
 * writes "50" means another unit. */
bool time_parse(const char *text, int64_t begin, int64_t end, int64_t *t);

/* A number alone? */
bool time_is_bare(const char *text);

/* How much time a text that time_parse() took stands for: a time of day, the unit of its last digit (".1139": 100 us);
 * any other, 1 ns. */
int64_t time_precision(const char *text);

/* Parses "3ms", "-3us", "250 us", "1.5s"; a unit is wanted, but for 0. */
bool time_parse_duration(const char *text, int64_t *ns);
/* The same, or plain ns: of clocks, as programs write them. */
bool time_parse_offset(const char *text, int64_t *ns);

#endif
