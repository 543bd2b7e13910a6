/* The last lines of the screen: the prompt, a message, or the legend and key hints. */
#include "ui/widgets/widgets.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"

static const struct style *part_style(const struct app *app, enum part p)
{
	return &app->appearance.palette.part[p];
}

/* Draws the sample of a state or owner and its label, if both fit before column `end`. Returns the next column, or -1. */
static int draw_code(struct app *app, struct screen *s, int x, int y, int end, unsigned code, bool owners,
                     const char *label)
{
	int need = 2 + text_width(label);
	if (x + need >= end)
		return -1;
	struct glyph g = appearance_glyph(app, (struct cell){ CELL_PURE, (uint8_t)code, (uint8_t)code, CELL_PARTS }, owners);
	char letter = owners ? app->appearance.letter[code] : app->appearance.theme.state[code].letter;
	struct style style = owners ? app->appearance.palette.owner[code % OWNERS] : app->appearance.palette.state[code];
	screen_put(s, x, y, g.ch == ' ' ? (uint32_t)(unsigned char)letter : g.ch,
	           app->appearance.palette.depth == DEPTH_MONO ? g.style : style);
	screen_text(s, x + 2, y, s->w, *part_style(app, PART_NORMAL), label);
	return x + need + 1;
}

/* Returns the label of a state in the legend; NULL: none, because it looks like another state. */
static const char *label_of(const struct app *app, uint8_t state)
{
	const struct style *style = app->appearance.palette.state;
	if (state != VIS_VCPU_PREEMPTED)
		return app->appearance.theme.state[state].label;
	return style[VIS_PREEMPTED].bg == style[VIS_VCPU_PREEMPTED].bg ? NULL : "vCPU preempt";
}

/* Draws the states whose labels fit before column `end`. Returns the next column. */
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

/* Draws the common states. A narrow screen omits the less important ones. Returns the next column. */
static int draw_common(struct app *app, struct screen *s, int y, int end)
{
	static const uint8_t common[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VCPU_PREEMPTED,
		VIS_VIRT_PREEMPTED, VIS_VMM, VIS_IDLE };
	static const uint8_t omission_order[] = { VIS_IDLE, VIS_VMM, VIS_BLOCKED, VIS_VCPU_PREEMPTED, VIS_RUNNING };
	uint8_t shown[sizeof common];
	size_t n = sizeof common, omitted = 0;
	int need = 0;
	for (size_t i = 0; i < n; i++)
		need += label_of(app, shown[i] = common[i]) ? 3 + text_width(label_of(app, common[i])) : 0;
	for (; need > end && omitted < sizeof omission_order; omitted++) {
		const uint8_t state = omission_order[omitted];
		uint8_t *at = memchr(shown, state, n);
		memmove(at, at + 1, (size_t)(shown + n - at) - 1);
		n--;
		need -= label_of(app, state) ? 3 + text_width(label_of(app, state)) : 0;
	}
	return draw_states(app, s, 0, y, end, shown, n);
}

/* Draws the owners of host CPUs. Returns the next column. */
static int draw_owners(struct app *app, struct screen *s, int x, int y, int end)
{
	char letter, shown[128];
	struct style style;
	for (unsigned code = 0; code < OWNER_UNKNOWN; code++) {
		const char *name = appearance_owner(app, code, &letter, &style);
		int next = name ? draw_code(app, s, x, y, end, code, true, text_escape(shown, sizeof shown, name)) : x;
		if (next < 0)
			break;
		x = next;
	}
	return x;
}

#define WIDE_COLUMNS_MIN 100  /* smallest width of a screen whose legend explains the letter of smaller waits */

/* Draws the letter of waits that are too short to determine the letter of their cell. Returns the next column. */
static int draw_short_wait_letter(struct app *app, struct screen *s, int x, int y)
{
	static const char label[] = "smaller wait";
	struct style style = *part_style(app, PART_STEAL);
	style.attr |= ATTR_BOLD;
	if (app->appearance.tier == TIER_BLOCKS || s->w < WIDE_COLUMNS_MIN)
		return x;
	screen_put(s, x, y, 'i', style);
	return x + 3 + screen_text(s, x + 2, y, s->w, *part_style(app, PART_NORMAL), label);
}

