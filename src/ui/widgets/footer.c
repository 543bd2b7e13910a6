/* The last lines of the screen: the prompt, a message, or the legend and key hints. */
#include "base/base.h"
#include "ui/widgets/widgets.h"

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

/* Draws the states that the frame shows. A narrow screen omits the less important ones. Returns the next column. */
static int draw_common(struct app *app, struct screen *s, int y, int end)
{
	static const uint8_t order[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VCPU_PREEMPTED, VIS_VIRT_PREEMPTED,
		VIS_HOST_BLOCKED, VIS_WAKING, VIS_VMM, VIS_UNKNOWN, VIS_IDLE };
	static const uint8_t omission_order[] = { VIS_IDLE, VIS_VMM, VIS_BLOCKED, VIS_UNKNOWN, VIS_RUNNING };
	uint8_t shown[sizeof order];
	size_t n = 0, omitted = 0;
	int need = 0;
	uint32_t states = app->states_shown;
	if (states & 1U << VIS_VCPU_PREEMPTED && !label_of(app, VIS_VCPU_PREEMPTED))  /* it looks like preempted */
		states |= 1U << VIS_PREEMPTED;
	for (size_t i = 0; i < sizeof order; i++) {
		const char *label = label_of(app, order[i]);
		if (!(states & 1U << order[i]) || !label)
			continue;
		shown[n++] = order[i];
		need += 3 + text_width(label);
	}
	for (; need > end && omitted < sizeof omission_order; omitted++) {
		const uint8_t state = omission_order[omitted];
		uint8_t *at = memchr(shown, state, n);
		if (!at)
			continue;
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

#define HINTS_COLUMNS_MIN 80  /* smallest width of a screen that omits states for key hints */
#define HINTS_SPACE 24        /* columns for these hints */
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

struct hint {
	enum action action;
	const char *text;
};

static bool has_locks(const struct app *app)
{
	for (uint32_t t = 0; t < app->catalog.threads; t++)
		if (app->catalog.thread[t].lock != HISTORY_NONE)
			return true;
	return false;
}

/* Returns true if a hint's key has an effect now. */
static bool applies(const struct app *app, enum action action)
{
	switch (action) {
	case ACT_IN_PANE_GO: return app->pane_below && pane_can_follow(app->pane_below);
	case ACT_IN_PANE_SORT: return app->pane_below && app->pane_below->ops->sort;
	case ACT_IN_PANE_FILTER: return app->pane_below && app->pane_below->ops->arrange;
	case ACT_REQUESTS: return app->rows.requests > 0;
	case ACT_LOCKS: return has_locks(app);
	default: return true;
	}
}

/* Returns the hints for the current focus, the most important first; the last one has action ACT_NONE. */
static const struct hint *hints_of(const struct app *app)
{
	static const struct hint at_rows[] = {
		{ ACT_HELP, "help" }, { ACT_QUIT, "back" }, { ACT_NEXT_GAP, "gap" }, { ACT_FLOW, "flow" },
		{ ACT_BLAME, "culprits" }, { ACT_DETAILS, "details" }, { ACT_REQUESTS, "requests" }, { ACT_LOCKS, "locks" },
		{ ACT_ZOOM_IN, "zoom" },
		{ ACT_PAN_RIGHT, "pan" }, { ACT_EXPORT, "export" }, { ACT_NONE, NULL },
	}, in_pane[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_CLOSE, "close" }, { ACT_IN_PANE_GO, "go there" },
		{ ACT_IN_PANE_EXPORT, "export" }, { ACT_FOCUS, "rows" }, { ACT_IN_PANE_SORT, "sort" },
		{ ACT_IN_PANE_FILTER, "filter" }, { ACT_NONE, NULL },
	}, in_overview[] = {
		{ ACT_HELP, "help" }, { ACT_IN_PANE_CLOSE, "quit" }, { ACT_IN_PANE_GO, "its wait" }, { ACT_REQUESTS, "requests" },
		{ ACT_LOCKS, "locks" }, { ACT_IN_PANE_SORT, "sort" }, { ACT_IN_PANE_FILTER, "filter" },
		{ ACT_IN_PANE_GROUP, "group" }, { ACT_FOCUS, "threads" }, { ACT_BACK, "timeline" }, { ACT_NONE, NULL },
	};
	const bool overview = app->pane_below && app->pane_below->ops->replaces_rows;
	return overview ? in_overview : app->focused ? in_pane : at_rows;
}

/* Writes the first key of an action, without brackets: "Enter". */
static void hint_key(const struct app *app, enum action action, char *buf, size_t size)
{
	char keys[64];
	keymap_text(&app->keymap, action, keys, sizeof keys);
	keys[strcspn(keys, ",")] = '\0';
	const size_t n = strlen(keys);
	const bool named = n > 2 && keys[0] == '<' && keys[n - 1] == '>';
	if (named)
		keys[n - 1] = '\0';
	snprintf(buf, size, "%s", keys + named);
}

/* Draws the hints that fit after column x, from the right, and records their places for the mouse. */
static void draw_hints(struct app *app, struct screen *s, int x, int y)
{
	char text[128], key[64];
	int end = s->w - 1;
	app->hints = 0;
	if (app->list_over || app->is_picture)  /* a list shows its own keys; a picture needs none */
		return;
	for (const struct hint *h = hints_of(app); h->action != ACT_NONE; h++) {
		if (!applies(app, h->action) || app->hints == sizeof app->hint / sizeof *app->hint)
			continue;
		hint_key(app, h->action, key, sizeof key);
		const bool folds = h->action == ACT_FLOW && row_folds(app->view.row);
		snprintf(text, sizeof text, "%s %s", key, folds ? "fold" : h->text);
		const int w = text_width(text);
		if (end - w < x)
			break;
		screen_text(s, end - w, y, w, *part_style(app, PART_DIM), text);
		app->hint[app->hints++] = (struct key_hint){ end - w, w, h->action };
		end -= w + 2;
	}
}

/* Draws the states, or the owners if the row is a CPU of the host; then the key hints that fit. */
static void draw_legend(struct app *app, struct screen *s, int y)
{
	const bool overview = app->pane_below && app->pane_below->ops->replaces_rows;
	char key[64];
	hint_key(app, ACT_HELP, key, sizeof key);
	/* space for the help key, which is always shown, and on wider screens for two more hints */
	const int more = s->w >= HINTS_COLUMNS_MIN ? HINTS_SPACE : 0;
	const int help = app->list_over || app->is_picture ? 0 : text_width(key) + 6 + more;
	bool owners = !overview && !app->list_over && app->rows.len && row_is_pcpu(&app->catalog, app->view.row);
	int x = owners ? draw_owners(app, s, 0, y, s->w - help) : draw_common(app, s, y, s->w - help);
	if (!owners)
		x = draw_short_wait_letter(app, s, x, y);
	draw_hints(app, s, x, y);
}

#define MESSAGE_LINES_MAX 4  /* largest number of lines of a message */

/* Draws a message at the screen's bottom; longer messages extend upwards. */
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
	app->hints = 0;
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
