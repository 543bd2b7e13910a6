/* Selection: finds the value of a rank without sorting all values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the value that x[rank] would have if x[0 .. n - 1] were sorted; rank < n. Reorders the values: those before the
 * rank are not larger, those after it not smaller. O(n) on average, O(n log n) at most. */
int64_t rank_select(int64_t *x, size_t n, size_t rank);
