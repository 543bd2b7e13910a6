#include "ui/cells.h"

#include <string.h>

#include "base/int128.h"

static uint8_t eighths_of(int64_t part, int64_t whole)
{
	int128 e = ((int128)part * 8 + whole / 2) / (whole ? whole : 1);
	return (uint8_t)(e < 1 ? 1 : e > 7 ? 7 : e);
}

struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b)
{
	return (struct cell){ CELL_SPLIT, a, b, eighths_of(left, step) };
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
		return (struct cell){ CELL_EMPTY, 0, 0, 1 };
	if (present == 1)
		return (struct cell){ CELL_PURE, (uint8_t)main, (uint8_t)main, 1 };
	for (int s = 0; s < HISTORY_STATES; s++) {
		if (sums[s] <= 0 || s == main)
			continue;
		if (minority ? severity[s] > 0 && (other < 0 || sums[s] > sums[other])
		             : severity[s] > severity[main] && (other < 0 || severity[s] > severity[other]))
			other = s;
	}
	if (other < 0)
		return (struct cell){ CELL_MIXED, (uint8_t)main, (uint8_t)main, 1 };
	return (struct cell){ CELL_MIXED, (uint8_t)main, (uint8_t)other, eighths_of(sums[other], total) };
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
		for (int s = 0; s < HISTORY_STATES; s++) {
			int64_t *sum = &sums[src->code[s]];
			if (raw[s] > 0 && __builtin_add_overflow(*sum, raw[s], sum))
				*sum = INT64_MAX;
		}
	}
	return 0;
}

static uint8_t code_of(const struct cell_source *src, int64_t value)
{
	return src->code[value >= 0 && value < HISTORY_STATES - 1 ? value : HISTORY_STATES - 1];
}

/* The state of things between two columns of a row of one attribute. */
struct walk {
	const struct cell_source *src;
	struct interval iv;   /* the last one looked up */
	bool valid;           /* iv is one */
	bool dense;           /* the last cell had several boundaries: ask for the sums first */
};

/* Makes w->iv the interval that holds t, unless it does. */
static int walk_to(struct walk *w, int64_t t, struct error *err)
{
	if (w->valid && w->iv.start <= t && t <= w->iv.end)
		return 0;
	if (history_stab(w->src->h, w->src->attr[0], t, &w->iv, err) < 0)
		return -1;
	w->valid = true;
	return 0;
}

/* A cell without or with one boundary: 1 = done, 0 = there are more boundaries, -1 = error. */
static int simple_cell(struct walk *w, int64_t from, int64_t to, struct cell *out, struct error *err)
{
	if (walk_to(w, from, err) < 0)
		return -1;
	uint8_t a = code_of(w->src, w->iv.value);
	if (w->iv.end >= to) {
		*out = (struct cell){ CELL_PURE, a, a, 1 };
		return 1;
	}
	int64_t left = w->iv.end - from + 1;
	if (walk_to(w, w->iv.end + 1, err) < 0)
		return -1;
	uint8_t b = code_of(w->src, w->iv.value);
	if (w->iv.end < to)
		return 0;
	*out = a == b ? (struct cell){ CELL_PURE, a, a, 1 } : cell_of_split(left, to - from + 1, a, b);
	return 1;
}

static int one_cell(struct walk *w, int64_t from, int64_t to, struct cell *out, struct error *err)
{
	bool simple = w->src->attrs == 1 && w->src->attr[0] != HISTORY_NONE;
	if (simple && (!w->dense || (w->valid && w->iv.start <= from && w->iv.end >= to))) {
		int done = simple_cell(w, from, to, out, err);
		if (done)
			return done < 0 ? -1 : 0;
	}
	int64_t sums[HISTORY_STATES];
	if (cells_sums(w->src, from, to, sums, err) < 0)
		return -1;
	*out = cell_of_sums(sums, w->src->severity, w->src->minority);
	int present = 0;
	for (int s = 0; s < HISTORY_STATES; s++)
		present += sums[s] > 0;
	/* Two states: there may be one boundary only.  One: most likely a quiet stretch. */
	if (simple && w->dense && present == 2 && simple_cell(w, from, to, out, err) < 0)
		return -1;
	w->dense = present > 2 || out->form == CELL_MIXED;
	return 0;
}

int cells_row(const struct cell_source *src, int64_t t0, int64_t step, int n, struct cell *out, struct error *err)
{
	const int64_t begin = history_begin(src->h), end = history_end(src->h);
	struct walk w = { .src = src };
	for (int i = 0; i < n; i++) {
		int64_t from, to;
		out[i] = (struct cell){ CELL_EMPTY, 0, 0, 1 };
		if (__builtin_mul_overflow(step, (int64_t)i, &from) || __builtin_add_overflow(t0, from, &from) || from > end)
			continue;
		if (__builtin_add_overflow(from, step - 1, &to) || to > end)
			to = end;
		if (to < begin)
			continue;
		if (one_cell(&w, from < begin ? begin : from, to, &out[i], err) < 0)
			return -1;
	}
	return 0;
}
