#include "ui/terminal/screen.h"

#include <stdarg.h>
#include <wchar.h>

void screen_resize(struct screen *s, int w, int h)
{
	s->w = w < 1 ? 1 : w;
	s->h = h < 1 ? 1 : h;
	free(s->cell);
	s->cell = mem_new((size_t)s->w * (size_t)s->h, sizeof *s->cell);
	screen_clear(s, (struct style){ -1, -1, 0 });
}

void screen_release(struct screen *s)
{
	free(s->cell);
	s->cell = NULL;
	s->w = s->h = 0;
}

void screen_clear(struct screen *s, struct style style)
{
	for (int i = 0; i < s->w * s->h; i++)
		s->cell[i] = (struct glyph){ .ch = ' ', .style = style };
	s->cursor_x = s->cursor_y = -1;
}

struct glyph *screen_at(struct screen *s, int x, int y)
{
	if (x < 0 || y < 0 || x >= s->w || y >= s->h)
		return NULL;
	return &s->cell[y * s->w + x];
}

static void blank_cell(struct glyph *g)
{
	if (g)
		*g = (struct glyph){ .ch = ' ', .style = g->style };
}

/* Blanks the other half of a wide character when one half is overwritten. */
static void split_wide(struct screen *s, int x, int y)
{
	struct glyph *g = screen_at(s, x, y), *next = screen_at(s, x + 1, y);
	if (g && g->ch == 0) {
		blank_cell(g);
		blank_cell(screen_at(s, x - 1, y));
	}
	if (next && next->ch == 0)
		blank_cell(next);
}

void screen_put(struct screen *s, int x, int y, uint32_t ch, struct style style)
{
	struct glyph *g = screen_at(s, x, y);
	if (!g)
		return;
	split_wide(s, x, y);
	*g = (struct glyph){ .ch = ch, .style = style };
}

/* Adds a combining character to the character in that cell. Skips variation selectors: terminals disagree about the
 * width of the result. */
static void add_combining(struct screen *s, int x, int y, uint32_t ch)
{
	struct glyph *g = screen_at(s, x, y);
	int n = 0;
	while (g && n < COMBINING_MAX && g->combining[n])
		n++;
	if (g && n < COMBINING_MAX && (ch < 0xfe00 || ch > 0xfe0f) && (ch < 0xe0100 || ch > 0xe01ef))
		g->combining[n] = ch;
}

void screen_fill(struct screen *s, int x, int y, int width, uint32_t ch, struct style style)
{
	for (int i = 0; i < width; i++)
		screen_put(s, x + i, y, ch, style);
}

static bool is_digit(uint32_t c)
{
	return c >= '0' && c <= '9';
}

static bool in_number(uint32_t last, uint32_t c, uint32_t next)
{
	return is_digit(c) ? is_digit(last) || last == '.' : c == '.' && is_digit(last) && is_digit(next);
}

int screen_text(struct screen *s, int x, int y, int width, struct style style, const char *text)
{
	int used = 0, base = -1;  /* base: column of the last base character, for combining characters */
	uint32_t c, last = 0;
	while (*text) {
		size_t len = text_decode(text, &c);
		text += len ? len : 1;
		int w = len ? wcwidth((wchar_t)c) : -1;
		if (w < 0) {
			c = '?';
			w = 1;
		}
		if (w == 0) {
			add_combining(s, base, y, c);
			continue;
		}
		if (used + w > width || x + used + w > s->w) {
			if (used && in_number(last, c, (unsigned char)*text))
				screen_put(s, x + used - 1, y, '~', style);
			break;
		}
		screen_put(s, base = x + used, y, c, style);
		last = c;
		if (w == 2) {
			screen_put(s, x + used + 1, y, ' ', style);
			struct glyph *right = screen_at(s, x + used + 1, y);
			if (right && x + used >= 0)
				right->ch = 0;
		}
		used += w;
	}
	return used;
}

int screen_clip(struct screen *s, int x, int y, int width, struct style style, const char *text)
{
	const int space = s->w - x < width ? s->w - x : width;
	if (text_width(text) <= space || space < 2)
		return screen_text(s, x, y, width, style, text);
	const int used = screen_printf(s, x, y, space - 1, style, "%.*s", (int)text_fit(text, space - 1), text);
	screen_put(s, x + used, y, '~', style);
	return used + 1;
}

int screen_phrases(struct screen *s, int x, int y, int width, struct style style, const char *text)
{
	int used = 0, space = s->w - x < width ? s->w - x : width;
	for (size_t n; *text; text += n + strspn(text + n, " ")) {
		const char *end = strstr(text, "  ");
		int separator = used ? 2 : 0;
		n = end ? (size_t)(end - text) : strlen(text);
		if (text_fit(text, space - used - separator) < n)
			break;
		used += separator;
		used += screen_printf(s, x + used, y, space - used, style, "%.*s", (int)n, text);
	}
	return used;
}

int screen_printf(struct screen *s, int x, int y, int width, struct style style, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	return n < 0 ? 0 : screen_text(s, x, y, width, style, buf);
}

static void put_utf8(FILE *f, uint32_t c)
{
	if (c < 0x80) {
		putc((int)c, f);
	} else if (c < 0x800) {
		putc((int)(0xc0 | c >> 6), f);
		putc((int)(0x80 | (c & 0x3f)), f);
	} else if (c < 0x10000) {
		putc((int)(0xe0 | c >> 12), f);
		putc((int)(0x80 | (c >> 6 & 0x3f)), f);
		putc((int)(0x80 | (c & 0x3f)), f);
	} else {
		putc((int)(0xf0 | c >> 18), f);
		putc((int)(0x80 | (c >> 12 & 0x3f)), f);
		putc((int)(0x80 | (c >> 6 & 0x3f)), f);
		putc((int)(0x80 | (c & 0x3f)), f);
	}
}

int screen_dump(const struct screen *s, FILE *f)
{
	for (int y = 0; y < s->h; y++) {
		const struct glyph *line = &s->cell[y * s->w];
		int last = s->w;
		while (last > 0 && line[last - 1].ch == ' ' && !line[last - 1].combining[0])
			last--;
		for (int x = 0; x < last; x++) {
			if (line[x].ch)
				put_utf8(f, line[x].ch);
			for (int i = 0; i < COMBINING_MAX && line[x].combining[i]; i++)
				put_utf8(f, line[x].combining[i]);
		}
		putc('\n', f);
	}
	return ferror(f) ? -1 : 0;
}
