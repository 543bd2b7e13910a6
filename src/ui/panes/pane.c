#include "base/base.h"
#include "ui/panes/overview.h"
#include "ui/panes/pane.h"
#include "ui/widgets/verdict_line.h"

#define SLOW_ANSWER_NS 5000000  /* an answer that took longer, ns, is requested again only after a pause of the keys */
#define LINES_MAX 200   /* largest number of lines of a pane */
#define ROWS_MIN 3     /* number of rows that always stay visible above a pane */
#define LINES_MIN 2    /* smallest number of lines of a pane; if not even these fit, the headings are omitted */
#define EMPTY_TEXT_BYTES  512  /* size of the reason for an empty pane, bytes */

void panes_init(struct app *app)
{
#define PANE_ROW(id, table, action) [id] = &table,
	static const struct pane_ops *const ops[PANE_COUNT] = { PANES(PANE_ROW) };
#undef PANE_ROW
	for (int i = 0; i < PANE_COUNT; i++) {
		app->pane[i] = mem_new(1, ops[i]->size);
		app->pane[i]->ops = ops[i];
	}
}

void pane_drop_answer(struct pane *p)
{
	if (p->ops->is_table)
		table_pane_drop(p);
	if (p->ops->drop_answer)
		p->ops->drop_answer(p);
	p->lines = 0;
}

void panes_release(struct app *app)
{
	for (int i = 0; i < PANE_COUNT; i++) {
		struct pane *p = app->pane[i];
		pane_drop_answer(p);
		if (p->ops->release)
			p->ops->release(p);
		free(p);
	}
}

/* Drops the answers about the previous history. A pane keeps its height, so that the rows do not move. */
void panes_remap(struct app *app, const struct rows *old, const struct rows *new)
{
	for (int i = 0; i < PANE_COUNT; i++) {
		struct pane *p = app->pane[i];
		if (p->ops->remap)
			p->ops->remap(app, p, old, new);
		if (p->ops->is_scoped)
			p->scope.row = row_remap(old, new, p->scope.row);
		p->reserved = p->lines + (p->ops->above && p->valid ? (size_t)p->ops->above(app, p, NULL, 0) : 0);
		pane_drop_answer(p);
		p->from = p->to = 0;
		p->pending = p->valid = false;
	}
}

int pane_label_w(int w)
{
	return w * 3 / 10 < 18 ? 18 : w * 3 / 10 > 40 ? 40 : w * 3 / 10;
}

int panes_label_w(const struct app *app, const struct pane *p)
{
	return p && p->ops->label_width ? p->ops->label_width(p, app->w) : pane_label_w(app->w);
}

static void show_below(struct app *app, struct pane *p)
{
	app->pane_below = p;
	app->focused = p && (app->focused || p->ops->replaces_rows);
	app_layout(app, panes_label_w(app, p));
}

bool panes_cancel(struct app *app)
{
	struct pane *p = app->pane_below;
	const bool asked = p && p->pending;
	if (p) {
		async_drop(app->queries, &p->question);
		p->pending = p->opening = false;
	}
	if (p && !p->valid)
		show_below(app, NULL);
	return asked;
}

void pane_close(struct app *app)
{
	struct pane *p = app->pane_below;
	panes_cancel(app);
	show_below(app, NULL);
	if (p && p->ops->closed)
		p->ops->closed(app, p);
}

/* ---- Below the rows ------------------------------------------------------------------------------------------------ */

static void take_answer(struct app *app, struct pane *p)
{
	struct query *query;
	struct error err = ERROR_INIT;
	const int got = p->pending ? app_take_answer(app, &p->question, &query, &p->cost, &err) : 0;
	if (got == 0)
		return;
	pane_drop_answer(p);
	p->pending = false;
	if ((p->valid = got > 0)) {
		if (p->ops->take)
			p->ops->take(app, p, query);
		else
			query_take_bytes(query, (char *)p + p->ops->answer, p->ops->answer_bytes);
		query_close(query);
		if (p->ops->arrange)
			p->ops->arrange(app, p);
	} else {
		app_fail(app, &err);
		if (p->opening)
			show_below(app, NULL);
	}
	p->opening = false;
}

