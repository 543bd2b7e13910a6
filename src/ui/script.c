#include "ui/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "ui/term.h"

static void finish_work(struct app *app)
{
	bool changed;
	while (app_work(app, 1000000000, &changed))
		;
}

/* A frame is drawn after each line, as on a terminal: scrolling and panes come into being by drawing. */
static void press(struct app *app, const char *keys, bool skip_spaces)
{
	uint32_t key;
	while (*keys && !app->quit) {
		if (skip_spaces && *keys == ' ') {
			keys++;
			continue;
		}
		key = key_parse(&keys);
		if (!key)
			break;
		app_key(app, key);
	}
}

static int run_line(struct app *app, struct screen *s, const char *line)
{
	if (line[0] == ':') {
		if (strncmp(line, ":screen", 7) != 0)  /* it keeps what was said last, too */
			app->message[0] = '\0';
		app->message_is_error = false;
		command_run(app, line);
	} else if (strncmp(line, "key ", 4) == 0) {
		press(app, line + 4, true);
	} else {
		press(app, line, false);
	}
	finish_work(app);
	app_draw(app, s);
	return app->message_is_error ? -1 : 0;
}

int script_run(struct app *app, const char *file, struct error *err)
{
	FILE *f = fopen(file, "re");
	if (!f)
		return error_system(err, NULL, "%s", file);
	struct screen s = { 0 };
	char *line = NULL;
	size_t cap = 0, number = 0;
	ssize_t n;
	int status = 0;
	screen_resize(&s, app->w, app->h_cells);
	finish_work(app);
	app_draw(app, &s);
	while (status == 0 && !app->quit && (n = getline(&line, &cap, f)) >= 0) {
		number++;
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (line[0] == '\0' || line[0] == '#')
			continue;
		status = run_line(app, &s, line);
	}
	if (status < 0)
		error_set(err, STATUS_INPUT, NULL, "%s:%zu: %s", file, number, app->message);
	free(line);
	screen_release(&s);
	fclose(f);
	return status;
}

/* ---- Benchmark ------------------------------------------------------------------------------------------------- */

static double now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void report(const char *what, double *v, unsigned n)
{
	qsort(v, n, sizeof *v, by_value);
	printf("%-10s min %10.2f  median %10.2f  p99 %10.2f  max %10.2f\n", what, v[0], v[n / 2], v[(n - 1) * 99 / 100],
	       v[n - 1]);
}

/* A tour: zoomed in on the middle, then pans to and fro, moves over rows, zooms, folds. */
static uint32_t bench_key(unsigned i)
{
	static const char tour[] = "ddddddddjjjjwwssaaaaaaaakkkk";
	return (uint32_t)(unsigned char)tour[i % (sizeof tour - 1)];
}

int bench_run(struct app *app, unsigned frames, struct error *err)
{
	FILE *out = tmpfile();
	const char *type = getenv("TERM");
	if (!type || !*type || strcmp(type, "dumb") == 0)
		type = "xterm-256color";
	if (!out)
		return error_system(err, NULL, "temporary file");
	struct terminal *t = term_open(out, stdin, type, err);
	if (!t) {
		fclose(out);
		return -1;
	}
	struct screen s = { 0 };
	double *ms = mem_new(frames, sizeof *ms), *bytes = mem_new(frames, sizeof *bytes);
	double *cpu = mem_new(frames, sizeof *cpu), began = now_ms(), used;
	term_resize(t, app->w, app->h_cells);
	screen_resize(&s, app->w, app->h_cells);
	finish_work(app);
	double survey = now_ms() - began;
	view_zoom(&app->view, &app->ground, 1, 64);
	app_draw(app, &s);
	term_show(t, &s);
	off_t at = lseek(fileno(out), 0, SEEK_CUR);
	for (unsigned i = 0; i < frames; i++) {
		began = now_ms();
		used = cpu_ms();
		app_key(app, bench_key(i));
		app_draw(app, &s);
		term_show(t, &s);
		ms[i] = now_ms() - began;
		cpu[i] = cpu_ms() - used;
		off_t now = lseek(fileno(out), 0, SEEK_CUR);
		bytes[i] = (double)(now - at);
		at = now;
	}
	term_close(t);
	screen_release(&s);
	fclose(out);
	printf("%dx%d, theme %s, %u frames, %u threads surveyed in %.1f ms\n", app->w, app->h_cells, app->theme.name,
	       frames, app->topo.threads, survey);
	report("ms/frame", ms, frames);
	report("cpu ms", cpu, frames);
	report("bytes", bytes, frames);
	free(cpu);
	free(ms);
	free(bytes);
	return 0;
}
