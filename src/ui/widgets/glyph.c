/* Chooses the glyph of a cell for each tier. */
#include "ui/widgets/appearance.h"

#include <math.h>

#include "ui/core/app.h"

#define LOW_MARK '_'    /* blocks: bar of a wait below 1/16 */
#define SHORT_WAIT_LETTER 'i'  /* letters: wait of at least 1/8 and less than 1/2 */
#define MARKED_MIN 2    /* smallest wait that is marked in letters, a cell's sixteenths */
#define HALF_CELL 8
/* palettes with at most this many colours use the same colours for states and owners: letters distinguish them */
#define SMALL_PALETTE 16

struct face {
	/* the letter's style; bg < 0: the state is drawn as its glyph on the terminal's background */
	struct style style;
	char letter;
	uint32_t shade;
	bool shows_letter;           /* the letter is shown even on a coloured background: unknown state; wait or owner in a
	                              * small palette, whose colours are alike for some eyes */
};

static struct face face_of(const struct app *app, unsigned code, bool owners)
{
	const struct palette *p = &app->appearance.palette;
	if (owners && code < HISTORY_STATES - 1) {
		char letter = app->appearance.letter[code];
		bool unknown = code == OWNER_UNKNOWN;
		const struct style *style = unknown ? &p->state[VIS_UNKNOWN] : &p->owner[code % OWNERS];
		return (struct face){ *style, letter, (unsigned char)letter, unknown || style->bg < SMALL_PALETTE };
	}
	if (owners || code >= VIS_COUNT)
		code = VIS_NONE;
	const struct theme_state *s = &app->appearance.theme.state[code];
	const bool wait_in_few = s->severity >= WAIT_SEVERITY && p->state[code].bg >= 0 && p->state[code].bg < SMALL_PALETTE;
	return (struct face){ p->state[code], s->letter, s->glyph, code == VIS_UNKNOWN || wait_in_few };
}

/* Returns true if the cell shows the letter of `other`: a wait of at least 1/2, or an owner of at least 1/8 of a pCPU
 * that is otherwise idle. */
static bool other_gets_letter(struct cell c, bool owners)
{
	return c.main != c.other && (owners ? c.main == 0 && c.part >= MARKED_MIN : c.part >= HALF_CELL);
}

/* Returns true if a split cell shows the letter of its right part. */
static bool right_gets_letter(struct cell c, bool owners)
{
	int min_part = !owners || (c.main && c.other) ? HALF_CELL + 1 : c.main == 0 ? MARKED_MIN : CELL_PARTS - MARKED_MIN + 1;
	return CELL_PARTS - c.part >= min_part;
}

/* Returns true if a shorter wait is marked: from 1/8, and always if there is no other state. */
static bool other_is_marked(struct cell c, bool owners)
{
	return c.main != c.other && !owners && c.part < HALF_CELL && (c.part >= MARKED_MIN || c.main == VIS_NONE);
}

static struct glyph letter_of(const struct face *f, bool shades)
{
	return (struct glyph){ .ch = shades ? f->shade : (unsigned char)f->letter, .style = f->style };
}

/* Returns the glyph without colours: a letter; or, with `shades`, a shade or a bar with the wait's height. */
static struct glyph letter_glyph(struct cell c, const struct face *main, const struct face *other, bool owners, bool shades)
{
	bool gets_letter = other_gets_letter(c, owners), marked = other_is_marked(c, owners);
	struct glyph g = letter_of(gets_letter ? other : main, shades);
	if (shades && !owners && (gets_letter || marked) && c.part < CELL_PARTS - 1)
		g = (struct glyph){ .ch = 0x2580U + (c.part < MARKED_MIN ? 1U : (c.part + 1U) / 2), .style = other->style };
	else if (marked)
		g.ch = SHORT_WAIT_LETTER;
	if (marked)
		g.style.attr |= ATTR_BOLD;
	return g;
}

/* Returns the glyph of one state. All filled glyphs have the same foreground: it is invisible, and changing it costs
 * bytes. */
static struct glyph fill_glyph(const struct app *app, const struct face *f, bool blocks)
{
	if (f->style.bg < 0 || f->shows_letter)
		return letter_of(f, blocks && f->style.bg < 0);
	return (struct glyph){ .ch = ' ', .style = { app->appearance.palette.part[PART_NORMAL].fg, f->style.bg, 0 } };
}

/* Returns a glyph of two colours: the character shows colour a from the left or from below, the rest shows b. */
static struct glyph two_colour_glyph(uint32_t ch, int16_t a, int16_t b)
{
	if (a < 0)  /* the terminal's default background cannot be used as a foreground: use reverse video */
		return (struct glyph){ .ch = ch, .style = { b, -1, ATTR_REVERSE } };
	return (struct glyph){ .ch = ch, .style = { a, b, 0 } };
}

