/* Arithmetic helpers: minimum, maximum, clamping, bits, percentiles, and units of time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/int128.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_DAY (86400 * NS_PER_S)

#define BIT64(n) (UINT64_C(1) << (n))

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Returns v, or the closer limit if it is outside [low, high]. */
static inline int64_t clamp64(int128 v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : (int64_t)v;
}

/* Returns v limited to the range of int64_t. */
static inline int64_t saturate64(int128 v)
{
	return clamp64(v, INT64_MIN, INT64_MAX);
}

/* Returns the index of a percentile among n sorted values by nearest rank: of the smallest value that is at least as
 * large as `percent` % of all values. n >= 1, percent >= 1. */
static inline size_t percentile_index(size_t n, size_t percent)
{
	return (n * percent + 99) / 100 - 1;
}
