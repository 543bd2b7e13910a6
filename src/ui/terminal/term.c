/* Terminal output and keys through ncurses. See term.h.
 *
 * Colour pairs come from alloc_pair(), which recycles the oldest pair; the palette is never changed. ncurses computes
 * the differences between frames; a copy of the last frame avoids calls for unchanged cells. */
#include "ui/terminal/term.h"

#define _XOPEN_SOURCE_EXTENDED 1
#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/terminal_type.h"
#include "ui/input/keys.h"
#include "ui/terminal/background.h"
#include "ui/terminal/screen_file.h"
#include "ui/terminal/terminfo_fallback.h"

#define RESTORE_MAX_BYTES 512
#define ANSWER_NS 200000000  /* time at the end for which an answer of the terminal is awaited, ns */

struct terminal {
	SCREEN *screen;
	FILE *out;
	enum depth depth;
	bool default_colours, utf8, blocks, has_mouse, mouse;
	bool has_rgb;         /* colours are numbers 0xRRGGBB, but those below 8 are indices */
	bool button_down;     /* the first mouse button is pressed */
	bool asked;           /* the terminal still owes the answer to BACKGROUND_QUESTION */
	bool in_osc;          /* an OSC sequence began, and its end was not read yet */
	struct osc osc;
	char restore[RESTORE_MAX_BYTES];
	struct screen last_frame;  /* copy of the last frame */
};

/* Appends a terminfo capability without its padding ("$<5>"). */
static void add_capability(char *buf, size_t size, const char *name)
{
	char cap[8];
	snprintf(cap, sizeof cap, "%s", name);
	const char *s = tigetstr(cap);
	size_t used = strlen(buf);
	if (!s || s == (const char *)-1)
		return;
	while (*s && used + 1 < size) {
		const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
		if (end)
			s = end + 1;
		else
			buf[used++] = *s++;
	}
	buf[used] = '\0';
}

static void build_restore(struct terminal *t)
{
	static const char *const caps[] = { "sgr0", "op", "rmkx", "cnorm", "rmcup" };
	char kmous[] = "kmous";
	const char *mouse = tigetstr(kmous);
	t->has_mouse = mouse && mouse != (char *)-1;
	if (t->has_mouse)
		snprintf(t->restore, sizeof t->restore, "\033[?1002l\033[?1006l");
	for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
		add_capability(t->restore, sizeof t->restore, caps[i]);
}

const char *term_restore_text(const struct terminal *t)
{
	return t->restore;
}

/* Returns the type with direct colour for a terminal that announces it ($COLORTERM), static; NULL: none. */
static const char *direct_type(const char *name)
{
	static const char *const direct[] = { "xterm-direct", "tmux-direct", "foot-direct", "konsole-direct", "vte-direct",
		"alacritty-direct", "st-direct", "contour-direct", "mintty-direct" };
	const char *colour = getenv("COLORTERM");
	if (!colour || (strcmp(colour, "truecolor") != 0 && strcmp(colour, "24bit") != 0))
		return NULL;
	for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
		const size_t n = strcspn(direct[i], "-");
		if (strncmp(name, direct[i], n) == 0 && (!name[n] || strcmp(name + n, "-256color") == 0))
			return direct[i];
	}
	return NULL;
}

/* Loads the description of the terminal type from the database, or a compiled-in one. *type NULL: $TERM. Sets *type to
 * the description's name. */
static int load_description(const char **type, int fd, struct error *err)
{
	int found = 0;
	const char *name = *type ? *type : getenv("TERM");
	if (!name || !*name)
		return error_set(err, STATUS_SYSTEM, "set TERM, or use --script", "the viewer: TERM is not set");
	*type = *type ? NULL : direct_type(name);
	if (*type && setupterm(*type, fd, &found) == OK)
		return 0;
	*type = name;
	if (setupterm(name, fd, &found) == OK)
		return 0;
	*type = terminfo_fallback(name);
	if (*type && setupterm(*type, fd, &found) == OK)
		return 0;
	return error_set(err, STATUS_SYSTEM, "set TERM to a known terminal type, e.g. xterm-256color",
	                 "the viewer: unknown terminal type %s", name);
}

int term_check(const char *type, int fd, struct error *err)
{
	const char *name = type;
	if (load_description(&name, fd, err))
		return -1;
	char cup_name[] = "cup", clear_name[] = "clear";
	const char *cup = tigetstr(cup_name), *erase_all = tigetstr(clear_name);
	bool usable = cup && cup != (char *)-1 && erase_all && erase_all != (char *)-1;
	del_curterm(cur_term);
	return usable ? 0 : error_set(err, STATUS_SYSTEM, "use the commands flow, gaps and steal, or another TERM",
	                            "the viewer: terminal %s cannot move its cursor", name);
}

