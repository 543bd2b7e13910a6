#include "ui/widgets/cells.h"

#include "base/int128.h"

static uint8_t part_of(int64_t part, int64_t total)
{
	return (uint8_t)((int128)part * CELL_PARTS / (total ? total : 1));
}

struct cell cell_of_split(int64_t left, int64_t step, uint8_t a, uint8_t b)
{
	return (struct cell){ CELL_SPLIT, a, b, part_of(left, step) };
}

static int64_t add_clamped(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Makes a cell from the first `codes` sums. *present_out: number of states in the cell. */
static struct cell cell_of_states(const int64_t *sums, int codes, const uint8_t *severity, int *present_out)
{
	int main = -1, other = -1, present = 0;
	int64_t total = 0, part = 0;
	for (int s = 0; s < codes; s++) {
		if (sums[s] <= 0)
			continue;
		bool is_wait = severity[s] >= WAIT_SEVERITY;
		int *longest = is_wait ? &other : &main;
		*longest = *longest < 0 || sums[s] > sums[*longest] ? s : *longest;
		total = add_clamped(total, sums[s]);
		part = is_wait ? add_clamped(part, sums[s]) : part;
		present++;
	}
	*present_out = present;
	if (present == 0)
		return (struct cell){ CELL_EMPTY, 0, 0, 0 };
	main = main < 0 ? other : main;
	other = other < 0 ? main : other;
	return (struct cell){ present == 1 ? CELL_PURE : CELL_MIXED, (uint8_t)main, (uint8_t)other, part_of(part, total) };
}

/* Makes a cell of owners: main is the largest, other the next one with severity > 0. *present_out: owner count. */
static struct cell cell_of_owners(const int64_t *sums, int codes, const uint8_t *severity, int *present_out)
{
	int main = -1, other = -1, present = 0;
	int64_t total = 0;
	for (int s = 0; s < codes; s++) {
		if (sums[s] <= 0)
			continue;
		main = main < 0 || sums[s] > sums[main] ? s : main;
		total = add_clamped(total, sums[s]);
		present++;
	}
	*present_out = present;
	if (present == 0)
		return (struct cell){ CELL_EMPTY, 0, 0, 0 };
	for (int s = 0; s < codes && present > 1; s++)
		if (sums[s] > 0 && s != main && severity[s] > 0 && (other < 0 || sums[s] > sums[other]))
			other = s;
	uint8_t part = other < 0 ? 0 : part_of(sums[other], total);
	other = other < 0 ? main : other;
	return (struct cell){ present == 1 ? CELL_PURE : CELL_MIXED, (uint8_t)main, (uint8_t)other, part };
}

struct cell cell_of_sums(const int64_t sums[HISTORY_STATES], const uint8_t *severity, bool equal_rank)
{
	int present;
	return (equal_rank ? cell_of_owners : cell_of_states)(sums, HISTORY_STATES, severity, &present);
}

/* Adds the sums by state of one attribute to the sums by code. */
static void add_codes(const struct cell_source *src, const int64_t state_sums[HISTORY_STATES], int64_t sums[HISTORY_STATES])
{
	for (int s = 0; s < HISTORY_STATES; s++)
		if (state_sums[s] > 0)
			sums[src->code[s]] = add_clamped(sums[src->code[s]], state_sums[s]);
}

/* Returns the largest code of the source, plus 1. */
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
		int64_t state_sums[HISTORY_STATES];
		if (src->attr[i] == HISTORY_NONE)
			continue;
		if (history_sums(src->h, src->attr[i], from, to, state_sums, err) < 0)
			return -1;
		add_codes(src, state_sums, sums);
	}
	return 0;
}

static uint8_t code_of(const struct cell_source *src, int64_t value)
{
	return src->code[value >= 0 && value < HISTORY_STATES - 1 ? value : HISTORY_STATES - 1];
}

/* Computes the columns' bounds, clamped to the history: column i is [edge[i], edge[i + 1] - 1], empty outside of it. */
static void make_edges(const struct history *h, int64_t t0, int64_t step, int n, int64_t *edge)
{
	const int64_t begin = history_begin(h), end = history_end(h);
	for (int i = 0; i <= n; i++) {
		int128 t = (int128)t0 + (int128)step * i;
		edge[i] = t < begin ? begin : t > end ? end + 1 : (int64_t)t;
	}
}

/* If the attribute changes only once in the cell, from one state to another that are not waits, makes a split cell. */
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

static int classify_cells(const struct cell_source *src, const int64_t *edge, int n, int64_t (*sums)[HISTORY_STATES],
                    struct cell *out, struct error *err)
{
	const int codes = codes_of(src);
	for (int i = 0; i < n; i++) {
		int present;
		out[i] = (src->equal_rank ? cell_of_owners : cell_of_states)(sums[i], codes, src->severity, &present);
		bool no_wait = src->equal_rank || src->severity[out[i].other] < WAIT_SEVERITY;
		if (present == 2 && src->attrs == 1 && no_wait && split_cell(src, edge[i], edge[i + 1] - 1, &out[i], err) < 0)
			return -1;
	}
	return 0;
}

int cells_row(const struct cell_source *src, int64_t t0, int64_t step, int n, struct cell *out, struct error *err)
{
	int64_t *edge = mem_new((size_t)n + 1, sizeof *edge);
	int64_t (*sums)[HISTORY_STATES] = mem_new((size_t)n, sizeof *sums);
	int64_t (*state_sums)[HISTORY_STATES] = mem_new((size_t)n, sizeof *state_sums);
	int status = 0;
	make_edges(src->h, t0, step, n, edge);
	for (unsigned a = 0; a < src->attrs && status == 0; a++) {
		if (src->attr[a] == HISTORY_NONE)
			continue;
		status = history_sums_cells(src->h, src->attr[a], edge, (unsigned)n, state_sums, err);
		for (int i = 0; i < n && status == 0; i++)
			add_codes(src, state_sums[i], sums[i]);
	}
	if (status == 0)
		status = classify_cells(src, edge, n, sums, out, err);
	free(edge);
	free(sums);
	free(state_sums);
	return status;
}
