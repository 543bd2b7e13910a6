/* Models as text files:
 *
 *     stealscope-model 1
 *     input NAME MEAN SCALE MIN MAX LENGTH        one line per input; NAME has no white space
 *     target MEAN SCALE
 *     kernel SIGNAL TREND NOISE SPREAD
 *     rows M
 *     Y X1 X2 ...                                 M lines, standardized
 *     factor                                      may be missing
 *     WEIGHT L1 L2 ... Li                         M lines: line i of K^-1 y and of the inverse of K's Cholesky factor
 *
 * Numbers have 17 digits, so that reading restores exactly the same model. The file is untrusted: every count is limited
 * before memory is allocated, and every number must be finite. */
#include "base/gp_model.h"

#include <errno.h>
#include <math.h>

#include "base/base.h"

#define Z95 1.959963984540054  /* 97.5 % quantile of the normal distribution */

void gp_free(struct gp *g)
{
	if (!g)
		return;
	free(g->x);
	free(g->y);
	free(g->inverse);
	free(g->weight);
	free(g);
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct gp_file {
	FILE *f;
	char *line;
	size_t size;
	unsigned number;         /* number of the current line, starting at 1 */
	const char *why;         /* the failure's reason; NULL: system error in errno */
};

static int refuse(struct gp_file *r, const char *why)
{
	r->why = why;
	return -1;
}

/* Returns 1, or 0 at the file's end, or -1 at an error. */
static int try_line(struct gp_file *r)
{
	r->number++;
	ssize_t n = getline(&r->line, &r->size, r->f);
	if (n < 0)
		return feof(r->f) ? 0 : refuse(r, NULL);
	if (n > 0 && r->line[n - 1] == '\n')
		r->line[n - 1] = '\0';
	return 1;
}

static int next_line(struct gp_file *r)
{
	const int more = try_line(r);
	return more == 0 ? refuse(r, "the model ends too early") : more < 0 ? -1 : 0;
}

/* Parses exactly n finite numbers. */
static int read_numbers(struct gp_file *r, const char *s, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *end;
		out[i] = strtod(s, &end);
		if (end == s || !isfinite(out[i]))
			return refuse(r, "a finite number is missing");
		s = end;
	}
	return s[strspn(s, " \t\r")] ? refuse(r, "more numbers than expected") : 0;
}

static int read_input(struct gp_file *r, struct gp_input *in)
{
	char *name = r->line + strlen("input ");
	size_t n = strcspn(name, " ");
	if (n == 0 || n >= sizeof in->name)
		return refuse(r, "an input's name is missing or too long");
	memcpy(in->name, name, n);
	in->name[n] = '\0';
	double v[5];
	if (read_numbers(r, name + n, v, 5))
		return -1;
	if (!(v[1] > 0) || v[2] > v[3] || !(v[4] > 0))
		return refuse(r, "scale and length must be above 0, MIN at most MAX");
	in->mean = v[0], in->scale = v[1], in->min = v[2], in->max = v[3], in->length = v[4];
	return 0;
}

static bool line_starts_with(const struct gp_file *r, const char *word)
{
	return strncmp(r->line, word, strlen(word)) == 0;
}

/* Reads all lines up to "rows", into g. */
static int read_header_lines(struct gp_file *r, struct gp *g)
{
	double v[4];
	if (next_line(r))
		return -1;
	if (strcmp(r->line, GP_HEADER) != 0)
		return refuse(r, "not a stealscope model, or a model of a later version");
	for (;;) {
		if (next_line(r))
			return -1;
		if (!line_starts_with(r, "input "))
			break;
		if (g->d == GP_FEATURES)
			return refuse(r, "too many inputs");
		if (read_input(r, &g->in[g->d++]))
			return -1;
	}
	if (!g->d || !line_starts_with(r, "target ") || read_numbers(r, r->line + 7, v, 2) || v[1] < 0)
		return refuse(r, "expected: target MEAN SCALE");
	g->y_mean = v[0], g->y_scale = v[1];
	if (next_line(r))
		return -1;
	if (!line_starts_with(r, "kernel ") || read_numbers(r, r->line + 7, v, 4) || !(v[2] > 0) || v[3] < 0)
		return refuse(r, "expected: kernel SIGNAL TREND NOISE SPREAD");
	g->signal = v[0], g->trend = v[1], g->noise = v[2], g->spread = v[3];
	if (next_line(r))
		return -1;
	if (!line_starts_with(r, "rows ") || read_numbers(r, r->line + 5, v, 1) || v[0] < 1 || v[0] > GP_ROWS_MAX)
		return refuse(r, "expected: rows 1..2048");
	g->m = (size_t)v[0];
	return 0;
}