/* Returns the glyph of the cells tier: coloured, without block characters. */
static struct glyph coloured_glyph(const struct app *app, struct cell c, const struct face *main, const struct face *other,
                             bool owners)
{
	if (other_gets_letter(c, owners))
		return fill_glyph(app, other, app->appearance.coarse);
	if (!other_is_marked(c, owners) || app->appearance.coarse)
		return fill_glyph(app, main, app->appearance.coarse);
	struct style s = main->style;
	return (struct glyph){ .ch = SHORT_WAIT_LETTER, .style = { s.bg < 0 ? other->style.bg : s.fg, s.bg, ATTR_BOLD } };
}

static struct glyph block_glyph(const struct app *app, struct cell c, const struct face *main, const struct face *other)
{
	unsigned eighths = (c.part + 1U) / 2;
	if (main->style.bg < 0 && other->style.bg < 0 && (c.form == CELL_SPLIT || other->style.fg < 0))
		return fill_glyph(app, (c.form == CELL_SPLIT ? c.part < HALF_CELL : c.part >= HALF_CELL) ? other : main, true);
	if (c.form == CELL_SPLIT)
		return two_colour_glyph(0x2590U - (eighths < 1 ? 1 : eighths > 7 ? 7 : eighths), main->style.bg, other->style.bg);
	if (c.main == c.other || eighths == 8)
		return fill_glyph(app, other, true);
	int16_t ink = other->style.bg < 0 ? other->style.fg : other->style.bg;
	return two_colour_glyph(eighths ? 0x2580U + eighths : LOW_MARK, ink, main->style.bg);
}

/* Returns the relative luminance of one of the upper 240 colours (WCAG 2.2). */
static double colour_luminance(int colour)
{
	static const double share[3] = { 0.2126, 0.7152, 0.0722 };
	static const uint8_t step[6] = { 0, 95, 135, 175, 215, 255 };
	const int cube = colour - 16, grey = 8 + 10 * (colour - 232);
	const int rgb[3] = { cube / 36, cube / 6 % 6, cube % 6 };
	double sum = 0;
	for (int i = 0; i < 3; i++) {
		const double c = (colour < 232 ? step[rgb[i]] : grey) / 255.0;
		sum += share[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
	}
	return sum;
}

double colour_contrast(int a, int b)
{
	const double x = colour_luminance(a) + 0.05, y = colour_luminance(b) + 0.05;
	return x > y ? x / y : y / x;
}

struct style appearance_bar_style(const struct app *app, unsigned code, bool owners)
{
	struct style style = face_of(app, code, owners).style;
	if (style.bg < SMALL_PALETTE ||
	    (style.fg >= SMALL_PALETTE && colour_contrast(style.fg, style.bg) >= CONTRAST_MIN))
		return style;
	style.fg = colour_contrast(16, style.bg) > colour_contrast(231, style.bg) ? 16 : 231;
	return colour_contrast(style.fg, style.bg) >= CONTRAST_MIN ? style : app->appearance.palette.part[PART_NORMAL];
}

uint32_t appearance_bar(const struct app *app, double part)
{
	static const char letters[] = " _i!";  /* nothing; less than 1/8; less than 1/2; more */
	if (app->appearance.tier == TIER_BLOCKS)
		return part <= 0 ? ' ' : part < 1.0 / 16 ? LOW_MARK : 0x2580U + (uint32_t)(part * 8 + 0.5);
	return (uint32_t)(unsigned char)letters[part <= 0 ? 0 : part < 0.125 ? 1 : part < 0.5 ? 2 : 3];
}

struct glyph appearance_glyph(const struct app *app, struct cell c, bool owners)
{
	enum tier tier = app->appearance.tier;
	if (c.form == CELL_EMPTY)
		return (struct glyph){ .ch = ' ', .style = app->appearance.palette.part[PART_NORMAL] };
	struct face main = face_of(app, c.main, owners), other = face_of(app, c.other, owners);
	bool letter = tier == TIER_ASCII || app->appearance.palette.depth == DEPTH_MONO;
	if (c.form == CELL_SPLIT && (letter || tier == TIER_CELLS || app->appearance.coarse)) {
		struct face *larger = right_gets_letter(c, owners) ? &other : &main;
		return letter ? letter_of(larger, tier == TIER_BLOCKS) : fill_glyph(app, larger, app->appearance.coarse);
	}
	if (letter)
		return letter_glyph(c, &main, &other, owners, tier == TIER_BLOCKS);
	return tier == TIER_CELLS || app->appearance.coarse ? coloured_glyph(app, c, &main, &other, owners) :
	                                                      block_glyph(app, c, &main, &other);
}
