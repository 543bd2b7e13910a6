#include "ui/terminal/screen_file.h"

#define CELL_W 8      /* a cell's width, pixels */
#define CELL_H 17
#define BASE_LINE 13  /* baseline of letters, pixels from the top of a cell */
#define FONT_SIZE 13
#define FONT "DejaVu Sans Mono, Menlo, Consolas, monospace"

struct rgb screen_colour(int index)
{
	static const struct rgb first[16] = {
		{ 0, 0, 0 }, { 205, 49, 49 }, { 13, 148, 77 }, { 205, 180, 20 }, { 36, 92, 200 }, { 170, 60, 170 },
		{ 17, 150, 180 }, { 220, 220, 220 }, { 102, 102, 102 }, { 241, 76, 76 }, { 35, 209, 139 }, { 245, 235, 67 },
		{ 59, 142, 234 }, { 214, 112, 214 }, { 41, 184, 219 }, { 255, 255, 255 },
	};
	static const unsigned level[] = { 0, 95, 135, 175, 215, 255 };
	if (index < 16)
		return first[index < 0 ? 0 : index];
	if (index >= 232)
		return (struct rgb){ 8 + 10U * (unsigned)(index - 232), 8 + 10U * (unsigned)(index - 232),
			8 + 10U * (unsigned)(index - 232) };
	index -= 16;
	return (struct rgb){ level[index / 36 % 6], level[index / 6 % 6], level[index % 6] };
}

/* Returns the visible colours: applies reverse video and the terminal's default colours. */
static void colours_of(struct style style, bool light, struct rgb *fg, struct rgb *bg)
{
	static const struct rgb paper = { 255, 255, 255 }, ink = { 32, 32, 32 };
	static const struct rgb night = { 17, 19, 24 }, chalk = { 210, 210, 210 };
	*fg = style.fg < 0 ? light ? ink : chalk : screen_colour(style.fg);
	*bg = style.bg < 0 ? light ? paper : night : screen_colour(style.bg);
	if (style.attr & ATTR_REVERSE) {
		struct rgb swap = *fg;
		*fg = *bg;
		*bg = swap;
	}
}

static bool same_rgb(struct rgb a, struct rgb b)
{
	return a.r == b.r && a.g == b.g && a.b == b.b;
}

static bool same_style(struct style a, struct style b)
{
	return a.fg == b.fg && a.bg == b.bg && a.attr == b.attr;
}

enum paint paint_format_of(const char *file)
{
	const char *dot = strrchr(file, '.');
	if (dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".svg!") == 0))
		return PAINT_SVG;
	return dot && (strcmp(dot, ".html") == 0 || strcmp(dot, ".html!") == 0) ? PAINT_HTML : PAINT_TEXT;
}

static void put_char(FILE *f, uint32_t c)
{
	switch (c) {
	case '&': fputs("&amp;", f); break;
	case '<': fputs("&lt;", f); break;
	case '>': fputs("&gt;", f); break;
	case '"': fputs("&quot;", f); break;
	default:
		if (c < 0x80)
			putc((int)c, f);
		else
			fprintf(f, "&#%u;", (unsigned)c);
	}
}

static void put_glyph(FILE *f, const struct glyph *g)
{
	if (g->ch)
		put_char(f, g->ch);
	for (int i = 0; i < COMBINING_MAX && g->combining[i]; i++)
		put_char(f, g->combining[i]);
}

static void put_text(FILE *f, const char *text)
{
	for (; *text; text++)
		put_char(f, (unsigned char)*text);
}

/* ---- HTML ---------------------------------------------------------------------------------------------------------- */

static void html_line(const struct screen *s, int y, bool light, FILE *f)
{
	const struct glyph *g = &s->cell[y * s->w];
	for (int x = 0; x < s->w;) {
		int end = x + 1;
		while (end < s->w && same_style(g[end].style, g[x].style))
			end++;
		struct rgb fg, bg;
		colours_of(g[x].style, light, &fg, &bg);
		fprintf(f, "<span style=\"color:#%02x%02x%02x;background:#%02x%02x%02x%s%s\">", fg.r, fg.g, fg.b, bg.r, bg.g, bg.b,
		        g[x].style.attr & ATTR_BOLD ? ";font-weight:bold" : "",
		        g[x].style.attr & ATTR_UNDERLINE ? ";text-decoration:underline" : "");
		for (; x < end; x++)
			put_glyph(f, &g[x]);
		fputs("</span>", f);
	}
	putc('\n', f);
}

static void write_html(const struct screen *s, bool light, const char *title, FILE *f)
{
	struct rgb fg, bg;
	colours_of((struct style){ -1, -1, 0 }, light, &fg, &bg);
	fputs("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>", f);
	put_text(f, title);
	fprintf(f, "</title></head>\n<body style=\"background:#%02x%02x%02x\"><pre style=\"font-family:%s\">\n",
	        bg.r, bg.g, bg.b, FONT);
	for (int y = 0; y < s->h; y++)
		html_line(s, y, light, f);
	fputs("</pre></body></html>\n", f);
}

