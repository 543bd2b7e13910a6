/* Counts of violations by clock offset, in bins (private to sync/).
 *
 * An event that would be outside guest mode for an interval of offsets is a violation of each offset in it. Intervals
 * are collected as differences between adjacent bins and added up from time to time: O(1) per interval, O(bins) to add
 * up. A violation counts only for bins that lie completely in the interval. */
#pragma once

#include "base/base.h"

struct offset_bins {
	int64_t width;        /* a bin's width, ns */
	size_t len;
	int16_t *change;      /* violations not added up yet, as differences between adjacent bins; len + 1 entries */
	int16_t *violations;  /* by bin */
};

void offset_bins_init(struct offset_bins *b, size_t len, int64_t width);
void offset_bins_release(struct offset_bins *b);
/* Sets all counts to 0; all violations must have been added up. */
void offset_bins_reset(struct offset_bins *b);
/* Counts a violation for the offsets [from, to], in ns from the start of the first bin. */
void offset_bins_exclude(struct offset_bins *b, int64_t from, int64_t to);
/* Adds up the bins' violations before `to`. Returns the smallest count in the bins [from, to). */
int offset_bins_add_up(struct offset_bins *b, size_t from, size_t to);