static void ask_if_changed(struct app *app, struct pane *p)
{
	struct error err = ERROR_INIT;
	int64_t from = p->scope.from, to = p->scope.to;
	if (p->ops->window)
		p->ops->window(app, p, &from, &to);
	else if (!p->ops->is_scoped)
		pane_window(app, &from, &to);
	bool other = p->preliminary || p->from != from || p->to != to || (p->opening && !p->valid && !p->pending);
	if (other && !(app->appearance.coarse && p->cost > SLOW_ANSWER_NS)) {
		p->from = from;
		p->to = to;
		p->pending = true;
		p->preliminary = false;
		async_ask(app->queries, &p->question, p->ops->is_long ? ASK_LONG : ASK_PANE, p->ops->query(app, p, &err), &err);
	}
}

void pane_refresh(struct app *app, struct pane *p)
{
	if (!p->ops->query) {
		p->ops->refresh(app, p);
		return;
	}
	if (p->w != app->w && p->valid && p->ops->arrange)
		p->ops->arrange(app, p);
	p->w = app->w;
	ask_if_changed(app, p);
	take_answer(app, p);
	if (p->preliminary)
		ask_if_changed(app, p);
	if (p->valid && p->ops->refresh)
		p->ops->refresh(app, p);
}

bool pane_open(struct app *app, enum pane_id id)
{
	struct pane *p = app->pane[id];
	if (p->ops->open && !p->ops->open(app, p))
		return false;
	if (p->ops->is_list) {
		list_open(app, p);
		return true;
	}
	panes_cancel(app);
	show_below(app, p);
	p->opening = true;
	p->reserved = 0;
	pane_refresh(app, p);
	return app->pane_below == p;
}

struct pane *pane_shown(struct app *app)
{
	if (!app->pane_below)
		pane_open(app, PANE_FLOW);
	return app->pane_below;
}

bool pane_action(struct app *app, enum action action)
{
#define PANE_ACTION(id, table, action) [id] = action,
	static const enum action shows[PANE_COUNT] = { PANES(PANE_ACTION) };
#undef PANE_ACTION
	enum pane_id id = 0;
	while (id < PANE_COUNT && shows[id] != action)
		id++;
	if (id == PANE_COUNT)
		return false;
	if (app->pane_below == app->pane[id] && !app->pane_below->ops->replaces_rows)
		pane_close(app);
	else
		pane_open(app, id);
	return true;
}

void pane_filter(struct app *app, const char *text)
{
	struct pane *p = app->pane_below;
	snprintf(p->filter, sizeof p->filter, "%.63s", text);
	p->ops->arrange(app, p);
	p->top = 0;
	p->at = p->ops->is_table ? table_pane_find_name(p) : 0;
	if (p->ops->cursor_moved && p->lines)
		p->ops->cursor_moved(app, p, p->at);
}

/* ---- Cursor and keys ----------------------------------------------------------------------------------------------- */

void pane_move(struct app *app, int64_t by)
{
	struct pane *p = app->pane_below;
	if (!p) {
		app_message(app, "no pane is open");
		return;
	}
	if (p->ops->arrange_all && (int64_t)p->at + by + (int64_t)p->page >= (int64_t)p->lines)
		p->ops->arrange_all(app, p);
	int64_t to = (int64_t)p->at + by, last = p->lines ? (int64_t)p->lines - 1 : 0;
	p->at = (size_t)(to < 0 ? 0 : to > last ? last : to);
	if (p->ops->cursor_moved && p->at < p->lines)
		p->ops->cursor_moved(app, p, p->at);
}

void pane_focus(struct app *app)
{
	struct pane *p = app->pane_below;
	if (p && p->ops->replaces_rows) {
		p->ops->tab(app, p);
		return;
	}
	app->focused = !app->focused && pane_shown(app);
	if (app->focused)
		pane_move(app, 0);
}