/* Draws the states, or the owners if the row is a CPU of the host; then the key hints that fit; then the rarer states. */
static void draw_legend(struct app *app, struct screen *s, int y)
{
	static const uint8_t rare[] = { VIS_HOST_BLOCKED, VIS_WAKING, VIS_UNKNOWN };
	static const struct hint { enum action action; const char *text; } at_rows[] = {
		{ ACT_HELP, "help" }, { ACT_FLOW, "flow" }, { ACT_NEXT_GAP, "gap" }, { ACT_EXPORT, "export" },
		{ ACT_ZOOM_IN, "zoom" }, { ACT_PAN_RIGHT, "pan" }, { ACT_BLAME, "culprits" },
	}, in_pane[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_GO, "go there" }, { ACT_IN_PANE_EXPORT, "export" }, { ACT_FOCUS, "rows" },
		{ ACT_IN_PANE_CLOSE, "close" },
	}, in_overview[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_GO, "longest gap" }, { ACT_IN_PANE_SORT, "sort" },
		{ ACT_IN_PANE_FILTER, "filter" }, { ACT_FOCUS, "threads" }, { ACT_BACK, "timeline" }, { ACT_IN_PANE_CLOSE, "quit" },
	};
	bool overview = app->pane_below && app->pane_below->ops->replaces_rows;
	const struct hint *hints = overview ? in_overview : app->focused ? in_pane : at_rows;
	const size_t hint_count = overview ? sizeof in_overview / sizeof *in_overview
		: app->focused ? sizeof in_pane / sizeof *in_pane : sizeof at_rows / sizeof *at_rows;
	char tail[160] = "", keys[64];
	const bool no_hints = app->list_over || app->is_picture;  /* a list shows its own keys; a picture needs none */
	keymap_text(&app->keymap, ACT_HELP, keys, sizeof keys);
	int help = no_hints ? 0 : (int)strcspn(keys, ",") + 6;  /* space for the help key, which is always shown */
	bool owners = !overview && !app->list_over && app->rows.len && row_is_pcpu(&app->catalog, app->view.row);
	int x = owners ? draw_owners(app, s, 0, y, s->w - help) : draw_common(app, s, y, s->w - help);
	if (!owners)
		x = draw_short_wait_letter(app, s, x, y);
	const bool can_follow = app->pane_below && pane_can_follow(app->pane_below);
	for (size_t i = 0; !no_hints && i < hint_count; i++) {
		char one[240];
		if (hints[i].action == ACT_IN_PANE_GO && !can_follow)
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
	screen_text(s, s->w - (int)strlen(tail) - 1, y, s->w, *part_style(app, PART_DIM), tail);
}

#define MESSAGE_LINES_MAX 4  /* largest number of lines of a message */

/* Draws a message at the bottom of the screen; longer messages extend upwards. */
static void draw_message(struct screen *s, int y, struct style style, const char *text)
{
	size_t bytes[MESSAGE_LINES_MAX];
	int lines = 0;
	for (const char *at = text; lines < MESSAGE_LINES_MAX && (*at || lines == 0); lines++) {
		bytes[lines] = text_width(at) > s->w - 2 ? text_line_bytes(at, s->w - 2) : strlen(at);
		at += bytes[lines] + strspn(at + bytes[lines], " ");
	}
	for (int i = 0; i < lines; i++) {
		screen_fill(s, 0, y - lines + 1 + i, s->w, ' ', style);
		screen_printf(s, 1, y - lines + 1 + i, s->w - 1, style, "%.*s", (int)bytes[i], text);
		text += bytes[i] + strspn(text + bytes[i], " ");
	}
}

void footer_draw(struct app *app, struct screen *s)
{
	int y = s->h - 1;
	char text[512];
	if (app->prompting) {
		prompt_draw(&app->prompt, s, y, *part_style(app, PART_NORMAL));
		int space = s->w - s->cursor_x - 3;  /* the result of the search so far, next to the prompt */
		if (app->message[0] && text_width(app->message) <= space)
			screen_text(s, s->w - 1 - text_width(app->message), y, s->w, *part_style(app, PART_DIM), app->message);
	} else if (app->message[0]) {
		struct style style = *part_style(app, app->message_is_error ? PART_ERROR : PART_STATUS);
		draw_message(s, y, style, app->message);
	} else if (manual_offset_text(app, text, sizeof text)) {
		draw_message(s, y, *part_style(app, PART_STATUS), text);
	} else {
		draw_legend(app, s, y);
	}
}
