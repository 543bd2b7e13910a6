/* The foot of the screen: what is written, what was said, or the legend and the keys that help. */
#include "ui/widgets/widgets.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"

static const struct style *part(const struct app *app, enum part p)
{
	return &app->look.palette.part[p];
}

/* Its sample, then its label, if both fit before `end`.  Returns the next column, or -1. */
static int draw_code(struct app *app, struct screen *s, int x, int y, int end, unsigned code, bool owners,
                     const char *label)
{
	int need = 2 + text_width(label);
	if (x + need >= end)
		return -1;
	struct glyph g = look_glyph(app, (struct cell){ CELL_PURE, (uint8_t)code, (uint8_t)code, CELL_PARTS }, owners);
	char letter = owners ? app->look.letter[code] : app->look.theme.state[code].letter;
	struct style style = owners ? app->look.palette.owner[code % OWNERS] : app->look.palette.state[code];
	screen_put(s, x, y, g.ch == ' ' ? (uint32_t)(unsigned char)letter : g.ch,
	           app->look.palette.depth == DEPTH_MONO ? g.style : style);
	screen_text(s, x + 2, y, s->w, *part(app, PART_NORMAL), label);
	return x + need + 1;
}

/* NULL: it looks like another one. */
static const char *label_of(const struct app *app, uint8_t state)
{
	const struct style *style = app->look.palette.state;
	if (state != VIS_VCPU_PREEMPTED)
		return app->look.theme.state[state].label;
	return style[VIS_PREEMPTED].bg == style[VIS_VCPU_PREEMPTED].bg ? NULL : "vCPU preempt";
}

/* Draws the states as far as they fit before `end`.  Returns the next column. */
static int draw_states(struct app *app, struct screen *s, int x, int y, int end, const uint8_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *label = label_of(app, order[i]);
		int next = label ? draw_code(app, s, x, y, end, order[i], false, label) : x;
		if (next < 0)
			break;
		x = next;
	}
	return x;
}

/* The states that people look for.  On a narrow screen those that are no wait stay out first. */
static int draw_common(struct app *app, struct screen *s, int y, int end)
{
	static const uint8_t common[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VCPU_PREEMPTED,
		VIS_VIRT_PREEMPTED, VIS_VMM, VIS_IDLE };
	static const uint8_t least[] = { VIS_IDLE, VIS_VMM, VIS_BLOCKED, VIS_VCPU_PREEMPTED, VIS_RUNNING };
	uint8_t shown[sizeof common];
	size_t n = sizeof common, left_out = 0;
	int need = 0;
	for (size_t i = 0; i < n; i++)
		need += label_of(app, shown[i] = common[i]) ? 3 + text_width(label_of(app, common[i])) : 0;
	for (; need > end && left_out < sizeof least; left_out++) {
		const uint8_t out = least[left_out];
		uint8_t *at = memchr(shown, out, n);
		memmove(at, at + 1, (size_t)(shown + n - at) - 1);
		n--;
		need -= label_of(app, out) ? 3 + text_width(label_of(app, out)) : 0;
	}
	return draw_states(app, s, 0, y, end, shown, n);
}

/* Who may have a CPU of the host. */
static int draw_owners(struct app *app, struct screen *s, int x, int y, int end)
{
	char letter, shown[128];
	struct style style;
	for (unsigned code = 0; code < OWNER_UNKNOWN; code++) {
		const char *name = look_owner(app, code, &letter, &style);
		int next = name ? draw_code(app, s, x, y, end, code, true, text_escape(shown, sizeof shown, name)) : x;
		if (next < 0)
			break;
		x = next;
	}
	return x;
}

#define ROOMY 100  /* columns from which on letters are explained further than by the states' own */

/* Letters and coloured cells tell of waits that do not win their cell by one that is no state's. */
static int draw_smaller(struct app *app, struct screen *s, int x, int y)
{
	static const char label[] = "smaller wait";
	struct style style = *part(app, PART_STEAL);
	style.attr |= ATTR_BOLD;
	if (app->look.tier == TIER_BLOCKS || s->w < ROOMY)
		return x;
	screen_put(s, x, y, 'i', style);
	return x + 3 + screen_text(s, x + 2, y, s->w, *part(app, PART_NORMAL), label);
}

