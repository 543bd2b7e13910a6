/* Writes and reads the text files of models; base/gp_model.c describes the format. */
#include "latency/gp.h"

#include <locale.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/file_open.h"

static void write_name(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc((unsigned char)*name <= ' ' ? '_' : *name, f);
}

static void write_row(FILE *f, double first, const double *more, size_t n)
{
	fprintf(f, "%.17g", first);
	for (size_t i = 0; i < n; i++)
		fprintf(f, " %.17g", more[i]);
	fputc('\n', f);
}

static void write_model(FILE *f, const struct gp *g)
{
	fprintf(f, GP_HEADER "\n");
	for (size_t j = 0; j < g->d; j++) {
		const struct gp_input *in = &g->in[j];
		fprintf(f, "input ");
		write_name(f, *in->name ? in->name : "_");
		fprintf(f, " %.17g %.17g %.17g %.17g %.17g\n", in->mean, in->scale, in->min, in->max, in->length);
	}
	fprintf(f, "target %.17g %.17g\n", g->y_mean, g->y_scale);
	fprintf(f, "kernel %.17g %.17g %.17g %.17g\n", g->signal, g->trend, g->noise, g->spread);
	fprintf(f, "rows %zu\n", g->m);
	for (size_t i = 0; i < g->m; i++)
		write_row(f, g->y[i], g->x + i * g->d, g->d);
	fprintf(f, "factor\n");
	for (size_t i = 0; i < g->m; i++)
		write_row(f, g->weight[i], g->inverse + i * g->m, i + 1);
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
	return file_begins_with(path, GP_HEADER, sizeof GP_HEADER - 1);
}

struct gp *gp_load(const char *path, struct error *err)
{
	FILE *f = file_open(path);
	unsigned line = 0;
	const char *why = NULL;
	if (!f) {
		error_read(err, "make one with: stealscope latency train", "%s", path);
		return NULL;
	}
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(c);
	struct gp *g = gp_read(f, &line, &why);
	uselocale(before);
	freelocale(c);
	if (!g && why)
		error_set(err, STATUS_INPUT, "train the model again", "%s:%u: %s", path, line, why);
	else if (!g)
		error_system(err, NULL, "%s", path);
	fclose(f);
	/* Models of earlier versions have no factor. */
	if (g && !g->inverse && gp_prepare(g, err)) {
		error_wrap(err, "%s", path);
		gp_free(g);
		return NULL;
	}
	return g;
}
