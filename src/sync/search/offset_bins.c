#include "sync/search/offset_bins.h"

void offset_bins_init(struct offset_bins *b, size_t len, int64_t width)
{
	*b = (struct offset_bins){ width, len, mem_new(len + 1, sizeof *b->change), mem_new(len, sizeof *b->violations) };
}

void offset_bins_release(struct offset_bins *b)
{
	free(b->change);
	free(b->violations);
	*b = (struct offset_bins){ 0 };
}

void offset_bins_reset(struct offset_bins *b)
{
	memset(b->violations, 0, b->len * sizeof *b->violations);
}

void offset_bins_exclude(struct offset_bins *b, int64_t from, int64_t to)
{
	const int64_t len = (int64_t)b->len, first = from <= 0 ? 0 : (from + b->width - 1) / b->width;
	const int64_t end = to < 0 ? 0 : (to + 1) / b->width;
	if (first >= end || first >= len)
		return;
	b->change[first]++;
	b->change[end < len ? end : len]--;
}

int offset_bins_add_up(struct offset_bins *b, size_t from, size_t to)
{
	int now = 0, least = INT16_MAX;
	for (size_t i = 0; i < to; i++) {
		now += b->change[i];
		b->violations[i] = (int16_t)(b->violations[i] + now);
		least = i >= from && b->violations[i] < least ? b->violations[i] : least;
	}
	memset(b->change, 0, (b->len + 1) * sizeof *b->change);
	return least;
}