/* Copies the selected line, as drawn, to the clipboard; of the overview a sentence. */
static void copy_line(struct app *app, struct pane *p)
{
	char sentence[512];
	if (p->ops->replaces_rows) {
		const struct target *target = overview_target(p, p->at);
		p->ops->status_text(app, p, p->at, sentence, sizeof sentence);
		app_copy(app, verdict_line_sentence(app, target, sentence));
		return;
	}
	struct screen s = { 0 };
	size_t size;
	char *text = NULL;
	screen_resize(&s, app->w, 1);
	p->ops->line(app, p, &s, 0, p->at, false);
	FILE *f = open_memstream(&text, &size);
	screen_dump(&s, f);
	fclose(f);
	screen_release(&s);
	text[strcspn(text, "\n")] = '\0';
	app_copy(app, text + strspn(text, " "));
	free(text);
}

/* Clears the filter if `filter` (Esc), and it is set; otherwise closes the pane. The overview is the first level: q quits
 * there, Esc does not. */
static void close_step(struct app *app, struct pane *p, bool filter)
{
	char key[32];
	if (filter && p->filter[0])
		pane_filter(app, "");
	else if (p->ops->replaces_rows && filter)
		app_message(app, "%s quits", keymap_text(&app->keymap, ACT_QUIT, key, sizeof key));
	else if (p->ops->replaces_rows)
		app->quit = true;
	else
		pane_close(app);
}

/* Runs the pane's action for the key. Returns false if there is none. */
static bool run_pane_key(struct app *app, struct pane *p, uint32_t key)
{
	switch (keymap_find_in_pane(&app->keymap, key)) {
	case ACT_IN_PANE_GO:
		if (p->ops->follow && p->at < p->lines)
			p->ops->follow(app, p, p->at);
		return true;
	case ACT_IN_PANE_SORT:
	case ACT_IN_PANE_SORT_BACK:
		if (p->ops->sort)
			p->ops->sort(app, p, keymap_find_in_pane(&app->keymap, key) == ACT_IN_PANE_SORT ? 1 : -1);
		else
			app_message(app, "this pane cannot be sorted");
		return true;
	case ACT_IN_PANE_GROUP:
		if (p->ops->group)
			p->ops->group(app, p);
		else
			app_message(app, "this pane has no groups of threads");
		return true;
	case ACT_IN_PANE_FILTER:
		if (p->ops->arrange)
			app_prompt(app, PROMPT_PANE, p->filter);
		else
			app_message(app, "this pane has no filter");
		return true;
	case ACT_IN_PANE_EXPORT: export_prompt(app); return true;
	case ACT_IN_PANE_COPY:
		if (p->at < p->lines)
			copy_line(app, p);
		return true;
	case ACT_IN_PANE_PAGE: pane_move(app, p->page > 1 ? (int64_t)p->page - 1 : 1); return true;
	case ACT_IN_PANE_GROW: p->extra_lines += p->extra_lines < app->h_cells; return true;
	case ACT_IN_PANE_SHRINK: p->extra_lines -= p->extra_lines > -app->h_cells; return true;
	case ACT_IN_PANE_CLOSE: close_step(app, p, key == KEY_CODE_ESC); return true;
	default: return false;
	}
}

