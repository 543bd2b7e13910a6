/* ui_top(): a pselect() loop that shows one sample per period. */
#include "ui/top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "ui/input/keys.h"
#include "ui/terminal/screen_file.h"
#include "ui/terminal/signals.h"
#include "ui/terminal/term.h"

#define FLUSH_NS (NS_PER_S / 4)  /* time between two accounts of the waits that go on */

static void add_sample(struct top *t, struct live *l)
{
	const size_t at = t->samples ? (t->newest + 1) % TOP_SAMPLES : 0;
	live_sample_release(&t->sample[at]);
	live_take(l, &t->sample[at]);
	t->newest = at;
	if (t->samples < TOP_SAMPLES)
		t->samples++;
	if (t->frozen && t->back + 1 < t->samples)
		t->back++;
}

struct top_loop {
	struct top *top;
	struct live *live;
	struct terminal *term;
	struct screen screen;
	sigset_t during;
	int empty_reads;
};

static void resize(struct top_loop *l)
{
	int w = l->screen.w, h = l->screen.h;
	term_measure(STDOUT_FILENO, &w, &h);
	term_resize(l->term, w, h);
	screen_resize(&l->screen, w, h);
}

static void handle_signals(struct top_loop *l)
{
	if (signals_take(SIGTSTP)) {
		term_suspend(l->term);
		signals_stop_self();
		signals_take(SIGCONT);
		term_resume(l->term);
		resize(l);
	}
	if (signals_take(SIGCONT)) {
		term_resume(l->term);
		resize(l);
	}
	if (signals_take(SIGWINCH))
		resize(l);
	if (signals_take(SIGINT))
		l->top->quit = true;
}

/* ---- requests of keys */

/* Runs a program on the terminal. The samples stay. */
static void run_outside(struct top_loop *l, struct error *err)
{
	struct top *t = l->top;
	const size_t first = t->snapshots - top_listed(t);
	term_suspend(l->term);
	if (t->request == TOP_RECORD)
		t->actions->record(t->actions->arg, top_selected_tid(t), err);
	else
		t->actions->open(t->actions->arg, first + t->cursor - t->rows, -1, err);
	signals_take(SIGINT);  /* it was meant for the program */
	term_resume(l->term);
	resize(l);
}

static void copy_line(struct top_loop *l)
{
	struct top *t = l->top;
	const int y = t->first_line + (int)(t->cursor - t->scroll);
	char *text = NULL;
	size_t size = 0;
	const struct screen line = { .w = l->screen.w, .h = 1, .cell = screen_at(&l->screen, 0, y) };
	FILE *f = line.cell && t->cursor < t->rows ? open_memstream(&text, &size) : NULL;
	if (!f) {
		snprintf(t->message, sizeof t->message, "no row is selected");
		return;
	}
	screen_dump(&line, f);
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	term_copy(l->term, text);
	snprintf(t->message, sizeof t->message, "copied");
	free(text);
}

static int write_picture(struct top_loop *l, struct error *err)
{
	char file[64];
	struct save save;
	struct tm tm;
	const time_t now = time(NULL);
	localtime_r(&now, &tm);
	strftime(file, sizeof file, "stealscope-top-%Y%m%d-%H%M%S.svg", &tm);
	if (access(file, F_OK) == 0)
		return error_set(err, STATUS_USAGE, "wait a second", "%s: file exists", file);
	if (atomic_file_begin(&save, file, err) < 0)
		return -1;
	paint_screen(&l->screen, PAINT_SVG, l->top->theme.light, "stealscope top", save.f);
	snprintf(l->top->message, sizeof l->top->message, "wrote %s", file);
	return atomic_file_end(&save, 0, err);
}

