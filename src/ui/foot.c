/* The foot of the screen: what is written, what was said, or the legend and the keys that help. */
#include "ui/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ui/nudge.h"
#include "ui/pane.h"

static const struct style *part(const struct app *app, enum part p)
{
	return &app->look.palette.part[p];
}

/* Draws the states order[*at ..] as far as they fit before `end`; *at moves on.  Returns the next column. */
static int draw_states(struct app *app, struct screen *s, int x, int y, int end, const uint8_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct theme_state *state = &app->look.theme.state[order[i]];
		int need = 2 + text_width(state->label);
		if (x + need >= end)
			break;
		struct glyph g = look_glyph(app, (struct cell){ CELL_PURE, order[i], order[i], CELL_PARTS }, false);
		screen_put(s, x, y, g.ch == ' ' ? (uint32_t)(unsigned char)state->letter : g.ch,
		           app->look.palette.depth == DEPTH_MONO ? g.style : app->look.palette.state[order[i]]);
		screen_text(s, x + 2, y, s->w, *part(app, PART_NORMAL), state->label);
		x += need + 1;
	}
	return x;
}

/* The states that people look for, then keys as many as fit, then the rarer states. */
static void draw_legend(struct app *app, struct screen *s, int y)
{
	static const uint8_t common[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_VMM, VIS_IDLE };
	static const uint8_t rare[] = { VIS_HOST_BLOCKED, VIS_WAKING, VIS_UNKNOWN };
	static const struct hint { enum action action; const char *text; } at_rows[] = {
		{ ACT_HELP, "help" }, { ACT_FLOW, "flow" }, { ACT_NEXT_GAP, "gap" }, { ACT_EXPORT, "export" },
		{ ACT_ZOOM_IN, "zoom" }, { ACT_PAN_RIGHT, "pan" }, { ACT_BLAME, "who took it" },
	}, in_overview[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_GO, "its longest gap" }, { ACT_IN_PANE_SORT, "sort" },
		{ ACT_IN_PANE_FILTER, "filter" }, { ACT_FOCUS, "threads" }, { ACT_BACK, "timeline" }, { ACT_IN_PANE_CLOSE, "quit" },
	};
	bool overview = app->below && app->below->ops->full;
	const struct hint *hints = overview ? in_overview : at_rows;
	const size_t hinted = overview ? sizeof in_overview / sizeof *in_overview : sizeof at_rows / sizeof *at_rows;
	char tail[160] = "", keys[64];
	bool list = app->over;  /* whose keys are others, told above it */
	keymap_text(&app->keymap, ACT_HELP, keys, sizeof keys);
	int help = list ? 0 : (int)strcspn(keys, ",") + 6;  /* the hint that the smallest screen shows, too */
	int x = draw_states(app, s, 0, y, s->w - help, common, sizeof common);
	for (size_t i = 0; !list && i < hinted; i++) {
		char one[240];
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
	draw_states(app, s, x, y, s->w - (int)strlen(tail) - 2, rare, sizeof rare);
	screen_text(s, s->w - (int)strlen(tail) - 1, y, s->w, *part(app, PART_DIM), tail);
}

/* In the last line; what is too long for that takes the line above as well. */
static void draw_message(struct screen *s, int y, struct style style, const char *text)
{
	int room = s->w - 2;
	if (text_width(text) > room) {
		size_t fits = text_fit(text, room), n = fits;
		while (n > fits / 2 && text[n] != ' ')
			n--;
		n = text[n] == ' ' ? n : fits;
		screen_fill(s, 0, y - 1, s->w, ' ', style);
		screen_printf(s, 1, y - 1, s->w - 1, style, "%.*s", (int)n, text);
		text += n + (text[n] == ' ');
	}
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, s->w - 1, style, text);
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
