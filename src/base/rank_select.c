#include "base/base.h"
#include "base/rank_select.h"

#define SORT_BELOW 32  /* values that are sorted at once */

static int64_t middle_of_three(int64_t a, int64_t b, int64_t c)
{
	const int64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

/* Splits x[0 .. n - 1] in values <= pivot and values >= pivot. Returns the number of the former, 1 .. n - 1. pivot: one of
 * the values; another one is not smaller. */
static size_t values_split(int64_t *x, size_t n, int64_t pivot)
{
	size_t i = 0, k = n - 1;
	for (;; i++, k--) {
		while (x[i] < pivot)
			i++;
		while (x[k] > pivot)
			k--;
		if (i >= k)
			return k + 1;
		const int64_t value = x[i];
		x[i] = x[k];
		x[k] = value;
	}
}

/* Quickselect (Hoare 1961). Values that are still too many after 2 log2 n rounds are sorted. */
int64_t rank_select(int64_t *x, size_t n, size_t rank)
{
	int rounds = 0;
	for (size_t left = n; left > 1; left /= 2)
		rounds += 2;
	for (; n > SORT_BELOW && rounds > 0; rounds--) {
		const size_t low = values_split(x, n, middle_of_three(x[0], x[n / 2], x[n - 1]));
		if (rank < low) {
			n = low;
		} else {
			x += low;
			rank -= low;
			n -= low;
		}
	}
	qsort(x, n, sizeof *x, order_int64);
	return x[rank];
}
