/* From a row to what its cells look like: which attributes it sums up, and the glyph of a cell in each tier. */
#include "ui/app.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SUMMED 64  /* threads at most that stand for a machine without CPUs */

static uint32_t machine_attrs(const struct app *app, const struct topo_machine *m, uint32_t *attr)
{
	uint32_t n = 0;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++)
		attr[n++] = m->kind == MACHINE_HOST ? app->topo.cpu[c].owner : app->topo.cpu[c].status;
	for (uint32_t t = m->thread; m->cpus == 0 && t < m->thread + m->threads && n < SUMMED; t++)
		attr[n++] = app->topo.thread[t].status;
	return n;
}

void app_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out)
{
	const struct vocabulary *v = &app->thread;
	const struct topo_machine *m = &app->topo.machine[row_machine(&app->rows, row)];
	uint32_t n = 0, *attr = mem_new(m->cpus > SUMMED ? m->cpus : SUMMED, sizeof *attr);
	if (row.kind == ROW_MACHINE)
		n = machine_attrs(app, m, attr);
	else if (row.kind != ROW_GROUP && row.kind != ROW_REQUESTS)
		attr[n++] = app_row_attr(app, row);
	if (row.kind == ROW_REQUEST)
		v = &app->request_states;
	if (row.kind == ROW_CPU || (row.kind == ROW_MACHINE && m->cpus > 0))
		v = m->kind == MACHINE_HOST ? &app->owner[m->cpu] : &app->vcpu;
	*src = (struct cell_source){ app->h, attr, n, v->code, v->severity, v->owners };
	*attrs_out = attr;
}

/* ---- Owners of a pCPU ---------------------------------------------------------------------------------------- */

/* Name of the machine that has this code; NULL for none. */
static const char *owner_name(const struct app *app, unsigned code)
{
	for (uint32_t c = 0; c < app->topo.cpus; c++) {
		uint32_t attr = app->topo.cpu[c].owner;
		for (unsigned i = 0; attr != HISTORY_NONE && i < history_state_count(app->h, attr); i++)
			if (app->owner[c].code[i] == code)
				return history_state_name(app->h, attr, i);
		if (attr != HISTORY_NONE)
			return NULL;
	}
	return NULL;
}

/* The first of these that is printable and not taken, upper case; 0 for none. */
static char free_letter(const char *from, const bool taken[128])
{
	for (; *from; from++) {
		int c = toupper((unsigned char)*from);
		if (c > ' ' && c < 127 && !taken[c])
			return (char)c;
	}
	return 0;
}

/* Its first letter, upper case; when an earlier machine has that, the next one of its name that is free, or any. */
static char owner_letter(const struct app *app, unsigned code)
{
	bool taken[128] = { ['.'] = true, ['?'] = true };
	if (code <= 1 || code >= OWNER_OTHER)
		return code == 0 ? '.' : code == 1 ? 'h' : code == OWNER_OTHER ? '+' : '?';
	for (unsigned k = 2; k < OWNER_OTHER; k++) {
		const char *name = owner_name(app, k);
		char letter = free_letter(name ? name : "", taken);
		if (!letter)
			letter = free_letter("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", taken);
		taken[(unsigned char)letter] = true;
		if (k == code)
			return letter;
	}
	return '?';
}

const char *app_owner(const struct app *app, unsigned code, char *letter, struct style *style)
{
	*letter = owner_letter(app, code);
	*style = app->palette.owner[code % OWNERS];
	return owner_name(app, code);
}

const char *app_code_label(const struct app *app, struct row_id row, unsigned code)
{
	const struct topo_machine *m = &app->topo.machine[row_machine(&app->rows, row)];
	bool owners = m->kind == MACHINE_HOST && (row.kind == ROW_CPU || row.kind == ROW_MACHINE);
	if (!owners)
		return code < VIS_COUNT ? app->theme.state[code].label : "?";
	const char *name = code == HISTORY_STATES - 1 ? "nothing" : owner_name(app, code);
	return name ? name : "?";
}

/* ---- Glyphs ---------------------------------------------------------------------------------------------------- */

struct look {
	struct style style;  /* letter on background */
	char letter;
	uint32_t shade;
	uint8_t severity;
};

