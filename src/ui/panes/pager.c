#include "ui/panes/pager.h"

#include <stdarg.h>

#include "ui/core/text_filter.h"
#include "ui/input/keys.h"

#define SAMPLE_COLUMNS 5  /* a sample's columns, including the space after it */

void pager_open(struct pager *p, bool picks, const char *title)
{
	pager_release(p);
	p->picks = picks;
	snprintf(p->title, sizeof p->title, "%s", title);
}

void pager_release(struct pager *p)
{
	for (size_t i = 0; i < p->len; i++)
		free(p->line[i].text);
	free(p->line);
	*p = (struct pager){ 0 };
}

struct pager_line *pager_add(struct pager *p, int64_t tag, const char *fmt, ...)
{
	char buf[4096];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	struct pager_line *line = ARRAY_PUSH(p->line, p->len, p->cap);
	*line = (struct pager_line){ .text = mem_dup(buf), .tag = tag };
	return line;
}

/* Returns the indentation of continuation lines: the start of the last column of the line, unless that is too far to the
 * right. */
static int continuation_indent(const char *text, int space)
{
	int indent = (int)strspn(text, " ") + 2;
	for (int x = 2; text[x - 1] && text[x] && x <= space / 2; x++)
		if (text[x] != ' ' && text[x - 1] == ' ' && text[x - 2] == ' ')
			indent = x;
	return indent;
}

void pager_wrap(struct pager *p, int w)
{
	struct pager old = *p;
	p->line = NULL;
	p->len = p->cap = 0;
	for (size_t i = 0; i < old.len; i++) {
		struct pager_line *line = &old.line[i];
		const int left = line->sample.ch ? SAMPLE_COLUMNS : 0, space = w - 1 - left,
				  indent = continuation_indent(line->text, space);
		const char *text = line->text;
		size_t n = text_width(text) > space ? text_line_bytes(text, space) : strlen(text);
		p->at = i == old.at ? p->len : p->at;
		*ARRAY_PUSH(p->line, p->len, p->cap) = (struct pager_line){ .text = mem_printf("%.*s", (int)n, text),
			.tag = line->tag, .sample = line->sample, .heading = line->heading };
		while (*(text += n + strspn(text + n, " ")) && indent < space) {
			n = text_width(text) > space - indent ? text_line_bytes(text, space - indent) : strlen(text);
			pager_add(p, line->tag, "%*s%.*s", left + indent, "", (int)n, text)->continues = true;
		}
		free(line->text);
	}
	free(old.line);
}

/* Returns true if the line passes the filter: the text occurs in the line or its continuation, or, for a heading, in one
 * of the lines below it. */
static bool is_line_shown(const struct pager *p, const struct pager_line *line)
{
	const struct pager_line *end = p->line + p->len;
	while (p->filter[0] && line->continues)
		line--;
	for (const struct pager_line *at = line + line->heading; p->filter[0] && at < end; at++) {
		if (line->heading ? at->heading : at > line && !at->continues)
			return false;
		if (filter_matches(at->text, p->filter))
			return true;
	}
	return !p->filter[0];
}

static size_t count_shown(const struct pager *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->len; i++)
		n += is_line_shown(p, &p->line[i]);
	return n;
}

/* Returns the n-th line that passes the filter; NULL: there are fewer. */
static struct pager_line *nth_shown(const struct pager *p, size_t n)
{
	for (size_t i = 0; i < p->len; i++)
		if (is_line_shown(p, &p->line[i]) && n-- == 0)
			return &p->line[i];
	return NULL;
}

size_t pager_position(const struct pager *p)
{
	size_t n = 0, position = 0;
	for (size_t i = 0; i < p->len && n <= p->at; i++) {
		const bool visible = is_line_shown(p, &p->line[i]);
		n += visible;
		position += visible && !p->line[i].continues;
	}
	return position;
}

void pager_set_position(struct pager *p, size_t position)
{
	size_t n = 0;
	for (size_t i = 0; i < p->len && position > 0; i++) {
		const bool visible = is_line_shown(p, &p->line[i]);
		position -= visible && !p->line[i].continues;
		p->at = n;
		n += visible;
	}
}

static void clamp_scroll(struct pager *p, int height)
{
	size_t n = count_shown(p), page = height > 2 ? (size_t)height - 1 : 1;
	if (p->at >= n)
		p->at = n ? n - 1 : 0;
	if (p->picks) {
		if (p->at < p->top)
			p->top = p->at;
		if (p->at >= p->top + page)
			p->top = p->at - page + 1;
	} else {
		p->top = p->at;
	}
	if (p->top + page > n)
		p->top = n > page ? n - page : 0;
	if (!p->picks)
		p->at = p->top;
}

static enum pager_result move_cursor(struct pager *p, int64_t by, int height, int64_t *tag)
{
	int64_t to = (int64_t)p->at + by;
	p->at = to < 0 ? 0 : (size_t)to;
	clamp_scroll(p, height);
	struct pager_line *line = nth_shown(p, p->at);
	*tag = line ? line->tag : -1;
	return PAGER_MOVED;
}

