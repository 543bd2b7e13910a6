/* Fuzz target: input as a table of requests (csv) and as a model. If the input is accepted, all results must be finite
 * numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "latency/latency.h"
#include "fuzz_replay.h"

#define MAX_ROWS 64  /* maximum number of rows of a model: its cost is cubic in them */

static void check_refusal(const struct error *err)
{
	if (!err->text[0] || strchr(err->text, '\n'))
		abort();
}

static bool keep_half(const struct table *t, const double *row)
{
	return (size_t)(row - t->cell) / t->columns % 2 == 0;
}

static void try_table(const char *path)
{
	struct table t;
	struct error err = ERROR_INIT;
	if (table_read(&t, path, &err)) {
		check_refusal(&err);
		return;
	}
	for (size_t i = 0; i < t.columns; i++) {
		const int column = table_find(&t, t.column[i]);
		if (column < 0 || (size_t)column > i)
			abort();
		err = (struct error)ERROR_INIT;
		if (table_check(&t, column, -1e15, 1e15, path, &err)) {
			check_refusal(&err);
			continue;
		}
		for (size_t k = 0; k < t.rows; k++)
			if (!(fabs(t.cell[k * t.columns + (size_t)column]) <= 1e15))
				abort();
	}
	const size_t rows = t.rows;
	if (table_filter(&t, keep_half) + t.rows != rows)
		abort();
	table_filter(&t, table_soroban_keeps_row);
	table_release(&t);
}

static void try_model(const char *path)
{
	struct error err = ERROR_INIT;
	struct gp *g = gp_load(path, &err);
	struct gp_prediction answer;
	double x[GP_FEATURES] = { 0 };
	if (!g) {
		check_refusal(&err);
		return;
	}
	for (size_t i = 0; i < gp_inputs(g); i++) {
		double min, max;
		gp_range(g, i, &min, &max);
		x[i] = min;
	}
	if (gp_predict(g, x, 1, &answer, &err) == 0) {
		if (isnan(answer.mean) || answer.low > answer.high)
			abort();
	} else {
		check_refusal(&err);
	}
	gp_free(g);
}

/* Returns true if there are too many rows for a fast run. */
static bool is_long(const uint8_t *data, size_t size)
{
	size_t lines = 0;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines > MAX_ROWS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;
	const char *path = replay_file(data, size, &fd);
	try_table(path);
	if (!is_long(data, size))
		try_model(path);
	close(fd);
	return 0;
}
