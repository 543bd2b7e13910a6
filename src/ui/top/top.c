/* ui_top(): a pselect() loop that shows one sample per period. */
#include "ui/top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "ui/input/keys.h"
#include "ui/terminal/signals.h"
#include "ui/terminal/term.h"

#define FLUSH_NS (NS_PER_S / 4)  /* time between two accounts of the waits that go on */

static void move_cursor(struct top *t, int64_t by)
{
	const int64_t to = (int64_t)t->cursor + by;
	t->cursor = (size_t)clamp64(to, 0, t->rows ? (int64_t)t->rows - 1 : 0);
}

static void edit_filter(struct top *t, uint32_t key)
{
	const size_t n = strlen(t->filter);
	if (key == KEY_CODE_ENTER || key == '\n' || key == KEY_CODE_ESC)
		t->filtering = false;
	if (key == KEY_CODE_ESC)
		t->filter[0] = '\0';
	if ((key == KEY_CODE_BACKSPACE || key == 127) && n)
		t->filter[n - 1] = '\0';
	if (key >= 32 && key < 127 && n + 1 < sizeof t->filter) {
		t->filter[n] = (char)key;
		t->filter[n + 1] = '\0';
	}
}

static void walk_back(struct top *t, int by)
{
	if (!t->frozen || (by > 0 && t->back + 1 >= t->samples) || (by < 0 && !t->back)) {
		snprintf(t->message, sizeof t->message, t->frozen ? "no more samples in this direction" :
		         "Space freezes the screen first");
		return;
	}
	t->back = by > 0 ? t->back + 1 : t->back - 1;
}

void top_key(struct top *t, uint32_t key)
{
	t->message[0] = '\0';
	if (t->filtering) {
		edit_filter(t, key);
		return;
	}
	switch (key) {
	case 'q': case KEY_CODE_F1 + 9: case 'c' & 31: t->quit = true; break;
	case '1': case '2': case '3': case '4':
		t->view = (enum top_view)(key - '0');
		t->cursor = t->scroll = 0;
		break;
	case 'j': case KEY_CODE_DOWN: case KEY_CODE_WHEEL_DOWN: move_cursor(t, 1); break;
	case 'k': case KEY_CODE_UP: case KEY_CODE_WHEEL_UP: move_cursor(t, -1); break;
	case KEY_CODE_PGDN: move_cursor(t, t->lines); break;
	case KEY_CODE_PGUP: move_cursor(t, -t->lines); break;
	case KEY_CODE_HOME: t->cursor = 0; break;
	case KEY_CODE_END: move_cursor(t, (int64_t)t->rows); break;
	case KEY_CODE_ENTER: case '\n':
		if (t->detail) {
			t->view = TOP_CULPRITS;
			t->cursor = 0;
		}
		t->detail = !t->detail;
		break;
	case KEY_CODE_ESC: case KEY_CODE_BACKSPACE:
		t->filter[0] = '\0';
		if (!t->detail && t->view == TOP_CULPRITS)
			t->view = TOP_VMS;
		t->detail = false;
		break;
	case '>': case KEY_CODE_F1 + 5: t->sort = (t->sort + 1) % SORTS; break;
	case '<': t->sort = (t->sort + SORTS - 1) % SORTS; break;
	case 'I': t->inverted = !t->inverted; break;
	case '\\': case KEY_CODE_F1 + 3: t->filtering = true; break;
	case 'H': t->show_idle = !t->show_idle; break;
	case ' ':
		t->frozen = !t->frozen;
		t->back = 0;
		break;
	case KEY_CODE_LEFT: walk_back(t, 1); break;
	case KEY_CODE_RIGHT: walk_back(t, -1); break;
	default: return;
	}
	static const char *const sorted_by[] = { "%STEAL", "%RUN", "%THROTL", "max wait", "name" };
	if (key == '<' || key == '>')
		snprintf(t->message, sizeof t->message, "sorted by %s", sorted_by[t->sort]);
}

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
	bool record;
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

static void handle_keys(struct top_loop *l)
{
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	uint32_t key;
	int n = 0;
	while (!l->top->quit && (key = term_key(l->term, &m)) != 0) {
		n++;
		if (key == 'r' && !l->top->filtering)
			l->record = l->top->quit = true;
		else if (key != KEY_CODE_MOUSE)
			top_key(l->top, key);
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

int ui_top(struct live *live, int64_t period, unsigned long rounds, const struct ui_options *options, bool *record,
           struct error *err)
{
	struct top *t = calloc(1, sizeof *t);
	struct top_loop l = { .top = t, .live = live };
	char host[32] = "";
	*record = false;
	if (!t)
		return error_system(err, NULL, "memory");
	t->view = TOP_VMS;
	t->period = period;
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
		*record = l.record;
		term_close(l.term);
		screen_release(&l.screen);
	}
	signals_end();
	for (size_t i = 0; i < TOP_SAMPLES; i++)
		live_sample_release(&t->sample[i]);
	free(t->row);
	free(t);
	return rc;
}
