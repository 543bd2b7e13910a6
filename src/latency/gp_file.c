/* Models as text files:
 *
 *     stealscope-model 1
 *     input NAME MEAN SCALE MIN MAX LENGTH        one line per input; NAME has no white space
 *     target MEAN SCALE
 *     kernel SIGNAL TREND NOISE SPREAD
 *     rows M
 *     Y X1 X2 ...                                 M lines, standardized
 *
 * Numbers have 17 digits, so that reading restores exactly the same model. The file is untrusted: every count is limited
 * before memory is allocated, and every number must be finite. */
#include "latency/gp.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_open.h"
#include "base/mem.h"
#include "base/atomic_file.h"

#define HEADER "stealscope-model 1"

static void write_name(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc((unsigned char)*name <= ' ' ? '_' : *name, f);
}

static void write_model(FILE *f, const struct gp *g)
{
	fprintf(f, HEADER "\n");
	for (size_t j = 0; j < g->d; j++) {
		const struct gp_input *in = &g->in[j];
		fprintf(f, "input ");
		write_name(f, *in->name ? in->name : "_");
		fprintf(f, " %.17g %.17g %.17g %.17g %.17g\n", in->mean, in->scale, in->min, in->max, in->length);
	}
	fprintf(f, "target %.17g %.17g\n", g->y_mean, g->y_scale);
	fprintf(f, "kernel %.17g %.17g %.17g %.17g\n", g->signal, g->trend, g->noise, g->spread);
	fprintf(f, "rows %zu\n", g->m);
	for (size_t i = 0; i < g->m; i++) {
		fprintf(f, "%.17g", g->y[i]);
		for (size_t j = 0; j < g->d; j++)
			fprintf(f, " %.17g", g->x[i * g->d + j]);
		fputc('\n', f);
	}
}

int gp_save(const struct gp *g, const char *path, struct error *err)
{
	struct save save;
	if (atomic_file_begin(&save, path, err) < 0)
		return -1;
	/* The number format must not depend on the user's locale. */
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(c);
	write_model(save.f, g);
	uselocale(before);
	freelocale(c);
	return atomic_file_end(&save, 0, err);
}

bool gp_is_model_file(const char *path)
{
	return file_begins_with(path, HEADER, sizeof HEADER - 1);
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct line_reader {
	FILE *f;
	const char *path;
	char *line;
	size_t size;
	unsigned number;         /* number of the current line, starting at 1 */
};

static int line_error(const struct line_reader *r, const char *why, struct error *err)
{
	return error_set(err, STATUS_INPUT, "train the model again", "%s:%u: %s", r->path, r->number, why);
}

static int next_line(struct line_reader *r, struct error *err)
{
	r->number++;
	ssize_t n = getline(&r->line, &r->size, r->f);
	if (n < 0)
		return ferror(r->f) ? error_system(err, NULL, "%s", r->path) : line_error(r, "the model ends too early", err);
	if (n > 0 && r->line[n - 1] == '\n')
		r->line[n - 1] = '\0';
	return 0;
}

/* Parses exactly n finite numbers. */
static int read_numbers(const struct line_reader *r, const char *s, double *out, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		char *end;
		out[i] = strtod(s, &end);
		if (end == s || !isfinite(out[i]))
			return line_error(r, "a finite number is missing", err);
		s = end;
	}
	return s[strspn(s, " \t\r")] ? line_error(r, "more numbers than expected", err) : 0;
}

static int read_input(struct line_reader *r, struct gp_input *in, struct error *err)
{
	char *name = r->line + strlen("input ");
	size_t n = strcspn(name, " ");
	if (n == 0 || n >= sizeof in->name)
		return line_error(r, "an input's name is missing or too long", err);
	memcpy(in->name, name, n);
	in->name[n] = '\0';
	double v[5];
	if (read_numbers(r, name + n, v, 5, err))
		return -1;
	if (!(v[1] > 0) || v[2] > v[3] || !(v[4] > 0))
		return line_error(r, "scale and length must be above 0, MIN at most MAX", err);
	in->mean = v[0], in->scale = v[1], in->min = v[2], in->max = v[3], in->length = v[4];
	return 0;
}

static bool line_starts_with(const struct line_reader *r, const char *word)
{
	return strncmp(r->line, word, strlen(word)) == 0;
}

/* Reads all lines up to "rows". *m: number of rows that follow. */
static int read_header_lines(struct line_reader *r, struct gp *head, size_t *m, struct error *err)
{
	double v[4];
	if (next_line(r, err))
		return -1;
	if (strcmp(r->line, HEADER) != 0)
		return line_error(r, "not a stealscope model, or a model of a later version", err);
	for (;;) {
		if (next_line(r, err))
			return -1;
		if (!line_starts_with(r, "input "))
			break;
		if (head->d == GP_FEATURES)
			return line_error(r, "too many inputs", err);
		if (read_input(r, &head->in[head->d++], err))
			return -1;
	}
	if (!head->d || !line_starts_with(r, "target ") || read_numbers(r, r->line + 7, v, 2, err) || v[1] < 0)
		return line_error(r, "expected: target MEAN SCALE", err);
	head->y_mean = v[0], head->y_scale = v[1];
	if (next_line(r, err))
		return -1;
	if (!line_starts_with(r, "kernel ") || read_numbers(r, r->line + 7, v, 4, err) || !(v[2] > 0) || v[3] < 0)
		return line_error(r, "expected: kernel SIGNAL TREND NOISE SPREAD", err);
	head->signal = v[0], head->trend = v[1], head->noise = v[2], head->spread = v[3];
	if (next_line(r, err))
		return -1;
	if (!line_starts_with(r, "rows ") || read_numbers(r, r->line + 5, v, 1, err) || v[0] < 1 || v[0] > GP_ROWS_MAX)
		return line_error(r, "expected: rows 1..2048", err);
	*m = (size_t)v[0];
	return 0;
}

static struct gp *read_model(struct line_reader *r, struct error *err)
{
	struct gp head = { 0 };
	size_t m = 0;
	if (read_header_lines(r, &head, &m, err))
		return NULL;
	struct gp *g = gp_new(head.d, m);
	memcpy(g->in, head.in, sizeof g->in);
	g->y_mean = head.y_mean, g->y_scale = head.y_scale;
	g->signal = head.signal, g->trend = head.trend, g->noise = head.noise, g->spread = head.spread;
	double v[GP_FEATURES + 1];
	for (size_t i = 0; i < m; i++) {
		if (next_line(r, err) || read_numbers(r, r->line, v, g->d + 1, err)) {
			gp_free(g);
			return NULL;
		}
		g->y[i] = v[0];
		memcpy(g->x + i * g->d, v + 1, g->d * sizeof *v);
	}
	if (gp_prepare(g, err)) {
		error_wrap(err, "%s", r->path);
		gp_free(g);
		return NULL;
	}
	return g;
}

struct gp *gp_load(const char *path, struct error *err)
{
	struct line_reader r = { file_open(path), path, NULL, 0, 0 };
	if (!r.f) {
		error_read(err, "make one with: stealscope latency train", "%s", path);
		return NULL;
	}
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(c);
	struct gp *g = read_model(&r, err);
	uselocale(before);
	freelocale(c);
	free(r.line);
	fclose(r.f);
	return g;
}
