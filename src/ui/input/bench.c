/* --bench: plays keys on a terminal that writes to a file, and measures each frame.
 *
 * Each tour repeats one kind of movement. A frame is drawn after each key, as the loop in ui.c does. Each step of
 * background work that a key starts counts as a frame of its own, because the next key may have to wait for it. */
#include "base/base.h"
#include "ui/input/script.h"

#include <time.h>
#include <unistd.h>

#include "ui/terminal/term.h"

#define BENCH_WORK_NS 8000000  /* time slice of background work, ns; WORK_NS of ui.c */

/* Tours. before: keys typed once, not measured; keys: keys repeated until there are enough samples. */
static const struct tour {
	const char *name, *before, *keys;
} tours[] = {
	{ "pan", ":50%<Enter>Wa", "ddddddddaaaaaaaa" },
	{ "zoom", ":50%<Enter>0", "wwwwwwwwwwwwssssssssssss" },
	{ "rows", ":50%<Enter>Wg", "jjjjjjjj<PgDn><PgDn><PgUp>jjkkkkkkkk<PgUp>" },
	{ "cursor", ":50%<Enter>", "lllllhhhhh" },
	{ "gaps", ":50%<Enter>", ">>>><<<<}{" },
	{ "fold", "gg", "<Space>j<Space>j<Space>jkk<Space>k<Space>k<Space>" },
	{ "sort", "0", "oooo" },
	{ "hide idle", "0", "H" },
	{ "filter", "0", "\\4711<BS><BS><BS><BS><Esc>" },
	{ "search", "0", "/zzz<BS><BS><BS>-4711<Enter>nnN" },
};

struct timings { double *v; unsigned n; };

struct bench {
	struct app *app;
	struct terminal *term;
	struct screen screen;
	FILE *out;
	off_t at;
	unsigned samples_max;             /* samples of each kind that a tour collects */
	struct timings ms, cpu, bytes;
};

static double clock_ms(clockid_t id)
{
	return (double)clock_ns(id) / 1e6;
}

static double percentile(struct timings *s, unsigned per_cent)
{
	return s->n ? s->v[(s->n - 1) * per_cent / 100] : 0;
}

static void add_sample(struct bench *b, struct timings *s, double v)
{
	if (s->n < b->samples_max)
		s->v[s->n++] = v;
}

/* Measures one frame, from the key (0: a step of background work) to the last byte written; collects samples if
 * `record`. Returns true if background work is left. */
static bool measure_frame(struct bench *b, uint32_t key, bool record)
{
	double wall = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID);
	bool changed = true, more = true;
	if (key)
		viewer_key(b->app, key);
	else
		more = viewer_work(b->app, BENCH_WORK_NS, &changed);
	if (changed) {
		viewer_draw(b->app, &b->screen);
		term_show(b->term, &b->screen);
	}
	off_t at = lseek(fileno(b->out), 0, SEEK_CUR);
	if (record && (more || changed)) {
		add_sample(b, &b->ms, clock_ms(CLOCK_MONOTONIC) - wall);
		add_sample(b, &b->cpu, clock_ms(CLOCK_THREAD_CPUTIME_ID) - cpu);
		if (changed)
			add_sample(b, &b->bytes, (double)(at - b->at));
	}
	b->at = at;
	return more;
}

static void type_keys(struct bench *b, const char *keys, bool record)
{
	uint32_t key;
	while (*keys && (key = key_parse(&keys)) != 0) {
		measure_frame(b, key, record);
		while (measure_frame(b, 0, record))
			;
	}
}

static void run_tour(struct bench *b, const struct tour *tour)
{
	b->ms.n = b->cpu.n = b->bytes.n = 0;
	type_keys(b, tour->before, false);
	while (b->ms.n < b->samples_max)
		type_keys(b, tour->keys, true);
	qsort(b->ms.v, b->ms.n, sizeof(double), order_double);
	qsort(b->cpu.v, b->cpu.n, sizeof(double), order_double);
	if (b->bytes.n)
		qsort(b->bytes.v, b->bytes.n, sizeof(double), order_double);
	printf("%-10s %8.2f %8.2f %8.2f   %8.2f %8.2f   %8.0f %8.0f\n", tour->name, percentile(&b->ms, 50), percentile(&b->ms,
	                                                                                                               99),
	       percentile(&b->ms, 100), percentile(&b->cpu, 50), percentile(&b->cpu, 99), percentile(&b->bytes, 50),
	       	percentile(&b->bytes, 99));
}

/* Returns the anonymous memory of the process (without the mapped history), MiB; < 0: unknown. */
static double anonymous_memory(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;
	while (f && kib < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtol(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return kib < 0 ? -1 : (double)kib / 1024;
}

static void run_all(struct bench *b)
{
	double began = clock_ms(CLOCK_MONOTONIC);
	while (measure_frame(b, 0, false))
		;
	printf("%dx%d, theme %s, %u frames each; %u threads, read in %.1f ms\n", b->app->w, b->app->h_cells,
	       b->app->appearance.theme.name, b->samples_max, b->app->catalog.threads, clock_ms(CLOCK_MONOTONIC) - began);
	printf("%-10s %26s   %17s   %17s\n", "", "key to last byte, ms", "CPU, ms", "bytes");
	printf("%-10s %8s %8s %8s   %8s %8s   %8s %8s\n", "", "median", "p99", "max", "median", "p99", "median", "p99");
	for (size_t i = 0; i < sizeof tours / sizeof *tours; i++)
		run_tour(b, &tours[i]);
	double mib = anonymous_memory();
	if (mib >= 0)
		printf("memory beyond the mapped file: %.1f MiB\n", mib);
}

int bench_run(struct app *app, unsigned frames, struct error *err)
{
	FILE *out = tmpfile();
	const char *type = getenv("TERM");
	if (!type || !*type || strcmp(type, "dumb") == 0)
		type = "xterm-256color";
	if (!out)
		return error_system(err, NULL, "temporary file");
	struct bench b = { .app = app, .out = out, .samples_max = frames, .term = term_open(out, stdin, type, err) };
	if (!b.term) {
		fclose(out);
		return -1;
	}
	if (app->appearance.depth > term_depth(b.term))
		appearance_set_depth(app, term_depth(b.term));
	b.ms.v = mem_new(frames, sizeof(double));
	b.cpu.v = mem_new(frames, sizeof(double));
	b.bytes.v = mem_new(frames, sizeof(double));
	term_resize(b.term, app->w, app->h_cells);
	screen_resize(&b.screen, app->w, app->h_cells);
	run_all(&b);
	term_close(b.term);
	screen_release(&b.screen);
	fclose(out);
	free(b.ms.v);
	free(b.cpu.v);
	free(b.bytes.v);
	return 0;
}
