#include "ui/input/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/input/keys.h"

static const char *const lead[PROMPT_KINDS] = {
	[PROMPT_COMMAND] = ":", [PROMPT_SEARCH] = "/", [PROMPT_FILTER] = "filter: ",
	[PROMPT_EXPORT] = "write to (.txt .csv .json): ", [PROMPT_PAGER] = "/", [PROMPT_NOTE] = "note: ",
	[PROMPT_PANE] = "only lines with: ",
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
			free(p->past[k][i]);
}

static void remember(struct prompt *p)
{
	char **past = p->past[p->kind];
	if (!p->text[0] || (past[PROMPT_HISTORY - 1] && strcmp(past[PROMPT_HISTORY - 1], p->text) == 0))
		return;
	free(past[0]);
	memmove(past, past + 1, (PROMPT_HISTORY - 1) * sizeof *past);
	past[PROMPT_HISTORY - 1] = mem_dup(p->text);
}

static void recall(struct prompt *p, int back)
{
	int to = p->recall + back;
	if (to < 0 || to > PROMPT_HISTORY || (to > 0 && !p->past[p->kind][PROMPT_HISTORY - to]))
		return;
	p->recall = to;
	snprintf(p->text, sizeof p->text, "%s", to ? p->past[p->kind][PROMPT_HISTORY - to] : "");
	p->at = strlen(p->text);
}

/* Start of the character before / after byte `at`. */
static size_t before(const char *s, size_t at)
{
	while (at > 0 && ((unsigned char)s[--at] & 0xc0) == 0x80)
		;
	return at;
}

static size_t after(const char *s, size_t at)
{
	if (s[at])
		at++;
	while (((unsigned char)s[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static void cut(struct prompt *p, size_t from, size_t to)
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

/* Moves that leave the text as it is. */
static bool move(struct prompt *p, uint32_t key)
{
	switch (key) {
	case KEY_CODE_LEFT: case 'b' & 31: p->at = before(p->text, p->at); return true;
	case KEY_CODE_RIGHT: case 'f' & 31: p->at = after(p->text, p->at); return true;
	case KEY_CODE_HOME: case 'a' & 31: p->at = 0; return true;
	case KEY_CODE_END: case 'e' & 31: p->at = strlen(p->text); return true;
	default: return false;
	}
}

enum prompt_result prompt_key(struct prompt *p, uint32_t key)
{
	if (move(p, key))
		return PROMPT_EDITING;
	switch (key) {
	case KEY_CODE_ENTER: case '\n':
		remember(p);
		return PROMPT_DONE;
	case KEY_CODE_ESC: case 'c' & 31: case 'g' & 31:
		return PROMPT_CANCELLED;
	case KEY_CODE_BACKSPACE: case 8: case 127:
		if (!p->text[0])
			return PROMPT_CANCELLED;
		cut(p, before(p->text, p->at), p->at);
		return PROMPT_CHANGED;
	case KEY_CODE_DELETE: case 'd' & 31:
		cut(p, p->at, after(p->text, p->at));
		return PROMPT_CHANGED;
	case 'u' & 31:
		cut(p, 0, p->at);
		return PROMPT_CHANGED;
	case 'k' & 31:
		p->text[p->at] = '\0';
		return PROMPT_CHANGED;
	case 'w' & 31:
		cut(p, word_before(p), p->at);
		return PROMPT_CHANGED;
	case KEY_CODE_UP: case 'p' & 31:
		recall(p, 1);
		return PROMPT_CHANGED;
	case KEY_CODE_DOWN: case 'n' & 31:
		recall(p, -1);
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
	char shown[2 * PROMPT_LONGEST], head[PROMPT_LONGEST];
	screen_fill(s, 0, y, s->w, ' ', style);
	int x = screen_text(s, 0, y, s->w, style, lead[p->kind]);
	snprintf(head, sizeof head, "%.*s", (int)p->at, p->text);
	/* A long line is shown from where its cursor is still visible. */
	size_t skip = 0;
	while (skip < p->at && text_width(head + skip) > s->w - x - 2)
		skip = after(head, skip);
	text_escape(shown, sizeof shown, p->text + skip);
	screen_text(s, x, y, s->w - x, style, shown);
	text_escape(shown, sizeof shown, head + skip);
	s->cursor_x = x + text_width(shown);
	s->cursor_y = y;
}