static void handle_request(struct top_loop *l)
{
	struct top *t = l->top;
	struct error err = ERROR_INIT;
	switch (t->request) {
	case TOP_NOTHING: return;
	case TOP_RECORD: case TOP_OPEN: run_outside(l, &err); break;
	case TOP_ARM: t->actions->arm(t->actions->arg, t->prompt.text, &err); break;
	case TOP_COPY: copy_line(l); break;
	case TOP_PICTURE: write_picture(l, &err); break;
	}
	t->request = TOP_NOTHING;
	if (err.text[0])
		snprintf(t->message, sizeof t->message, "%s", err.text);
}

static void handle_key(struct top_loop *l, uint32_t key)
{
	if (key == ('l' & 31))
		term_redraw(l->term);
	else
		top_key(l->top, key);
	handle_request(l);
	top_make_rows(l->top);
}

static void handle_keys(struct top_loop *l)
{
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	uint32_t key;
	int n = 0;
	while (!l->top->quit && (key = term_key(l->term, &m)) != 0) {
		n++;
		if (key != KEY_CODE_MOUSE)
			handle_key(l, key);
		else if (m.event == MOUSE_PRESS && m.y >= l->top->first_line && m.y < l->top->first_line + l->top->lines)
			l->top->cursor = l->top->scroll + (size_t)(m.y - l->top->first_line);
	}
	if (n == 0 && ++l->empty_reads > 50)  /* the terminal hung up */
		l->top->quit = true;
	if (n)
		l->empty_reads = 0;
}

static void loop_run(struct top_loop *l, unsigned long rounds)
{
	int64_t next = now_ns() + l->top->period / 4;  /* the first screen comes soon */
	for (unsigned long taken = 0; !l->top->quit;) {
		if (now_ns() >= next) {
			add_sample(l->top, l->live);
			next = now_ns() + l->top->period;
			l->top->quit = rounds && ++taken > rounds;
		}
		l->top->snapshots = l->top->actions->flight(l->top->actions->arg, &l->top->flight);
		top_draw(l->top, &l->screen);
		term_show(l->term, &l->screen);
		fd_set in;
		FD_ZERO(&in);
		FD_SET(STDIN_FILENO, &in);
		const struct timespec wait = timespec_of(clamp64(next - now_ns(), 0, FLUSH_NS));
		const int n = pselect(STDIN_FILENO + 1, &in, NULL, NULL, &wait, &l->during);
		if (n < 0 && errno != EINTR)
			l->top->quit = true;
		handle_signals(l);
		if (n > 0)
			handle_keys(l);
		live_flush(l->live);
	}
}

int ui_top(struct live *live, int64_t period, unsigned long rounds, const struct ui_options *options,
           const struct ui_top_actions *actions, struct error *err)
{
	struct top *t = calloc(1, sizeof *t);
	struct top_loop l = { .top = t, .live = live };
	char host[32] = "";
	if (!t)
		return error_system(err, NULL, "memory");
	t->view = TOP_VMS;
	t->period = period;
	t->actions = actions;
	t->flight = "";
	gethostname(host, sizeof host - 1);
	text_escape(t->host, sizeof t->host, host);
	if (theme_load(&t->theme, options->theme, err) < 0) {
		free(t);
		return -1;
	}
	signals_begin(&l.during);
	l.term = term_open(stdout, stdin, NULL, err);
	int rc = l.term ? 0 : -1;
	if (l.term) {
		const char *no_color = getenv("NO_COLOR");
		int w = 80, h = 24;
		signals_guard(STDOUT_FILENO, term_restore_text(l.term));
		theme_palette(&t->theme, no_color && *no_color ? DEPTH_MONO : term_depth(l.term), &t->palette);
		t->blocks = term_has_blocks(l.term) && !(options->glyphs && strcmp(options->glyphs, "blocks") != 0);
		term_mouse(l.term, true);
		term_size(l.term, &w, &h);
		screen_resize(&l.screen, w, h);
		loop_run(&l, rounds);
		term_close(l.term);
		screen_release(&l.screen);
	}
	signals_end();
	for (size_t i = 0; i < TOP_SAMPLES; i++)
		live_sample_release(&t->sample[i]);
	prompt_release(&t->prompt);
	free(t->row);
	free(t);
	return rc;
}
