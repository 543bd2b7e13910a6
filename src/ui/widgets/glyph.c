/* The glyph of a cell in each tier. */
#include "ui/widgets/appearance.h"

#include "ui/core/app.h"

#define LOW_MARK '_'    /* blocks: less than a sixteenth, on the base line */
#define SOME_LETTER 'i' /* letters: a wait of an eighth or more, but less than half */
#define SOME 2          /* sixteenths */
#define HALF 8
#define FEW 16         /* colours of a terminal: states have them, too, and only letters tell owners from those */

struct face {
	struct style style;  /* letter on background; a state without a background is drawn as its glyph, on the ground */
	char letter;
	uint32_t shade;
	bool told;           /* says its letter, also on a background: what is unknown, and owners in few colours */
};

static struct face face_of(const struct app *app, unsigned code, bool owners)
{
	const struct palette *p = &app->look.palette;
	if (owners && code < HISTORY_STATES - 1) {
		char letter = app->look.letter[code];
		bool unknown = code == OWNER_UNKNOWN;
		const struct style *style = unknown ? &p->state[VIS_UNKNOWN] : &p->owner[code % OWNERS];
		return (struct face){ *style, letter, (unsigned char)letter, unknown || style->bg < FEW };
	}
	if (owners || code >= VIS_COUNT)
		code = VIS_NONE;
	const struct theme_state *s = &app->look.theme.state[code];
	return (struct face){ p->state[code], s->letter, s->glyph, code == VIS_UNKNOWN };
}

/* A wait gives its letter to a cell of which it has half.  Owners of a pCPU are equals, but an idle pCPU lends its
 * letter to who has an eighth of it. */
static bool other_wins(struct cell c, bool owners)
{
	return c.main != c.other && (owners ? c.main == 0 && c.part >= SOME : c.part >= HALF);
}

/* The same for the two sides of a boundary. */
static bool right_wins(struct cell c, bool owners)
{
	int least = !owners || (c.main && c.other) ? HALF + 1 : c.main == 0 ? SOME : CELL_PARTS - SOME + 1;
	return CELL_PARTS - c.part >= least;
}

/* What has less leaves a lower mark from an eighth on, and always where nothing else is. */
static bool other_shows(struct cell c, bool owners)
{
	return c.main != c.other && !owners && c.part < HALF && (c.part >= SOME || c.main == VIS_NONE);
}

static struct glyph letter_of(const struct face *f, bool shades)
{
	return (struct glyph){ .ch = shades ? f->shade : (unsigned char)f->letter, .style = f->style };
}

/* Without colours: letters, or shades, where a wait stands from the bottom as it does with colours. */
static struct glyph letters(struct cell c, const struct face *main, const struct face *other, bool owners, bool shades)
{
	bool wins = other_wins(c, owners), some = other_shows(c, owners);
	struct glyph g = letter_of(wins ? other : main, shades);
	if (shades && !owners && (wins || some) && c.part < CELL_PARTS - 1)
		g = (struct glyph){ .ch = 0x2580U + (c.part < SOME ? 1U : (c.part + 1U) / 2), .style = other->style };
	else if (some)
		g.ch = SOME_LETTER;
	if (some)
		g.style.attr |= ATTR_BOLD;
	return g;
}

/* One state in a whole cell.  One foreground for all backgrounds: it is not seen, and changing it costs bytes. */
static struct glyph fill(const struct app *app, const struct face *f, bool blocks)
{
	if (f->style.bg < 0 || f->told)
		return letter_of(f, blocks);
	return (struct glyph){ .ch = ' ', .style = { app->look.palette.part[PART_NORMAL].fg, f->style.bg, 0 } };
}

/* Two colours in one cell: the character shows a, from the left or from below; the rest is b. */
static struct glyph two(uint32_t ch, int16_t a, int16_t b)
{
	if (a < 0)  /* the terminal's own background cannot be a foreground: turn the cell around */
		return (struct glyph){ .ch = ch, .style = { b, -1, ATTR_REVERSE } };
	return (struct glyph){ .ch = ch, .style = { a, b, 0 } };
}

/* Colours, and no characters of uncertain width. */
static struct glyph coloured(const struct app *app, struct cell c, const struct face *main, const struct face *other,
                             bool owners)
{
	if (other_wins(c, owners))
		return fill(app, other, app->look.coarse);
	if (!other_shows(c, owners) || app->look.coarse)
		return fill(app, main, app->look.coarse);
	struct style s = main->style;
	return (struct glyph){ .ch = SOME_LETTER, .style = { s.bg < 0 ? other->style.bg : s.fg, s.bg, ATTR_BOLD } };
}

static struct glyph blocks(const struct app *app, struct cell c, const struct face *main, const struct face *other)
{
	unsigned eighths = (c.part + 1U) / 2;
	if (main->style.bg < 0 && other->style.bg < 0 && (c.form == CELL_SPLIT || other->style.fg < 0))
		return fill(app, (c.form == CELL_SPLIT ? c.part < HALF : c.part >= HALF) ? other : main, true);
	if (c.form == CELL_SPLIT)
		return two(0x2590U - (eighths < 1 ? 1 : eighths > 7 ? 7 : eighths), main->style.bg, other->style.bg);
	if (c.main == c.other || eighths == 8)
		return fill(app, other, true);
	int16_t ink = other->style.bg < 0 ? other->style.fg : other->style.bg;
	return two(eighths ? 0x2580U + eighths : LOW_MARK, ink, main->style.bg);
}

uint32_t look_bar(const struct app *app, double part)
{
	static const char letters[] = " _i!";  /* nothing, below an eighth, below half, more */
	if (app->look.tier == TIER_BLOCKS)
		return part <= 0 ? ' ' : part < 1.0 / 16 ? LOW_MARK : 0x2580U + (uint32_t)(part * 8 + 0.5);
	return (uint32_t)(unsigned char)letters[part <= 0 ? 0 : part < 0.125 ? 1 : part < 0.5 ? 2 : 3];
}

struct glyph look_glyph(const struct app *app, struct cell c, bool owners)
{
	enum tier tier = app->look.tier;
	if (c.form == CELL_EMPTY)
		return (struct glyph){ .ch = ' ', .style = app->look.palette.part[PART_NORMAL] };
	struct face main = face_of(app, c.main, owners), other = face_of(app, c.other, owners);
	bool letter = tier == TIER_ASCII || app->look.palette.depth == DEPTH_MONO;
	if (c.form == CELL_SPLIT && (letter || tier == TIER_CELLS || app->look.coarse)) {
		struct face *most = right_wins(c, owners) ? &other : &main;
		return letter ? letter_of(most, tier == TIER_BLOCKS) : fill(app, most, app->look.coarse);
	}
	if (letter)
		return letters(c, &main, &other, owners, tier == TIER_BLOCKS);
	return tier == TIER_CELLS || app->look.coarse ? coloured(app, c, &main, &other, owners) : blocks(app, c, &main, &other);
}
