/* The one bisection. */
#ifndef STEALSCOPE_BASE_BISECT_H
#define STEALSCOPE_BASE_BISECT_H

#include <stddef.h>

/* Sets at, a size_t, to the first index below n at which `before`, an expression of it, is false, or to n.  It must be true
 * of all before that one, and of none after it. */
#define BISECT(at, n, before) \
	do { \
		size_t bisect_from = 0, bisect_to = (n); \
		while (bisect_from < bisect_to) { \
			(at) = bisect_from + (bisect_to - bisect_from) / 2; \
			if (before) \
				bisect_from = (at) + 1; \
			else \
				bisect_to = (at); \
		} \
		(at) = bisect_from; \
	} while (0)

#endif