static struct look look_of(const struct app *app, unsigned code, bool owners)
{
	const struct palette *p = &app->palette;
	if (owners && code < HISTORY_STATES - 1) {
		char letter = owner_letter(app, code);
		if (code == OWNER_UNKNOWN)
			return (struct look){ p->state[VIS_UNKNOWN], letter, (unsigned char)letter, 1 };
		return (struct look){ p->owner[code % OWNERS], letter, (unsigned char)letter, code > 0 };
	}
	if (owners || code >= VIS_COUNT)
		code = VIS_NONE;
	const struct theme_state *s = &app->theme.state[code];
	return (struct look){ p->state[code], s->letter, s->glyph, s->severity };
}

/* Waiting for a CPU while something else has it gives its letter to a cell however short it was; milder states do so
 * from an eighth of the cell on, or a picture of a whole trace would be all VM exits.  Owners of a pCPU are equals:
 * only an idle pCPU lends its letter to another from an eighth on. */
static bool takes_letter(struct cell c, unsigned code, bool smaller, bool owners)
{
	if (owners)
		return !smaller || (!c.slight && (c.main == 0 || c.other == 0) && code != 0);
	return !smaller || !c.slight || code == VIS_PREEMPTED || code == VIS_VCPU_PREEMPTED || code == VIS_HOST_BLOCKED;
}

/* Letters: a mixed cell shows the worst one in bold on the background of the state that has most of it; bold alone
 * says that there is more in it. */
static struct glyph letters(const struct app *app, struct cell c, const struct look *main, const struct look *other,
                            bool owners)
{
	bool shades = app->palette.depth == DEPTH_MONO && app->tier == TIER_BLOCKS;
	if (c.form == CELL_PURE || c.main == c.other)
		return (struct glyph){ shades ? main->shade : (uint32_t)(unsigned char)main->letter, main->style };
	/* The two sides of a single boundary: the larger one is the background. */
	const struct look *most = c.form == CELL_SPLIT && c.eighths < 4 ? other : main;
	const struct look *worst = c.form == CELL_MIXED || other->severity > main->severity ? other : main;
	bool empty = !owners && (most == main ? c.main : c.other) == VIS_NONE;
	if (!empty && !takes_letter(c, worst == main ? c.main : c.other, worst != most, owners))
		worst = most;
	struct style style = most->style;
	style.attr |= ATTR_BOLD;
	return (struct glyph){ shades ? worst->shade : (uint32_t)(unsigned char)worst->letter, style };
}

/* Two colours in one cell: `part` eighths of a, from the left or from below, the rest b. */
static struct glyph two(uint32_t ch, int16_t a, int16_t b)
{
	if (a < 0)  /* the terminal's own background cannot be a foreground: turn the cell around */
		return (struct glyph){ ch, { b, -1, ATTR_REVERSE } };
	return (struct glyph){ ch, { a, b, 0 } };
}

struct glyph app_glyph(const struct app *app, struct cell c, bool owners)
{
	enum tier tier = app->coarse && app->tier == TIER_BLOCKS ? TIER_CELLS : app->tier;
	struct style plain = app->palette.part[PART_NORMAL];
	if (c.form == CELL_EMPTY)
		return (struct glyph){ ' ', plain };
	struct look main = look_of(app, c.main, owners), other = look_of(app, c.other, owners);
	if (tier == TIER_ASCII || app->palette.depth == DEPTH_MONO)
		return letters(app, c, &main, &other, owners);
	bool pure = c.form == CELL_PURE || c.main == c.other;
	if (pure && !owners && c.main == VIS_UNKNOWN)
		return (struct glyph){ (unsigned char)main.letter, main.style };
	if (pure)  /* one foreground for all of them: it is not seen, and changing it costs bytes */
		return (struct glyph){ ' ', { plain.fg, main.style.bg, 0 } };
	if (tier == TIER_CELLS && !app->coarse)
		return letters(app, c, &main, &other, owners);
	if (tier == TIER_CELLS) {
		bool turned = c.form == CELL_SPLIT && c.eighths < 4;
		return (struct glyph){ ' ', { plain.fg, turned ? other.style.bg : main.style.bg, 0 } };
	}
	if (c.form == CELL_SPLIT)
		return two(0x2590U - c.eighths, main.style.bg, other.style.bg);
	return two(0x2580U + c.eighths, other.style.bg, main.style.bg);
}
