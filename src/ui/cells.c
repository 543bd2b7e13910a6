#include "ui/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/int128.h"
#include "base/mem.h"

static uint8_t eighths_of(int64_t part, int64_t whole)
{
	int128 e = ((int128)part * 8 + whole / 2) / (whole ? whole : 1);
	return (uint8_t)(e < 1 ? 1 : e > 7 ? 7 : e);
}

struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b)
{
	int64_t smaller = left < step - left ? left : step - left;
	return (struct cell){ CELL_SPLIT, a, b, eighths_of(left, step), smaller < step / 8 + (step % 8 != 0) };
}

struct cell cell_of_sums(const int64_t sums[HISTORY_STATES], const uint8_t *severity, bool minority)
{
	int main = -1, other = -1, present = 0;
	int64_t total = 0;
	for (int s = 0; s < HISTORY_STATES; s++) {
		if (sums[s] <= 0)
			continue;
		present++;
		if (__builtin_add_overflow(total, sums[s], &total))
			total = INT64_MAX;
		if (main < 0 || sums[s] > sums[main])
			main = s;
	}
	if (present == 0)
		return (struct cell){ CELL_EMPTY, 0, 0, 1, false };
	if (present == 1)
		return (struct cell){ CELL_PURE, (uint8_t)main, (uint8_t)main, 1, false };
	for (int s = 0; s < HISTORY_STATES; s++) {
		if (sums[s] <= 0 || s == main)
			continue;
		if (minority ? severity[s] > 0 && (other < 0 || sums[s] > sums[other])
		             : severity[s] > severity[main] && (other < 0 || severity[s] > severity[other]))
			other = s;
	}
	if (other < 0)
		return (struct cell){ CELL_MIXED, (uint8_t)main, (uint8_t)main, 1, false };
	return (struct cell){ CELL_MIXED, (uint8_t)main, (uint8_t)other, eighths_of(sums[other], total),
		sums[other] < total / 8 + (total % 8 != 0) };
}

/* Adds the raw sums of one attribute to those by code. */
static void add_codes(const struct cell_source *src, const int64_t raw[HISTORY_STATES], int64_t sums[HISTORY_STATES])
{
	for (int s = 0; s < HISTORY_STATES; s++) {
		int64_t *sum = &sums[src->code[s]];
		if (raw[s] > 0 && __builtin_add_overflow(*sum, raw[s], sum))
			*sum = INT64_MAX;
	}
}

int cells_sums(const struct cell_source *src, int64_t from, int64_t to, int64_t sums[HISTORY_STATES],
               struct error *err)
{
	memset(sums, 0, HISTORY_STATES * sizeof *sums);
	for (unsigned i = 0; i < src->attrs; i++) {
		int64_t raw[HISTORY_STATES];
		if (src->attr[i] == HISTORY_NONE)
			continue;
		if (history_sums(src->h, src->attr[i], from, to, raw, err) < 0)
			return -1;
		add_codes(src, raw, sums);
	}
	return 0;
}

static uint8_t code_of(const struct cell_source *src, int64_t value)
{
	return src->code[value >= 0 && value < HISTORY_STATES - 1 ? value : HISTORY_STATES - 1];
}

/* Where columns begin, cut to the span: column i is [edge[i], edge[i + 1] - 1], empty when outside. */
static void make_edges(const struct history *h, int64_t t0, int64_t step, int n, int64_t *edge)
{
	const int64_t begin = history_begin(h), end = history_end(h);
	for (int i = 0; i <= n; i++) {
		int128 t = (int128)t0 + (int128)step * i;
		edge[i] = t < begin ? begin : t > end ? end + 1 : (int64_t)t;
	}
}

/* A cell with two states may have one boundary only: then it is split there. */
static int split_cell(const struct cell_source *src, int64_t from, int64_t to, struct cell *out, struct error *err)
{
	struct interval a, b;
	if (history_stab(src->h, src->attr[0], from, &a, err) < 0)
		return -1;
	if (a.end >= to || history_stab(src->h, src->attr[0], a.end + 1, &b, err) < 0)
		return a.end >= to ? 0 : -1;
	uint8_t left = code_of(src, a.value), right = code_of(src, b.value);
	if (b.end >= to && left != right)
		*out = cell_of_split(a.end - from + 1, to - from + 1, left, right);
	return 0;
}

static int classify(const struct cell_source *src, const int64_t *edge, int n, int64_t (*sums)[HISTORY_STATES],
                    struct cell *out, struct error *err)
{
	for (int i = 0; i < n; i++) {
		int present = 0;
		for (int s = 0; s < HISTORY_STATES; s++)
			present += sums[i][s] > 0;
		out[i] = cell_of_sums(sums[i], src->severity, src->minority);
		if (present == 2 && src->attrs == 1 && split_cell(src, edge[i], edge[i + 1] - 1, &out[i], err) < 0)
			return -1;
	}
	return 0;
}

int cells_row(const struct cell_source *src, int64_t t0, int64_t step, int n, struct cell *out, struct error *err)
{
	int64_t *edge = mem_new((size_t)n + 1, sizeof *edge);
	int64_t (*sums)[HISTORY_STATES] = mem_new((size_t)n, sizeof *sums);
	int64_t (*raw)[HISTORY_STATES] = mem_new((size_t)n, sizeof *raw);
	int status = 0;
	make_edges(src->h, t0, step, n, edge);
	for (unsigned a = 0; a < src->attrs && status == 0; a++) {
		if (src->attr[a] == HISTORY_NONE)
			continue;
		status = history_sums_cells(src->h, src->attr[a], edge, (unsigned)n, raw, err);
		for (int i = 0; i < n && status == 0; i++)
			add_codes(src, raw[i], sums[i]);
	}
	if (status == 0)
		status = classify(src, edge, n, sums, out, err);
	free(edge);
	free(sums);
	free(raw);
	return status;
}
