/* Binary search. */
#pragma once

#include <stddef.h>

/* Halves [bisect_from, bisect_to) until one index is left. */
#define BISECT_STEPS(at, before) \
	while (bisect_from < bisect_to) { \
		(at) = bisect_from + (bisect_to - bisect_from) / 2; \
		if (before) \
			bisect_from = (at) + 1; \
		else \
			bisect_to = (at); \
	} \
	(at) = bisect_from

/* Sets `at` (a size_t) to the first index below n for which the expression `before` is false, or to n. `before` uses
 * `at`, and must be true for all smaller indices and false for all larger ones. */
#define BISECT(at, n, before) \
	do { \
		size_t bisect_from = 0, bisect_to = (n); \
		BISECT_STEPS(at, before); \
	} while (0)

/* The same for a result at or after `hint`, a size_t: fast if it is near, O(log n) if it is far. */
#define BISECT_FROM(at, hint, n, before) \
	do { \
		size_t bisect_from = (hint), bisect_to = (n); \
		for (size_t bisect_step = 1; bisect_step < bisect_to - bisect_from; bisect_step *= 2) { \
			(at) = bisect_from + bisect_step - 1; \
			if (before) \
				bisect_from = (at) + 1; \
			else \
				bisect_to = (at); \
		} \
		BISECT_STEPS(at, before); \
	} while (0)
