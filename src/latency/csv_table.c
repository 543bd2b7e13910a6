/* Tables of numbers from csv files: a header line, then rows with the same field count.
 *
 * Reads the files of Soroban's authors and those of `latency requests --format csv`. Fields with line breaks are not
 * supported. Memory: 8 bytes per field. */
#include "base/base.h"
#include "latency/latency.h"

#include <locale.h>
#include <math.h>

#include "base/csv.h"
#include "base/file_open.h"

#define COLUMNS_MAX 1024
#define TABLE_REMEDY "remove the row, or choose another column"

static double field_number(const char *s)
{
	char *end;
	double v = strtod(s, &end);
	return end == s || end[strspn(end, " \t")] || !isfinite(v) ? (double)NAN : v;
}

static int read_header(struct table *t, char *line, const char *path, struct error *err)
{
	size_t cap = 0;
	char *s = line, *field;
	while ((field = csv_field(&s))) {
		if (t->columns == COLUMNS_MAX)
			return error_set(err, STATUS_INPUT, NULL, "%s: more than %d columns", path, COLUMNS_MAX);
		*ARRAY_PUSH(t->column, t->columns, cap) = mem_dup(field);
	}
	return 0;
}

static int read_row(struct table *t, char *line, size_t number, size_t *cap, const char *path, struct error *err)
{
	if (t->rows == *cap) {
		*cap = *cap ? 2 * *cap : 256;
		double *more = realloc(t->cell, *cap * t->columns * sizeof *more);
		if (!more)
			return error_system(err, NULL, "%s: %zu rows", path, t->rows);
		t->cell = more;
		t->line = mem_resize(t->line, *cap, sizeof *t->line);
	}
	double *row = t->cell + t->rows * t->columns;
	char *s = line, *field;
	size_t n = 0;
	while ((field = csv_field(&s))) {
		if (n < t->columns)
			row[n] = field_number(field);
		n++;
	}
	t->line[t->rows++] = number;
	if (n != t->columns)
		return error_set(err, STATUS_INPUT, NULL, "%s:%zu: %zu fields, the header has %zu", path, number, n, t->columns);
	return 0;
}

static int read_lines(struct table *t, FILE *f, const char *path, struct error *err)
{
	char *line = NULL;
	size_t size = 0, cap = 0, number = 0;
	ssize_t n;
	int result = 0;
	while (!result && (n = getline(&line, &size, f)) >= 0) {
		number++;
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		if (!t->columns)
			result = read_header(t, line, path, err);
		else if (n > 0)
			result = read_row(t, line, number, &cap, path, err);
	}
	if (!result && ferror(f))
		result = error_system(err, NULL, "%s", path);
	free(line);
	return result;
}

int table_read(struct table *t, const char *path, struct error *err)
{
	*t = (struct table){ 0 };
	FILE *f = file_open(path);
	if (!f)
		return error_read(err, NULL, "%s", path);
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(c);
	int result = read_lines(t, f, path, err);
	uselocale(before);
	freelocale(c);
	fclose(f);
	if (!result && !t->rows)
		result = error_set(err, STATUS_INPUT, NULL, "%s: no row of data", path);
	if (result)
		table_release(t);
	return result;
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->columns; i++)
		free(t->column[i]);
	free(t->column);
	free(t->cell);
	free(t->line);
	*t = (struct table){ 0 };
}

int table_find(const struct table *t, const char *column)
{
	for (size_t i = 0; i < t->columns; i++) {
		if (!strcmp(t->column[i], column))
			return (int)i;
	}
	return -1;
}

int table_check(const struct table *t, int column, double low, double high, const char *path, struct error *err)
{
	for (size_t i = 0; i < t->rows; i++) {
		double v = t->cell[i * t->columns + (size_t)column];
		if (isnan(v))
			return error_set(err, STATUS_INPUT, TABLE_REMEDY, "%s:%zu: %s: not a finite number", path, t->line[i],
			                 t->column[column]);
		if (v < low || v > high)
			return error_set(err, STATUS_INPUT, TABLE_REMEDY, "%s:%zu: %s: out of range: %g", path, t->line[i],
			                 t->column[column], v);
	}
	return 0;
}

size_t table_filter(struct table *t, bool (*keeps_row)(const struct table *t, const double *row))
{
	size_t n_kept = 0, before = t->rows;
	for (size_t i = 0; i < t->rows; i++) {
		const double *row = t->cell + i * t->columns;
		if (!keeps_row(t, row))
			continue;
		memmove(t->cell + n_kept * t->columns, row, t->columns * sizeof *row);
		t->line[n_kept] = t->line[i];
		n_kept++;
	}
	t->rows = n_kept;
	return before - n_kept;
}

bool table_soroban_keeps_row(const struct table *t, const double *row)
{
	int wall = table_find(t, "wct_us"), latency = table_find(t, "srv_lat_us"), out = table_find(t, "xen_cyc");
	if (wall >= 0 && latency >= 0 && row[wall] > row[latency])
		return false;
	return !(out >= 0 && row[out] >= 1e9);
}