/* The states, or the owners if the row is a CPU of the host; then keys as many as fit, then the rarer states. */
static void draw_legend(struct app *app, struct screen *s, int y)
{
	static const uint8_t rare[] = { VIS_HOST_BLOCKED, VIS_WAKING, VIS_UNKNOWN };
	static const struct hint { enum action action; const char *text; } at_rows[] = {
		{ ACT_HELP, "help" }, { ACT_FLOW, "flow" }, { ACT_NEXT_GAP, "gap" }, { ACT_EXPORT, "export" },
		{ ACT_ZOOM_IN, "zoom" }, { ACT_PAN_RIGHT, "pan" }, { ACT_BLAME, "who took it" },
	}, in_pane[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_GO, "go there" }, { ACT_IN_PANE_EXPORT, "export" }, { ACT_FOCUS, "rows" },
		{ ACT_IN_PANE_CLOSE, "close" },
	}, in_overview[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_GO, "longest gap" }, { ACT_IN_PANE_SORT, "sort" },
		{ ACT_IN_PANE_FILTER, "filter" }, { ACT_FOCUS, "threads" }, { ACT_BACK, "timeline" }, { ACT_IN_PANE_CLOSE, "quit" },
	};
	bool overview = app->below && app->below->ops->full;
	const struct hint *hints = overview ? in_overview : app->focused ? in_pane : at_rows;
	const size_t hinted = overview ? sizeof in_overview / sizeof *in_overview
		: app->focused ? sizeof in_pane / sizeof *in_pane : sizeof at_rows / sizeof *at_rows;
	char tail[160] = "", keys[64];
	const bool silent = app->over || app->still;  /* a list has other keys, told above it; a picture has none */
	keymap_text(&app->keymap, ACT_HELP, keys, sizeof keys);
	int help = silent ? 0 : (int)strcspn(keys, ",") + 6;  /* the hint that the smallest screen shows, too */
	bool owners = !overview && !app->over && app->rows.len && row_is_pcpu(&app->topo, app->view.row);
	int x = owners ? draw_owners(app, s, 0, y, s->w - help) : draw_common(app, s, y, s->w - help);
	if (!owners)
		x = draw_smaller(app, s, x, y);
	const bool leads = app->below && pane_leads(app->below);
	for (size_t i = 0; !silent && i < hinted; i++) {
		char one[240];
		if (hints[i].action == ACT_IN_PANE_GO && !leads)
			continue;
		keymap_text(&app->keymap, hints[i].action, keys, sizeof keys);
		keys[strcspn(keys, ",")] = '\0';
		size_t n = strlen(keys);
		bool named = n > 2 && keys[0] == '<' && keys[n - 1] == '>';
		if (named)
			keys[n - 1] = '\0';
		snprintf(one, sizeof one, "%s %s%s%s", keys + named, hints[i].text, tail[0] ? "  " : "", tail);
		if (x + (int)strlen(one) >= s->w || strlen(one) >= sizeof tail)
			break;
		snprintf(tail, sizeof tail, "%.159s", one);
	}
	if (!owners)
		draw_states(app, s, x, y, s->w - (int)strlen(tail) - 2, rare, sizeof rare);
	screen_text(s, s->w - (int)strlen(tail) - 1, y, s->w, *part(app, PART_DIM), tail);
}

#define MOST_LINES 4  /* of a message: the last ones of the screen */

/* In the last line; what is too long for that takes lines above as well. */
static void draw_message(struct screen *s, int y, struct style style, const char *text)
{
	size_t bytes[MOST_LINES];
	int lines = 0;
	for (const char *at = text; lines < MOST_LINES && (*at || lines == 0); lines++) {
		bytes[lines] = text_width(at) > s->w - 2 ? text_line(at, s->w - 2) : strlen(at);
		at += bytes[lines] + strspn(at + bytes[lines], " ");
	}
	for (int i = 0; i < lines; i++) {
		screen_fill(s, 0, y - lines + 1 + i, s->w, ' ', style);
		screen_printf(s, 1, y - lines + 1 + i, s->w - 1, style, "%.*s", (int)bytes[i], text);
		text += bytes[i] + strspn(text + bytes[i], " ");
	}
}

void foot_draw(struct app *app, struct screen *s)
{
	int y = s->h - 1;
	char text[512];
	if (app->prompting) {
		prompt_draw(&app->prompt, s, y, *part(app, PART_NORMAL));
		int room = s->w - s->cursor_x - 3;  /* beside what is typed: what it finds */
		if (app->message[0] && text_width(app->message) <= room)
			screen_text(s, s->w - 1 - text_width(app->message), y, s->w, *part(app, PART_DIM), app->message);
	} else if (app->message[0]) {
		struct style style = *part(app, app->message_is_error ? PART_ERROR : PART_STATUS);
		draw_message(s, y, style, app->message);
	} else if (nudge_text(app, text, sizeof text)) {
		draw_message(s, y, *part(app, PART_STATUS), text);
	} else {
		draw_legend(app, s, y);
	}
}