static void choose_colours(struct terminal *t)
{
	if (!has_colors() || start_color() != OK || COLORS < 8) {
		t->depth = DEPTH_MONO;
		return;
	}
	t->default_colours = use_default_colors() == OK;
	t->has_rgb = COLORS > 256;
	t->depth = COLORS >= 256 ? DEPTH_256 : COLORS >= 16 ? DEPTH_16 : DEPTH_8;
}

struct terminal *term_open(FILE *out, FILE *in, const char *type, struct error *err)
{
	const char *name = type;
	if (term_check(type, fileno(out), err) < 0 || load_description(&name, fileno(out), err))
		return NULL;
	del_curterm(cur_term);
	struct terminal *t = mem_new(1, sizeof *t);
	t->out = out;
	t->screen = newterm(name, out, in);
	if (!t->screen) {
		error_set(err, STATUS_SYSTEM, "set TERM, or use --script", "the viewer: cannot initialize the terminal");
		free(t);
		return NULL;
	}
	set_term(t->screen);
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	leaveok(stdscr, FALSE);
	curs_set(0);
	choose_colours(t);
	t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	t->blocks = t->utf8 && t->depth != DEPTH_MONO && strncmp(name, "linux", 5) != 0;
	build_restore(t);
	t->asked = t->depth != DEPTH_MONO && terminal_skips_osc(fileno(out)) && isatty(fileno(in));
	if (t->asked) {
		fputs(BACKGROUND_QUESTION, out);
		fflush(out);
	}
	return t;
}

/* Leaves the screen. A terminal without an alternate screen keeps the last frame: clears the last line, on which the
 * shell continues. */
static void leave_screen(void)
{
	const char *second = tigetstr("rmcup");
	if (!second || second == (char *)-1) {
		move(LINES - 1, 0);
		clrtoeol();
		refresh();
	}
	endwin();
}

enum depth term_depth(const struct terminal *t)
{
	return t->depth;
}

bool term_has_blocks(const struct terminal *t)
{
	return t->blocks;
}

void term_size(const struct terminal *t, int *w, int *h)
{
	(void)t;
	getmaxyx(stdscr, *h, *w);
}

void term_measure(int fd, int *w, int *h)
{
	struct winsize ws;
	if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0) {
		*w = ws.ws_col;
		*h = ws.ws_row;
	}
}

void term_resize(struct terminal *t, int w, int h)
{
	resizeterm(h, w);
	term_redraw(t);
}

void term_redraw(struct terminal *t)
{
	screen_release(&t->last_frame);
	clearok(curscr, TRUE);
}

static attr_t attributes_of(uint16_t attr)
{
	attr_t a = A_NORMAL;
	a |= attr & ATTR_BOLD ? A_BOLD : 0;
	a |= attr & ATTR_REVERSE ? A_REVERSE : 0;
	a |= attr & ATTR_UNDERLINE ? A_UNDERLINE : 0;
	a |= attr & ATTR_DIM ? A_DIM : 0;
	return a;
}

static int rgb_of(int index)
{
	const struct rgb c = screen_colour(index);
	const int number = (int)(c.r << 16 | c.g << 8 | c.b);
	return index < 8 ? index : number < 8 ? 8 : number;
}

static int pair_of(const struct terminal *t, struct style style)
{
	if (t->depth == DEPTH_MONO || (style.fg < 0 && style.bg < 0))
		return 0;
	int fg = style.fg, bg = style.bg;
	if (!t->default_colours) {
		fg = fg < 0 ? COLOR_WHITE : fg;
		bg = bg < 0 ? COLOR_BLACK : bg;
	}
	int pair = t->has_rgb ? alloc_pair(rgb_of(fg), rgb_of(bg)) : alloc_pair(fg, bg);
	return pair < 0 ? 0 : pair;
}

static void put_glyph(const struct terminal *t, int x, int y, const struct glyph *g)
{
	cchar_t cc;
	wchar_t text[1 + COMBINING_MAX + 1] = { (wchar_t)g->ch };
	int pair = pair_of(t, g->style);
	for (int i = 0; i < COMBINING_MAX; i++)
		text[1 + i] = (wchar_t)g->combining[i];
	if (!t->utf8 && g->ch >= 0x80) {
		text[0] = '?';
		text[1] = 0;
	}
	if (setcchar(&cc, text, attributes_of(g->style.attr), (short)(pair < 256 ? pair : 0), &pair) == OK)
		mvadd_wch(y, x, &cc);
}