bool pane_key(struct app *app, uint32_t key)
{
	struct pane *p = app->pane_below;
	enum action action = keymap_find(&app->keymap, key);
	int64_t n = app->count ? app->count : 1, page = p->page > 1 ? (int64_t)p->page - 1 : 1;
	if (run_pane_key(app, p, key))
		return true;
	switch (action) {
	case ACT_DOWN: pane_move(app, n); return true;
	case ACT_UP: pane_move(app, -n); return true;
	case ACT_PAGE_DOWN: pane_move(app, n * page); return true;
	case ACT_PAGE_UP: pane_move(app, -n * page); return true;
	case ACT_HALF_DOWN: pane_move(app, (n * page + 1) / 2); return true;
	case ACT_HALF_UP: pane_move(app, -(n * page + 1) / 2); return true;
	case ACT_FIRST: pane_move(app, INT32_MIN); return true;
	case ACT_LAST: pane_move(app, INT32_MAX); return true;
	default: break;
	}
	/* actions on gaps move the focus back to the rows; actions on time keep it */
	const bool gaps = !(action >= ACT_FINDING_1 && action <= ACT_FINDING_3) &&
	                  strcmp(action_info[action].section, "Gaps and causes") == 0;
	const bool searches_gap = action >= ACT_NEXT_GAP && action <= ACT_PREV_GAP_FIT;
	if (p->ops->replaces_rows && searches_gap) {
		pane_close(app);
	} else if (p->ops->replaces_rows && (gaps || strcmp(action_info[action].section, "Rows") == 0)) {
		char key_name[32], back[32];
		app_message(app, "%s works in the timeline (%s)", key_text(key, key_name, sizeof key_name),
		            keymap_text(&app->keymap, ACT_BACK, back, sizeof back));
		return true;
	} else if (gaps) {
		app->focused = false;
	}
	return false;
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------- */

struct style pane_style(const struct app *app, enum part part, bool selected)
{
	return app->appearance.palette.part[selected ? PART_SELECTED : part];
}

/* Returns the reason for an empty pane; "": the pane is not empty, or its title contains the reason. */
static const char *empty_text(const struct app *app, const struct pane *p, char *buf, size_t size)
{
	*buf = '\0';
	if (p->ops->empty_text && p->valid && !p->pending && !p->lines && !p->filter[0])
		p->ops->empty_text(app, p, buf, size);
	return buf;
}

/* Draws the reason for an empty pane, at most `height` lines of w columns; s NULL: only counts. Returns the number of
 * lines. */
static int draw_empty_text(const char *text, struct screen *s, int y, int w, int height, struct style style)
{
	int i = 0;
	for (; i < height && *text; i++) {
		size_t n = text_line_bytes(text, w - 2);
		n = n ? n : strlen(text);
		if (s)
			screen_printf(s, 1, y + i, w - 2, style, "%.*s", (int)n, text);
		text += n + strspn(text + n, " ");
	}
	return i;
}

/* Returns the number of lines between the title and the pane's lines. */
static int headings_of(const struct app *app, const struct pane *p)
{
	return (p->ops->heading != NULL) + (p->ops->above && p->valid ? p->ops->above(app, p, NULL, 0) : 0);
}

int pane_height(const struct app *app, int space)
{
	const struct pane *p = app->pane_below;
	char reason[EMPTY_TEXT_BYTES];
	if (!p || p->ops->replaces_rows)
		return p ? space : 0;
	size_t lines = !p->valid ? p->reserved : p->lines == 0 && p->filter[0] ? 1 : p->lines;
	const int headings = headings_of(app, p), min_height = 1 + headings + LINES_MIN;
	int height = (int)(lines < LINES_MAX ? lines : LINES_MAX) + 1 + headings;
	const int part = p->ops->is_tall ? space * 2 / 3 : space / 2, max_height = part > min_height ? part : min_height;
	height = height < max_height ? height : max_height;
	if (*empty_text(app, p, reason, sizeof reason))
		height = 1 + draw_empty_text(reason, NULL, 0, app->w, space, pane_style(app, PART_NORMAL, false));
	height += p->extra_lines;
	return height < 1 ? 1 : height > space - ROWS_MIN ? space > ROWS_MIN ? space - ROWS_MIN : 0 : height;
}

/* Returns the longest key hint that fits at the title's end; "": none fits. */
static const char *hint_of(const struct app *app, const struct pane *p, int space)
{
	static const char *const hints[3][2] = { { " Tab focuses it  X export  q closes ", " Tab " },
		{ " e export  q closes ", " q closes " }, { " Enter goes there  e export  q closes ", " q closes " } };
	const int which = !app->focused ? 0 : !pane_can_follow(p) ? 1 : 2;
	for (int i = 0; i < 2 && !p->ops->replaces_rows && !app->is_picture; i++)
		if ((int)strlen(hints[which][i]) < space)
			return hints[which][i];
	return "";
}

/* Shortens a title by whole phrases, the least important first; the row's name stays. */
static void shorten_title(char *title, int space)
{
	static const char *const before[] = { ", ", ", ", ": ", " + ", " in ", " from " };
	text_shorten_machine(title, space);
	for (size_t i = 0; i < sizeof before / sizeof *before && text_width(title) > space; i++) {
		char *last = NULL;
		for (char *at = title; (at = strstr(at, before[i])); at++)
			last = at;
		if (last)
			snprintf(last, 2, " ");
	}
}

static void draw_title(struct app *app, struct pane *p, struct screen *s, int y)
{
	struct style style = app->appearance.palette.part[app->focused ? PART_SELECTED : PART_TITLE];
	char name[320], title[640];
	p->ops->name(app, p, name, sizeof name);
	if (p->pending)
		snprintf(title, sizeof title, " %s: reading %u %%, Esc cancels ", name, async_progress(app->queries, &p->question));
	else if (!p->valid)
		snprintf(title, sizeof title, " %s: not available ", name);
	else
		(p->ops->title ? p->ops->title : table_pane_get_title)(app, p, s->w, title, sizeof title);
	if (p->ops->is_table && p->valid && !p->pending) {
		table_pane_get_order(p, name, sizeof name);
		if (text_width(title) + text_width(name) < s->w - 30)
			snprintf(title + strlen(title) - 1, sizeof title - strlen(title), "%s", *name ? name : " ");
	}
	shorten_title(title, s->w - 1);  /* the last space of the title may be cut */
	screen_fill(s, 0, y, s->w, '-', style);
	int x = 1 + screen_text(s, 1, y, s->w - 2, style, title);
	if (p->filter[0])
		x += screen_printf(s, x, y, s->w - x - 1, style, "/%s ", p->filter);
	const char *hint = hint_of(app, p, s->w - x - 2);
	if (*hint)
		screen_text(s, s->w - (int)strlen(hint) - 1, y, s->w, style, hint);
}

static void scroll_to_cursor(struct pane *p)
{
	if (p->at >= p->lines)
		p->at = p->lines ? p->lines - 1 : 0;
	if (p->at < p->top)
		p->top = p->at;
	if (p->at >= p->top + p->page)
		p->top = p->at - p->page + 1;
	if (p->top + p->page > p->lines)
		p->top = p->lines > p->page ? p->lines - p->page : 0;
}

void pane_draw(struct app *app, struct screen *s, int y, int height)
{
	struct pane *p = app->pane_below;
	char reason[EMPTY_TEXT_BYTES];
	if (*empty_text(app, p, reason, sizeof reason)) {
		draw_title(app, p, s, y);
		draw_empty_text(reason, s, y + 1, s->w, height - 1, app->appearance.palette.part[PART_NORMAL]);
		return;
	}
	const int headings = headings_of(app, p), head = headings && height > headings + (p->lines > 0) ? 1 + headings : 1;
	draw_title(app, p, s, y);
	p->page = height > head ? (size_t)(height - head) : 0;
	p->y = y + head;
	scroll_to_cursor(p);
	for (int i = 1; i < head; i++)
		screen_fill(s, 0, y + i, s->w, ' ', app->appearance.palette.part[i == head - 1 ? PART_RULER : PART_NORMAL]);
	if (head > 1 && p->ops->above && p->valid)
		p->ops->above(app, p, s, y + 1);
	if (head > 1 && p->ops->heading)
		p->ops->heading(app, p, s, y + head - 1);
	if (p->valid && p->filter[0] && !p->lines && p->page)
		screen_printf(s, 1, p->y, s->w - 1, pane_style(app, PART_ERROR, false), "no line contains \"%s\"", p->filter);
	for (size_t i = 0; i < p->page && p->top + i < p->lines; i++) {
		bool selected = app->focused && p->top + i == p->at;
		screen_fill(s, 0, y + head + (int)i, s->w, ' ', pane_style(app, PART_NORMAL, selected));
		p->ops->line(app, p, s, y + head + (int)i, p->top + i, selected);
	}
}