/* ---- SVG ----------------------------------------------------------------------------------------------------------- */

static void put_rectangle(FILE *f, double x, double y, double w, double h, struct rgb c)
{
	fprintf(f, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#%02x%02x%02x\"/>\n", x, y, w, h, c.r, c.g, c.b);
}

/* Draws the background of a run of cells with the same background. Returns the column after the run. */
static int svg_ground(const struct screen *s, int x, int y, bool light, FILE *f)
{
	const struct glyph *g = &s->cell[y * s->w];
	struct rgb fg, bg, other, ground;
	int end = x + 1;
	colours_of((struct style){ -1, -1, 0 }, light, &fg, &ground);
	colours_of(g[x].style, light, &fg, &bg);
	for (; end < s->w; end++) {
		colours_of(g[end].style, light, &fg, &other);
		if (!same_rgb(bg, other))
			break;
	}
	if (!same_rgb(bg, ground))
		put_rectangle(f, x * CELL_W, y * CELL_H, (end - x) * CELL_W, CELL_H, bg);
	return end;
}

/* Draws block bars, lines and the underscore of small waits as shapes. Returns the column after the run of equal cells,
 * or x if the cell contains no such character. */
static int svg_drawn(const struct screen *s, int x, int y, bool light, FILE *f)
{
	const struct glyph *g = &s->cell[y * s->w];
	uint32_t c = g[x].ch;
	struct rgb fg, bg;
	int end = x + 1;
	bool left = c >= 0x2589 && c <= 0x258f;
	while (!left && end < s->w && g[end].ch == c && same_style(g[end].style, g[x].style))
		end++;
	double px = x * CELL_W, py = y * CELL_H, w = (end - x) * CELL_W;
	colours_of(g[x].style, light, &fg, &bg);
	if (c >= 0x2581 && c <= 0x2588)
		put_rectangle(f, px, py + CELL_H * (1 - (c - 0x2580) / 8.0), w, CELL_H * ((c - 0x2580) / 8.0), fg);
	else if (left)
		put_rectangle(f, px, py, CELL_W * ((0x2590 - c) / 8.0), CELL_H, fg);
	else if (c == 0x2500)
		put_rectangle(f, px, py + CELL_H / 2.0, w, 1, fg);
	else if (c == 0x2508)
		fprintf(f, "<path d=\"M%g %gh%g\" stroke=\"#%02x%02x%02x\" stroke-dasharray=\"1 3\"/>\n", px,
		        py + CELL_H / 2.0 + 0.5, w, fg.r, fg.g, fg.b);
	else if (c == '_' && g[x].style.bg >= 0)
		put_rectangle(f, px, py + CELL_H - 1, w, 1, fg);
	else
		return x;
	return end;
}

static int svg_letters(const struct screen *s, int x, int y, bool light, FILE *f)
{
	const struct glyph *g = &s->cell[y * s->w];
	struct rgb fg, bg;
	int end = x;
	while (end < s->w && same_style(g[end].style, g[x].style) && g[end].ch != ' ' && g[end].ch < 0x2500)
		end++;
	end = end == x ? x + 1 : end;
	if (g[x].ch == ' ' || g[x].ch == 0)
		return end;
	colours_of(g[x].style, light, &fg, &bg);
	fprintf(f, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"#%02x%02x%02x\"%s>", x * CELL_W, y * CELL_H + BASE_LINE,
	        (end - x) * CELL_W, fg.r, fg.g, fg.b, g[x].style.attr & ATTR_BOLD ? " font-weight=\"bold\"" : "");
	for (int i = x; i < end; i++)
		put_glyph(f, &g[i]);
	fputs("</text>\n", f);
	return end;
}

static void write_svg(const struct screen *s, bool light, const char *title, FILE *f)
{
	struct rgb fg, bg;
	int w = s->w * CELL_W, h = s->h * CELL_H;
	colours_of((struct style){ -1, -1, 0 }, light, &fg, &bg);
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" ", w, h, w, h);
	fprintf(f, "font-family=\"%s\" font-size=\"%d\">\n<title>", FONT, FONT_SIZE);
	put_text(f, title);
	fputs("</title>\n", f);
	put_rectangle(f, 0, 0, w, h, bg);
	for (int y = 0; y < s->h; y++) {
		for (int x = 0; x < s->w;)
			x = svg_ground(s, x, y, light, f);
		for (int x = 0; x < s->w;) {
			int end = svg_drawn(s, x, y, light, f);
			x = end > x ? end : svg_letters(s, x, y, light, f);
		}
	}
	fputs("</svg>\n", f);
}

void paint_screen(const struct screen *s, enum paint format, bool light, const char *title, FILE *f)
{
	if (format == PAINT_SVG)
		write_svg(s, light, title, f);
	else if (format == PAINT_HTML)
		write_html(s, light, title, f);
	else
		screen_dump(s, f);
}