static bool same_glyph(const struct glyph *a, const struct glyph *b)
{
	return a->ch == b->ch && a->style.fg == b->style.fg && a->style.bg == b->style.bg &&
	       a->style.attr == b->style.attr && memcmp(a->combining, b->combining, sizeof a->combining) == 0;
}

void term_show(struct terminal *t, const struct screen *s)
{
	bool fresh = t->last_frame.w != s->w || t->last_frame.h != s->h;
	if (fresh) {
		screen_resize(&t->last_frame, s->w, s->h);
		erase();
	}
	for (int y = 0; y < s->h; y++) {
		for (int x = 0; x < s->w; x++) {
			const struct glyph *g = &s->cell[y * s->w + x];
			struct glyph *old = &t->last_frame.cell[y * s->w + x];
			if (g->ch != 0 && (fresh || !same_glyph(g, old)))
				put_glyph(t, x, y, g);
			*old = *g;
		}
	}
	curs_set(s->cursor_x >= 0);
	if (s->cursor_x >= 0)
		move(s->cursor_y, s->cursor_x);
	else
		move(s->h - 1, 0);
	refresh();
}

static void write_mouse(struct terminal *t, bool on)
{
	fputs(on ? "\033[?1002h\033[?1006h" : t->has_mouse ? "\033[?1002l\033[?1006l" : "", t->out);
	fflush(t->out);
}

/* The reports of buttons and motions in the form SGR (1006), which has columns past 223; tmux has it, though its terminfo
 * describes the old form. */
void term_mouse(struct terminal *t, bool on)
{
	if (on == t->mouse || !t->has_mouse)
		return;
	t->mouse = on;
	write_mouse(t, on);
}

void term_copy(struct terminal *t, const char *text)
{
	char *coded = base64_encode(text, strlen(text));
	flushinp();
	fprintf(t->out, "\033]52;c;%s\033\\", coded);
	free(coded);
	fflush(t->out);
}

/* Converts a report "[<BUTTON;COLUMN;LINEM" (m: release) to a key; 0: none. */
static uint32_t mouse_key(struct terminal *t, const char *report, struct term_mouse *mouse)
{
	int button, x, y, end = 0;
	if (sscanf(report, "[<%d;%d;%d%n", &button, &x, &y, &end) != 3 || x < 1 || y < 1)
		return 0;
	const bool shift = button & 4, ctrl = button & 16, release = report[end] == 'm';
	const int which = button & ~(4 | 8 | 16);
	if (which == 64)
		return ctrl ? KEY_CODE_ZOOM_IN : shift ? KEY_CODE_WHEEL_LEFT : KEY_CODE_WHEEL_UP;
	if (which == 65)
		return ctrl ? KEY_CODE_ZOOM_OUT : shift ? KEY_CODE_WHEEL_RIGHT : KEY_CODE_WHEEL_DOWN;
	const bool drag = which == 32;
	if ((which != 0 && !drag) || (release || drag) != t->button_down)
		return 0;
	*mouse = (struct term_mouse){ x - 1, y - 1, drag ? MOUSE_DRAG : release ? MOUSE_RELEASE : MOUSE_PRESS };
	t->button_down = !release;
	return KEY_CODE_MOUSE;
}

static uint32_t function_key(wint_t k)
{
	switch (k) {
	case KEY_UP: return KEY_CODE_UP;
	case KEY_DOWN: return KEY_CODE_DOWN;
	case KEY_LEFT: return KEY_CODE_LEFT;
	case KEY_RIGHT: return KEY_CODE_RIGHT;
	case KEY_PPAGE: return KEY_CODE_PGUP;
	case KEY_NPAGE: return KEY_CODE_PGDN;
	case KEY_HOME: return KEY_CODE_HOME;
	case KEY_END: return KEY_CODE_END;
	case KEY_IC: return KEY_CODE_INSERT;
	case KEY_DC: return KEY_CODE_DELETE;
	case KEY_BACKSPACE: return KEY_CODE_BACKSPACE;
	case KEY_BTAB: return KEY_CODE_BACKTAB;
	case KEY_ENTER: return KEY_CODE_ENTER;
	default: return k >= KEY_F(1) && k <= KEY_F(24) ? KEY_CODE_F1 + (uint32_t)(k - KEY_F(1)) : 0;
	}
}

/* Maps escape sequences that keys send when the terminal is in another mode than terminfo assumes. number in the table
 * 0: any number. Returns 0 if the sequence is unknown. */