int64_t pager_tag(const struct pager *p)
{
	const struct pager_line *line = nth_shown(p, p->at);
	return line ? line->tag : -1;
}

enum pager_result pager_key(struct pager *p, uint32_t key, int height, int64_t *tag)
{
	int64_t page = height > 2 ? height - 2 : 1;
	struct pager_line *line = nth_shown(p, p->at);
	switch (key) {
	case KEY_CODE_ESC: case 'c' & 31:  /* the first Esc clears the search, the next Esc closes the list */
		if (!p->filter[0])
			return PAGER_CLOSED;
		p->filter[0] = '\0';
		return PAGER_UNCHANGED;
	case 'q':
		return PAGER_CLOSED;
	case 'j': case KEY_CODE_DOWN: case KEY_CODE_WHEEL_DOWN:
		return move_cursor(p, 1, height, tag);
	case 'k': case KEY_CODE_UP: case KEY_CODE_WHEEL_UP:
		return move_cursor(p, -1, height, tag);
	case KEY_CODE_PGDN: case ' ': case 'd' & 31: case 'f' & 31:
		return move_cursor(p, page, height, tag);
	case KEY_CODE_PGUP: case 'u' & 31: case 'b' & 31:
		return move_cursor(p, -page, height, tag);
	case 'g': case KEY_CODE_HOME:
		return move_cursor(p, -(int64_t)p->len, height, tag);
	case 'G': case KEY_CODE_END:
		return move_cursor(p, (int64_t)p->len, height, tag);
	case '/':
		return PAGER_SEARCH;
	case 'd': case KEY_CODE_DELETE:
		*tag = p->edits && line ? line->tag : -1;
		return *tag >= 0 ? PAGER_DELETE : PAGER_UNKNOWN;
	case 'e':
		*tag = p->edits && line ? line->tag : -1;
		return *tag >= 0 ? PAGER_EDIT : PAGER_UNKNOWN;
	case KEY_CODE_ENTER: case '\n':
		if (!p->picks)
			return PAGER_CLOSED;
		*tag = line ? line->tag : -1;
		return *tag >= 0 ? PAGER_PICKED : PAGER_UNCHANGED;
	default:
		return PAGER_UNKNOWN;
	}
}

static const char *hint_of(const struct pager *p)
{
	if (p->filter[0])
		return " Esc shows all lines  q closes ";
	if (p->edits)
		return " Enter picks  d deletes  e edits note  / searches  q closes ";
	return p->picks ? " Enter picks  / searches  q closes " : " / searches  q closes ";
}

/* Draws the hint at the title's end: the number of lines below the screen, and the keys that fit. */
static void draw_hint(const struct pager *p, struct screen *s, int x, int y, size_t below, struct style style)
{
	char more[40] = "", hint[3][128];
	if (below)
		snprintf(more, sizeof more, " %zu more below ", below);
	snprintf(hint[0], sizeof hint[0], "%s%s", more, hint_of(p));
	snprintf(hint[1], sizeof hint[1], "%s q closes ", more);
	snprintf(hint[2], sizeof hint[2], "%s", more);
	for (size_t i = 0; i < sizeof hint / sizeof *hint; i++) {
		const int w = (int)strlen(hint[i]) + 2;
		if (s->w - x > w) {
			screen_text(s, s->w - w, y, s->w, style, hint[i]);
			return;
		}
	}
}

void pager_draw(struct pager *p, struct screen *s, int y, int height, const struct palette *palette)
{
	size_t n = count_shown(p);
	clamp_scroll(p, height);
	screen_fill(s, 0, y, s->w, ' ', palette->part[PART_TITLE]);
	int x = screen_printf(s, 0, y, s->w, palette->part[PART_TITLE], "-- %s ", p->title);
	if (p->filter[0])
		x += screen_printf(s, x, y, s->w - x, palette->part[PART_TITLE], "/%s ", p->filter);
	screen_fill(s, x, y, s->w - x, '-', palette->part[PART_TITLE]);
	const size_t end = p->top + (size_t)(height > 1 ? height - 1 : 0);
	draw_hint(p, s, x, y, n > end ? n - end : 0, palette->part[PART_TITLE]);
	for (int i = 1; i < height; i++) {
		size_t k = p->top + (size_t)i - 1;
		struct pager_line *line = k < n ? nth_shown(p, k) : NULL;
		struct style style = palette->part[PART_NORMAL];
		if (line && line->heading)
			style = palette->part[PART_TITLE];
		if (line && p->picks && k == p->at)
			style = palette->part[PART_SELECTED];
		screen_fill(s, 0, y + i, s->w, ' ', style);
		if (!line)
			continue;
		int at = 1;
		if (line->sample.ch) {
			screen_fill(s, at, y + i, SAMPLE_COLUMNS - 1, line->sample.ch, line->sample.style);
			at += SAMPLE_COLUMNS;
		}
		screen_text(s, at, y + i, s->w - at, style, line->text);
	}
	if (n == 0 && height > 1)
		screen_printf(s, 1, y + 1, s->w - 1, palette->part[PART_ERROR], p->filter[0] ? "no match for \"%s\"" : "nothing",
		              p->filter);
}