static int read_rows(struct gp_file *r, struct gp *g)
{
	double v[GP_FEATURES + 1];
	g->x = calloc(g->m * g->d, sizeof *g->x);
	g->y = calloc(g->m, sizeof *g->y);
	if (!g->x || !g->y)
		return refuse(r, NULL);
	for (size_t i = 0; i < g->m; i++) {
		if (next_line(r) || read_numbers(r, r->line, v, g->d + 1))
			return -1;
		g->y[i] = v[0];
		memcpy(g->x + i * g->d, v + 1, g->d * sizeof *v);
	}
	return 0;
}

/* Reads the factor, unless the file ends before it. */
static int read_factor(struct gp_file *r, struct gp *g)
{
	const int more = try_line(r);
	if (more <= 0)
		return more;
	if (strcmp(r->line, "factor") != 0)
		return refuse(r, "expected: factor, or the end");
	g->inverse = calloc(g->m * g->m, sizeof *g->inverse);
	g->weight = calloc(g->m, sizeof *g->weight);
	double *v = calloc(g->m + 1, sizeof *v);
	int rc = g->inverse && g->weight && v ? 0 : refuse(r, NULL);
	for (size_t i = 0; rc == 0 && i < g->m; i++) {
		rc = next_line(r) || read_numbers(r, r->line, v, i + 2) ? -1 : 0;
		g->weight[i] = v[0];
		memcpy(g->inverse + i * g->m, v + 1, (i + 1) * sizeof *v);
	}
	free(v);
	return rc;
}

struct gp *gp_read(FILE *f, unsigned *line, const char **why)
{
	struct gp_file r = { .f = f };
	struct gp *g = calloc(1, sizeof *g);
	if (g && (read_header_lines(&r, g) || read_rows(&r, g) || read_factor(&r, g))) {
		gp_free(g);
		g = NULL;
	}
	const int saved = errno;
	free(r.line);
	errno = saved;
	*line = r.number;
	*why = r.why;
	return g;
}

/* ---- Prediction --------------------------------------------------------------------------------------------- */

double gp_covariance(const struct gp *g, const double *a, const double *b)
{
	double square = 0, dot = 0;
	for (size_t j = 0; j < g->d; j++) {
		double v = (a[j] - b[j]) / g->in[j].length;
		square += v * v;
		dot += a[j] * b[j];
	}
	return g->signal * g->signal * exp(-0.5 * square) + g->trend * g->trend * dot;
}

double gp_effect(const struct gp *g, double mean)
{
	return fmax(fabs(mean), 0.1 * g->y_scale);
}

static bool is_out_of_range(const struct gp *g, const double *x)
{
	for (size_t j = 0; j < g->d; j++) {
		/* Tolerance: 0.1 of the range, because the extremes of two runs never agree exactly. */
		double slack = 0.1 * (g->in[j].max - g->in[j].min);
		if (x[j] < g->in[j].min - slack || x[j] > g->in[j].max + slack)
			return true;
	}
	return false;
}

struct gp_prediction gp_interval(const struct gp *g, const double *x, double mean, double variance)
{
	const double min_variance = g->noise * g->noise;
	const double centre = g->y_mean + g->y_scale * mean;
	const double half = hypot(Z95 * sqrt(fmax(variance, min_variance)) * g->y_scale, g->spread * gp_effect(g, centre));
	return (struct gp_prediction){ centre, centre - half, centre + half, is_out_of_range(g, x) };
}

struct gp_prediction gp_predict_row(const struct gp *g, const double *x)
{
	double z[GP_FEATURES], k[GP_ROWS_MAX], mean = 0;
	for (size_t j = 0; j < g->d; j++)
		z[j] = (x[j] - g->in[j].mean) / g->in[j].scale;
	double variance = gp_covariance(g, z, z) + g->noise * g->noise;
	for (size_t i = 0; i < g->m; i++) {
		k[i] = gp_covariance(g, g->x + i * g->d, z);
		mean += k[i] * g->weight[i];
	}
	for (size_t i = 0; i < g->m; i++) {
		const double *row = g->inverse + i * g->m;
		double v[4] = { 0 };  /* four sums, so that the processor adds in parallel */
		size_t c = 0;
		for (; c + 4 <= i + 1; c += 4)
			for (size_t part = 0; part < 4; part++)
				v[part] += row[c + part] * k[c + part];
		for (; c <= i; c++)
			v[0] += row[c] * k[c];
		const double sum = v[0] + v[1] + (v[2] + v[3]);
		variance -= sum * sum;
	}
	return gp_interval(g, x, mean, variance);
}