static uint32_t sequence_key(char final, int number)
{
	static const struct { char final; int number; uint32_t key; } keys[] = {
		{ 'A', 0, KEY_CODE_UP }, { 'B', 0, KEY_CODE_DOWN }, { 'C', 0, KEY_CODE_RIGHT }, { 'D', 0, KEY_CODE_LEFT },
		{ 'H', 0, KEY_CODE_HOME }, { 'F', 0, KEY_CODE_END }, { 'Z', 0, KEY_CODE_BACKTAB }, { 'P', 0, KEY_CODE_F1 },
		{ 'M', 0, KEY_CODE_ENTER }, { '~', 1, KEY_CODE_HOME }, { '~', 7, KEY_CODE_HOME }, { '~', 4, KEY_CODE_END },
		{ '~', 8, KEY_CODE_END }, { '~', 2, KEY_CODE_INSERT }, { '~', 3, KEY_CODE_DELETE }, { '~', 5, KEY_CODE_PGUP },
		{ '~', 6, KEY_CODE_PGDN }, { '~', 11, KEY_CODE_F1 },
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].final == final && (!keys[i].number || keys[i].number == number))
			return keys[i].key;
	return 0;
}

/* Reads the bytes that arrived together with an Esc. An escape sequence is one key, or none if it is unknown; it is
 * never read as several keys. Other bytes are put back, and the key is Esc. */
static uint32_t read_escape(struct terminal *t, struct term_mouse *mouse)
{
	wint_t input[64] = { 0 };
	char report[sizeof input / sizeof *input + 1] = "";
	size_t n = 0;
	int number = 0, status;
	bool plain = true;
	while ((status = wget_wch(stdscr, &input[n])) == OK) {
		const wint_t k = input[n];
		if (n == 0 && k == ']' && t->asked) {
			t->in_osc = true;
			t->osc = (struct osc){ .len = 0 };
			return 0;
		}
		if (n == 0 ? k != '[' && k != 'O' : k < 0x20 || k > 0x7e)
			break;
		if (n > 1 && k == 'c' && input[1] == '?')
			t->asked = false;
		report[n] = (char)k;
		if (n > 1 && k >= 0x40 && input[1] == '<')
			return mouse_key(t, report, mouse);
		if (n > 0 && k >= 0x40)
			return plain ? sequence_key((char)k, number) : 0;
		plain &= n == 0 || (k >= '0' && k <= '9');
		number = n > 0 && plain && number < 1000 ? number * 10 + (int)(k - '0') : number;
		if (++n == sizeof input / sizeof *input)
			return 0;
	}
	if (status == KEY_CODE_YES)
		ungetch((int)input[n]);
	else if (status == OK)
		unget_wch((wchar_t)input[n]);
	while (n > 0)
		unget_wch((wchar_t)input[--n]);
	return KEY_CODE_ESC;
}

/* Reads a character of an OSC sequence. Returns KEY_CODE_LIGHT at the end of the answer that the background is light. */
static uint32_t read_osc(struct terminal *t, wint_t k)
{
	if (!osc_add(&t->osc, (uint32_t)k))
		return 0;
	t->in_osc = false;
	return t->asked && osc_is_light_background(&t->osc) ? KEY_CODE_LIGHT : 0;
}

uint32_t term_key(struct terminal *t, struct term_mouse *mouse)
{
	for (int skipped = 0; skipped < 64; skipped++) {
		wint_t k;
		int input = wget_wch(stdscr, &k);
		uint32_t key = 0;
		if (input == ERR)
			return 0;
		if (input == OK && t->in_osc)
			key = read_osc(t, k);
		else if (input == OK)
			key = k == KEY_CODE_ESC ? read_escape(t, mouse)
				: k == 127 ? KEY_CODE_BACKSPACE  /* terminfo may assign DEL to another key */
				: (uint32_t)k;
		else
			key = function_key(k);
		if (key)
			return key;
	}
	return 0;
}

/* Waits for the answer that the terminal owes: it would be input of the shell. */
static void wait_for_answer(struct terminal *t)
{
	const int64_t end = now_ns() + ANSWER_NS;
	struct term_mouse mouse;
	for (int64_t rest; t->asked && (rest = end - now_ns()) > 0;) {
		if (poll(&(struct pollfd){ STDIN_FILENO, POLLIN, 0 }, 1, (int)(rest / 1000000) + 1) <= 0)
			break;
		if (!term_key(t, &mouse) && !t->asked)
			break;
	}
}

void term_close(struct terminal *t)
{
	if (!t)
		return;
	set_term(t->screen);
	wait_for_answer(t);
	term_mouse(t, false);
	leave_screen();
	delscreen(t->screen);
	screen_release(&t->last_frame);
	free(t);
}

void term_suspend(struct terminal *t)
{
	write_mouse(t, false);
	leave_screen();
}

void term_resume(struct terminal *t)
{
	term_redraw(t);
	refresh();
	write_mouse(t, t->mouse);
}
