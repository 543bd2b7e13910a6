/* Sorting: comparison functions made of a list of members, and qsort() for arrays that may be empty. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ORDER_BY(name, struct type, KEYS) defines a static comparison function for qsort(). KEYS are RISING(member),
 * FALLING(member) and RISING_TEXT(member), the one that decides first is first. */
#define ORDER_BY(name, type, keys) \
	static int name(const void *order_a, const void *order_b) \
	{ \
		const type *const a = order_a, *const b = order_b; \
		int order; \
		(void)order; \
		keys \
		return 0; \
	}
#define RISING(member) \
	if (a->member < b->member || a->member > b->member) \
		return a->member < b->member ? -1 : 1;
#define FALLING(member) \
	if (a->member < b->member || a->member > b->member) \
		return a->member > b->member ? -1 : 1;
#define RISING_TEXT(member) \
	if ((order = strcmp(a->member, b->member)) != 0) \
		return order;

static inline int order_int64(const void *pa, const void *pb)
{
	const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
	return (a > b) - (a < b);
}

static inline int order_double(const void *pa, const void *pb)
{
	const double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

/* qsort() must not get a null pointer, even for no elements. */
#define ARRAY_SORT(array, n, compare) array_sort((array), (n), sizeof *(array), (compare))
static inline void array_sort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	if (n)
		qsort(array, n, size, compare);
}
