#include "ui/input/prompt.h"

#include "ui/input/keys.h"

static const char *const prompt_prefix[PROMPT_KINDS] = {
	[PROMPT_COMMAND] = ":", [PROMPT_SEARCH] = "/", [PROMPT_FILTER] = "filter: ",
	[PROMPT_EXPORT] = "write to (.txt .csv .json): ", [PROMPT_PAGER] = "/", [PROMPT_NOTE] = "note: ",
	[PROMPT_PANE] = "filter: ",
};

void prompt_open(struct prompt *p, enum prompt_kind kind, const char *initial)
{
	p->kind = kind;
	p->recall = 0;
	snprintf(p->text, sizeof p->text, "%s", initial);
	p->at = strlen(p->text);
}

void prompt_release(struct prompt *p)
{
	for (int k = 0; k < PROMPT_KINDS; k++)
		for (int i = 0; i < PROMPT_HISTORY; i++)
			free(p->history[k][i]);
}

static void add_to_history(struct prompt *p)
{
	char **history = p->history[p->kind];
	if (!p->text[0] || (history[PROMPT_HISTORY - 1] && strcmp(history[PROMPT_HISTORY - 1], p->text) == 0))
		return;
	free(history[0]);
	memmove(history, history + 1, (PROMPT_HISTORY - 1) * sizeof *history);
	history[PROMPT_HISTORY - 1] = mem_dup(p->text);
}

static void recall_line(struct prompt *p, int back)
{
	int to = p->recall + back;
	if (to < 0 || to > PROMPT_HISTORY || (to > 0 && !p->history[p->kind][PROMPT_HISTORY - to]))
		return;
	p->recall = to;
	snprintf(p->text, sizeof p->text, "%s", to ? p->history[p->kind][PROMPT_HISTORY - to] : "");
	p->at = strlen(p->text);
}

/* prev_char(), next_char(): return the start of the character before or after byte `at`. */
static size_t prev_char(const char *s, size_t at)
{
	while (at > 0 && ((unsigned char)s[--at] & 0xc0) == 0x80)
		;
	return at;
}

static size_t next_char(const char *s, size_t at)
{
	if (s[at])
		at++;
	while (((unsigned char)s[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static void delete_text(struct prompt *p, size_t from, size_t to)
{
	memmove(p->text + from, p->text + to, strlen(p->text + to) + 1);
	p->at = from;
}

void prompt_insert(struct prompt *p, const char *text)
{
	size_t n = strlen(text), len = strlen(p->text);
	if (len + n >= sizeof p->text)
		return;
	memmove(p->text + p->at + n, p->text + p->at, len - p->at + 1);
	memcpy(p->text + p->at, text, n);
	p->at += n;
}

static void insert_key(struct prompt *p, uint32_t c)
{
	char u[5] = { 0 };
	if (c < 0x80) {
		u[0] = (char)c;
	} else if (c < 0x800) {
		u[0] = (char)(0xc0 | c >> 6);
		u[1] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		u[0] = (char)(0xe0 | c >> 12);
		u[1] = (char)(0x80 | (c >> 6 & 0x3f));
		u[2] = (char)(0x80 | (c & 0x3f));
	} else {
		u[0] = (char)(0xf0 | c >> 18);
		u[1] = (char)(0x80 | (c >> 12 & 0x3f));
		u[2] = (char)(0x80 | (c >> 6 & 0x3f));
		u[3] = (char)(0x80 | (c & 0x3f));
	}
	prompt_insert(p, u);
}

static size_t word_before(const struct prompt *p)
{
	size_t at = p->at;
	while (at > 0 && p->text[at - 1] == ' ')
		at--;
	while (at > 0 && p->text[at - 1] != ' ')
		at--;
	return at;
}

/* Moves the cursor within the text. Returns false if the key is not a cursor key. */
static bool move_cursor(struct prompt *p, uint32_t key)
{
	switch (key) {
	case KEY_CODE_LEFT: case 'b' & 31: p->at = prev_char(p->text, p->at); return true;
	case KEY_CODE_RIGHT: case 'f' & 31: p->at = next_char(p->text, p->at); return true;
	case KEY_CODE_HOME: case 'a' & 31: p->at = 0; return true;
	case KEY_CODE_END: case 'e' & 31: p->at = strlen(p->text); return true;
	default: return false;
	}
}

enum prompt_result prompt_key(struct prompt *p, uint32_t key)
{
	if (move_cursor(p, key))
		return PROMPT_EDITING;
	switch (key) {
	case KEY_CODE_ENTER: case '\n':
		add_to_history(p);
		return PROMPT_DONE;
	case KEY_CODE_ESC: case 'c' & 31: case 'g' & 31:
		return PROMPT_CANCELLED;
	case KEY_CODE_BACKSPACE: case 8: case 127:
		if (!p->text[0])
			return PROMPT_CANCELLED;
		delete_text(p, prev_char(p->text, p->at), p->at);
		return PROMPT_CHANGED;
	case KEY_CODE_DELETE: case 'd' & 31:
		delete_text(p, p->at, next_char(p->text, p->at));
		return PROMPT_CHANGED;
	case 'u' & 31:
		delete_text(p, 0, p->at);
		return PROMPT_CHANGED;
	case 'k' & 31:
		p->text[p->at] = '\0';
		return PROMPT_CHANGED;
	case 'w' & 31:
		delete_text(p, word_before(p), p->at);
		return PROMPT_CHANGED;
	case KEY_CODE_UP: case 'p' & 31:
		recall_line(p, 1);
		return PROMPT_CHANGED;
	case KEY_CODE_DOWN: case 'n' & 31:
		recall_line(p, -1);
		return PROMPT_CHANGED;
	default:
		if (key < 32 || (key >= 0x7f && key < 0xa0) || key > 0x10ffff)
			return PROMPT_EDITING;
		insert_key(p, key);
		return PROMPT_CHANGED;
	}
}

void prompt_draw(const struct prompt *p, struct screen *s, int y, struct style style)
{
	char shown[2 * PROMPT_MAX_BYTES], head[PROMPT_MAX_BYTES];
	screen_fill(s, 0, y, s->w, ' ', style);
	int x = screen_text(s, 0, y, s->w, style, prompt_prefix[p->kind]);
	snprintf(head, sizeof head, "%.*s", (int)p->at, p->text);
	/* skip the start of a long line so that the cursor stays visible */
	size_t skip = 0;
	while (skip < p->at && text_width(head + skip) > s->w - x - 2)
		skip = next_char(head, skip);
	text_escape(shown, sizeof shown, p->text + skip);
	screen_text(s, x, y, s->w - x, style, shown);
	text_escape(shown, sizeof shown, head + skip);
	s->cursor_x = x + text_width(shown);
	s->cursor_y = y;
}
