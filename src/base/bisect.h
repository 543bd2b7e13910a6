/* Binary search. */
#ifndef STEALSCOPE_BASE_BISECT_H
#define STEALSCOPE_BASE_BISECT_H

#include <stdbool.h>
#include <stddef.h>

/* The first index in [from, to) for which is_past() holds; to when there is none.  Once it holds, it must hold for all
 * that follow. */
static inline size_t bisect(size_t from, size_t to, bool (*is_past)(const void *arg, size_t i), const void *arg)
{
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (is_past(arg, middle))
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

#endif
