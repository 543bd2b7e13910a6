/* ui_top(): a pselect() loop that shows one sample per period. */
#include "ui/top/top.h"

#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "ui/terminal/screen_file.h"
#include "ui/terminal/screen_loop.h"
#include "ui/terminal/signals.h"

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
	struct screen_loop on;
};

/* ---- requests of keys */

/* Runs a program on the terminal. The samples stay. */
static void run_outside(struct top_loop *l, struct error *err)
{
	struct top *t = l->top;
	const size_t first = t->snapshots - top_listed(t);
	screen_loop_leave(&l->on);
	if (t->request == TOP_RECORD)
		t->actions->record(t->actions->arg, top_selected_tid(t), err);
	else
		t->actions->open(t->actions->arg, first + t->cursor - t->rows, -1, err);
	signals_take(SIGINT);  /* it was meant for the program */
	screen_loop_return(&l->on);
}

static void copy_line(struct top_loop *l)
{
	struct top *t = l->top;
	const int y = t->first_line + (int)(t->cursor - t->scroll);
	char *text = NULL;
	size_t size = 0;
	const struct screen line = { .w = l->on.screen.w, .h = 1, .cell = screen_at(&l->on.screen, 0, y) };
	FILE *f = line.cell && t->cursor < t->rows ? open_memstream(&text, &size) : NULL;
	if (!f) {
		snprintf(t->message, sizeof t->message, "no row is selected");
		return;
	}
	screen_dump(&line, f);
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	term_copy(l->on.term, text);
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
	paint_screen(&l->on.screen, PAINT_SVG, l->top->light, "stealscope top", save.f);
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

static void select_line(struct top *t, int y)
{
	t->cursor = t->scroll + (size_t)(y - t->first_line);
	top_follow(t);
}

static void handle_keys(struct top_loop *l)
{
	struct top *t = l->top;
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	for (uint32_t key; !t->quit && (key = screen_loop_key(&l->on, &m)) != 0;) {
		if (key != KEY_CODE_MOUSE) {
			top_key(t, key);
			handle_request(l);
			top_make_rows(t);
		} else if (m.event == MOUSE_PRESS && m.y >= t->first_line && m.y < t->first_line + t->lines) {
			select_line(t, m.y);
		}
	}
}

static void loop_run(struct top_loop *l, unsigned long rounds)
{
	struct top *t = l->top;
	int64_t next = now_ns() + min64(t->period, 3 * NS_PER_S / 10);  /* the first screen comes soon */
	for (unsigned long taken = 0; !t->quit && !l->on.quit;) {
		if (now_ns() >= next) {
			add_sample(t, l->live);
			next = now_ns() + t->period;
			t->quit = rounds && ++taken > rounds;
		}
		t->snapshots = t->actions->flight(t->actions->arg, &t->flight);
		top_draw(t, &l->on.screen);
		if (screen_loop_wait(&l->on, -1, clamp64(next - now_ns(), 0, FLUSH_NS)))
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
	const int rc = screen_loop_begin(&l.on, options, err);
	if (rc == 0) {
		t->light = l.on.theme.light;
		t->palette = l.on.palette;
		t->blocks = l.on.blocks;
		loop_run(&l, rounds);
		screen_loop_end(&l.on);
	}
	for (size_t i = 0; i < TOP_SAMPLES; i++)
		live_sample_release(&t->sample[i]);
	prompt_release(&t->prompt);
	free(t->row);
	free(t);
	return rc;
}
