#include "ui/widgets/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/int128.h"
#include "base/mem.h"

static uint8_t part_of(int64_t part, int64_t whole)
{
	return (uint8_t)((int128)part * CELL_PARTS / (whole ? whole : 1));
}

struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b)
{
	return (struct cell){ CELL_SPLIT, a, b, part_of(left, step) };
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Of the first `codes` sums; *of: how many of them it has. */
static struct cell cell_of_states(const int64_t *sums, int codes, const uint8_t *severity, int *of)
{
	int main = -1, other = -1, present = 0;
	int64_t total = 0, part = 0;
	for (int s = 0; s < codes; s++) {
		if (sums[s] <= 0)
			continue;
		bool suffers = severity[s] >= SUFFERS;
		int *most = suffers ? &other : &main;
		*most = *most < 0 || sums[s] > sums[*most] ? s : *most;
		total = add(total, sums[s]);
		part = suffers ? add(part, sums[s]) : part;
		present++;
	}
	*of = present;
	if (present == 0)
		return (struct cell){ CELL_EMPTY, 0, 0, 0 };
	main = main < 0 ? other : main;
	other = other < 0 ? main : other;
	return (struct cell){ present == 1 ? CELL_PURE : CELL_MIXED, (uint8_t)main, (uint8_t)other, part_of(part, total) };
}

/* Main is the largest; other the next one, if it says anything. */
static struct cell cell_of_equals(const int64_t *sums, int codes, const uint8_t *severity, int *of)
{
	int main = -1, other = -1, present = 0;
	int64_t total = 0;
	for (int s = 0; s < codes; s++) {
		if (sums[s] <= 0)
			continue;
		main = main < 0 || sums[s] > sums[main] ? s : main;
		total = add(total, sums[s]);
		present++;
	}
	*of = present;
	if (present == 0)
		return (struct cell){ CELL_EMPTY, 0, 0, 0 };
	for (int s = 0; s < codes && present > 1; s++)
		if (sums[s] > 0 && s != main && severity[s] > 0 && (other < 0 || sums[s] > sums[other]))
			other = s;
	uint8_t part = other < 0 ? 0 : part_of(sums[other], total);
	other = other < 0 ? main : other;
	return (struct cell){ present == 1 ? CELL_PURE : CELL_MIXED, (uint8_t)main, (uint8_t)other, part };
}

struct cell cell_of_sums(const int64_t sums[HISTORY_STATES], const uint8_t *severity, bool minority)
{
	int present;
	return (minority ? cell_of_equals : cell_of_states)(sums, HISTORY_STATES, severity, &present);
}

/* Adds the raw sums of one attribute to those by code. */
static void add_codes(const struct cell_source *src, const int64_t raw[HISTORY_STATES], int64_t sums[HISTORY_STATES])
{
	for (int s = 0; s < HISTORY_STATES; s++)
		if (raw[s] > 0)
			sums[src->code[s]] = add(sums[src->code[s]], raw[s]);
}

/* Beyond this one there are none. */
static int codes_of(const struct cell_source *src)
{
	int codes = 0;
	for (int s = 0; s < HISTORY_STATES; s++)
		codes = src->code[s] >= codes ? src->code[s] + 1 : codes;
	return codes;
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

/* A cell with two states that do not suffer may have one boundary only: then it is split there. */
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
	const int codes = codes_of(src);
	for (int i = 0; i < n; i++) {
		int present;
		out[i] = (src->minority ? cell_of_equals : cell_of_states)(sums[i], codes, src->severity, &present);
		bool plain = src->minority || src->severity[out[i].other] < SUFFERS;
		if (present == 2 && src->attrs == 1 && plain && split_cell(src, edge[i], edge[i + 1] - 1, &out[i], err) < 0)
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
