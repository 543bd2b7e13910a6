/* Text plots, 80 columns wide, ASCII only: they stay readable in mails and log files. */
#include "base/base.h"
#include "latency/latency.h"

#include <math.h>

#define SCATTER_W 60
#define SCATTER_H 20

void plot_bar(char *buf, size_t size, int width, double low, double high)
{
	if (size == 0)
		return;
	size_t n = width < 0 ? 0 : (size_t)width;
	if (n >= size)
		n = size - 1;
	for (size_t i = 0; i < n; i++) {
		double at = ((double)i + 0.5) / (double)n;
		buf[i] = at < low ? '#' : at < high ? '+' : '.';
	}
	buf[n] = '\0';
}

static double largest_value(const double *v, size_t n)
{
	double max_value = 0;
	for (size_t i = 0; i < n; i++)
		max_value = fmax(max_value, v[i]);
	return max_value > 0 ? max_value : 1;
}

/* Returns the column or row of v on an axis of `cells` from 0 to max. */
static size_t cell_index(double v, double max, size_t cells)
{
	double at = v / max * (double)cells;
	return !(at > 0) ? 0 : at >= (double)cells ? cells - 1 : (size_t)at;
}

void plot_scatter(FILE *out, const double *x, const double *y, size_t n, const char *xlabel, const char *ylabel)
{
	unsigned count[SCATTER_H][SCATTER_W] = { { 0 } };
	double xmax = largest_value(x, n), ymax = largest_value(y, n);
	for (size_t i = 0; i < n; i++)
		count[cell_index(y[i], ymax, SCATTER_H)][cell_index(x[i], xmax, SCATTER_W)]++;
	char top[TIME_TEXT], right[TIME_TEXT];
	time_duration(top, (int64_t)ymax);
	time_duration(right, (int64_t)xmax);
	fprintf(out, "%s (up to %s)\n", ylabel, top);
	for (size_t r = SCATTER_H; r-- > 0;) {
		fputs("  |", out);
		for (size_t c = 0; c < SCATTER_W; c++) {
			unsigned k = count[r][c];
			/* Diagonal y = x: the provider caused the whole latency. Computed for this column's middle. */
			double diagonal = ((double)c + 0.5) / SCATTER_W * xmax;
			bool line = diagonal < ymax && cell_index(diagonal, ymax, SCATTER_H) == r;
			fputc(k == 0 ? (line ? '/' : ' ') : k == 1 ? '.' : k < 4 ? ':' : k < 16 ? '*' : '#', out);
		}
		fputc('\n', out);
	}
	fprintf(out, "  +%.*s\n", SCATTER_W, "------------------------------------------------------------");
	fprintf(out, "   %s (up to %s)   / is y = x   . 1  : 2-3  * 4-15  # 16 or more\n", xlabel, right);
}

void plot_heat(FILE *out, const double *value, const char *const *row, size_t rows, const char *const *column,
               size_t columns, char *(*fmt)(char *buf, size_t size, double v))
{
	static const char shade[] = " .:-=+*#%@";
	double max_value = 0;
	for (size_t i = 0; i < rows * columns; i++) {
		if (!isnan(value[i]))
			max_value = fmax(max_value, value[i]);
	}
	int label = 4;
	for (size_t r = 0; r < rows; r++) {
		if (text_width(row[r]) > label)
			label = text_width(row[r]);
	}
	fprintf(out, "%*s", label, "");
	for (size_t c = 0; c < columns; c++)
		fprintf(out, " %11s", column[c]);
	fputc('\n', out);
	for (size_t r = 0; r < rows; r++) {
		fprintf(out, "%*s", label, row[r]);
		for (size_t c = 0; c < columns; c++) {
			double v = value[r * columns + c];
			char text[32] = "-", cell[4] = "   ";
			if (!isnan(v)) {
				fmt(text, sizeof text, v);
				size_t s = max_value > 0 ? cell_index(v, max_value, sizeof shade - 1) : 0;
				memset(cell, shade[s], 2);
				cell[2] = '\0';
			} else {
				cell[2] = '\0';
			}
			fprintf(out, " %8s %s", text, cell);
		}
		fputc('\n', out);
	}
}
