#include "flow/parts.h"

#include "base/int128.h"
#include "base/parallel.h"

#define INTERVALS_WORTH_A_PART (1 << 18)

size_t parts_of(const struct history *h, int64_t from, int64_t to)
{
	int128 span = (int128)history_end(h) - history_begin(h) + 1, window = (int128)to - from + 1;
	int128 parts = (int128)history_intervals(h) * window / span / INTERVALS_WORTH_A_PART;
	const unsigned workers = parallel_workers(0);
	if (parts > workers)
		parts = workers;
	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	return parts < 1 || window < 2 * PARTS_MAX ? 1 : (size_t)parts;
}

void parts_cut(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end)
{
	int128 window = (int128)to - from + 1;
	*start = from + (int64_t)(window * (int64_t)i / (int64_t)n);
	*end = from + (int64_t)(window * (int64_t)(i + 1) / (int64_t)n) - 1;
}

int parts_walk(size_t n, int (*fn)(void *arg, size_t i), void *arg)
{
	return parallel_run(&(struct parallel){ .workers = (unsigned)n, .task = fn, .arg = arg }, n);
}
