#include "ui/panes/pane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define SLOW_NS 5000000  /* an answer that took longer is asked for again only when the keys rest */
#define MOST_LINES 200   /* that a pane makes room for */
#define LEAST_ROWS 3     /* that it leaves */
#define LEAST_LINES 2    /* of a pane, or it is without headings */
#define NONE_TEXT  512   /* bytes of a reason for its having no lines */

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

void panes_release(struct app *app)
{
	for (int i = 0; i < PANE_COUNT; i++) {
		struct pane *p = app->pane[i];
		if (p->ops->forget)
			p->ops->forget(p);
		if (p->ops->release)
			p->ops->release(p);
		free(p);
	}
}

/* What is shown was of another history.  A pane keeps its height meanwhile, so that the rows stay where they are. */
void panes_carry(struct app *app, const struct rows *was, const struct rows *is)
{
	for (int i = 0; i < PANE_COUNT; i++) {
		struct pane *p = app->pane[i];
		if (p->ops->carry)
			p->ops->carry(app, p, was, is);
		p->room = p->lines;
		if (p->ops->forget)
			p->ops->forget(p);
		p->lines = 0;
		p->from = p->to = 0;
		p->asked = p->valid = false;
	}
}

int pane_label_w(int w)
{
	return w * 3 / 10 < 18 ? 18 : w * 3 / 10 > 40 ? 40 : w * 3 / 10;
}

int panes_label_w(const struct app *app, const struct pane *p)
{
	return p && p->ops->wide ? p->ops->wide(app->w) : pane_label_w(app->w);
}

static void show_below(struct app *app, struct pane *p)
{
	app->below = p;
	app->focused = p && (app->focused || p->ops->full);
	app_layout(app, panes_label_w(app, p));
}

bool panes_cancel(struct app *app)
{
	struct pane *p = app->below;
	bool asked = p && p->asked;
	if (asked)
		asker_drop(app->asker, p->ops->ask);
	if (p)
		p->asked = p->opening = false;
	if (p && !p->valid)
		show_below(app, NULL);
	return asked;
}

void pane_close(struct app *app)
{
	panes_cancel(app);
	show_below(app, NULL);
}

/* ---- Below the rows -------------------------------------------------------------------------------------------- */

static void take(struct app *app, struct pane *p)
{
	struct answer answer;
	if (!p->asked || !app_answer(app, p->ops->ask, &answer))
		return;
	p->asked = false;
	p->cost = answer.cost;
	p->ops->forget(p);
	p->lines = 0;
	p->valid = answer.status >= 0;
	if (p->valid) {
		p->ops->answer(app, p, &answer);
		if (p->ops->arrange)
			p->ops->arrange(app, p);
	} else {
		app_fail(app, &answer.err);
		if (p->opening)
			show_below(app, NULL);
	}
	p->opening = false;
}

static void ask(struct app *app, struct pane *p)
{
	struct question q = { .t = app->view.cursor };
	p->ops->question(app, p, &q);
	bool other = p->stale || p->from != q.from || p->to != q.to || (p->opening && !p->valid && !p->asked);
	if (other && !(app->look.coarse && p->cost > SLOW_NS)) {
		p->from = q.from;
		p->to = q.to;
		p->asked = true;
		p->stale = false;
		asker_ask(app->asker, p->ops->ask, &q);
	}
}

void pane_refresh(struct app *app, struct pane *p)
{
	if (!p->ops->question) {
		p->ops->refresh(app, p);
		return;
	}
	if (p->w != app->w && p->valid && p->ops->arrange)
		p->ops->arrange(app, p);
	p->w = app->w;
	ask(app, p);
	take(app, p);
	if (p->stale)
		ask(app, p);
}

bool pane_open(struct app *app, enum pane_id id)
{
	struct pane *p = app->pane[id];
	if (p->ops->open && !p->ops->open(app, p))
		return false;
	if (p->ops->over) {
		list_open(app, p);
		return true;
	}
	panes_cancel(app);
	show_below(app, p);
	p->opening = true;
	p->room = 0;
	pane_refresh(app, p);
	return app->below == p;
}

struct pane *pane_shown(struct app *app)
{
	if (!app->below)
		pane_open(app, PANE_FLOW);
	return app->below;
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
	if (app->below == app->pane[id] && !app->below->ops->full)
		pane_close(app);
	else
		pane_open(app, id);
	return true;
}

void pane_filter(struct app *app, const char *text)
{
	struct pane *p = app->below;
	snprintf(p->filter, sizeof p->filter, "%.63s", text);
	p->ops->arrange(app, p);
	p->at = p->top = 0;
	if (p->ops->come && p->lines)
		p->ops->come(app, p, 0);
}

/* ---- Row and window of a pane that stays with them --------------------------------------------------------------- */

bool pane_window(const struct app *app, int64_t *from, int64_t *to)
{
	const struct view *v = &app->view;
	const bool marked = v->a != VIEW_NONE && v->b != VIEW_NONE && v->a != v->b;
	if (marked) {
		*from = v->a < v->b ? v->a : v->b;
		*to = v->a < v->b ? v->b : v->a;
	} else {
		*from = v->t0;
		*to = view_last(v, &app->ground);
	}
	return marked;
}

char *pane_span_text(const struct app *app, int64_t from, int64_t to, char buf[TIME_TEXT])
{
	char span[TIME_TEXT];
	int64_t a, b;
	const bool marked = pane_window(app, &a, &b) && a == from && b == to;
	snprintf(buf, TIME_TEXT, "%s%.30s", marked ? "A..B, " : "", time_duration(span, to - from + 1));
	return buf;
}

bool pane_scope_open(struct app *app, struct pane *p, struct pane_scope *scope)
{
	struct subject s;
	if (!row_subject(&app->topo, app->view.row, &s)) {
		app_say(app, "choose a machine, a vCPU or a thread");
		return false;
	}
	app_layout(app, panes_label_w(app, p));  /* the window is what the screen shows beside this pane, not the last one */
	scope->row = app->view.row;
	pane_window(app, &scope->from, &scope->to);
	if (p->ops->forget)
		p->ops->forget(p);
	p->valid = false;
	p->lines = p->top = p->at = 0;
	p->filter[0] = '\0';
	app->focused = true;
	return true;
}

void pane_scope_ask(const struct app *app, const struct pane_scope *scope, struct question *q)
{
	row_subject(&app->topo, scope->row, &q->subject);
	q->from = scope->from;
	q->to = scope->to;
}

bool pane_is_beside(const struct app *app)
{
	return app->below && !app->below->ops->full;
}

bool pane_leads(const struct pane *p)
{
	return p->lines && !p->leadless && p->ops->go;
}

void pane_go(struct app *app, struct row_id row, int64_t from, int64_t to)
{
	struct view before = app->view;
	app_show_row(app, row);
	view_goto(&app->view, &app->ground, from);
	view_fit(&app->view, &app->ground, from, to, 1, 3);
	undo_push(&app->undo, &before);
}

/* ---- Its cursor and keys --------------------------------------------------------------------------------------- */

void pane_move(struct app *app, int64_t by)
{
	struct pane *p = app->below;
	if (!p) {
		app_say(app, "no pane is open");
		return;
	}
	int64_t to = (int64_t)p->at + by, last = p->lines ? (int64_t)p->lines - 1 : 0;
	p->at = (size_t)(to < 0 ? 0 : to > last ? last : to);
	if (p->ops->come && p->at < p->lines)
		p->ops->come(app, p, p->at);
}

void pane_focus(struct app *app)
{
	struct pane *p = app->below;
	if (p && p->ops->full) {
		p->ops->round(app, p);
		return;
	}
	app->focused = !app->focused && pane_shown(app);
	if (app->focused)
		pane_move(app, 0);
}

/* The line as it is on the screen. */
static void copy_line(struct app *app, struct pane *p)
{
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

/* What stands in the place of the rows is where one begins: leaving that is leaving. */
static void close_step(struct app *app, struct pane *p, bool filter)
{
	if (!filter && p->ops->full) {
		app->quit = true;
		return;
	}
	if (filter && p->filter[0])
		pane_filter(app, "");
	else
		pane_close(app);
}

/* What the pane does that has the keys; false: the key is none of these. */
static bool do_in_pane(struct app *app, struct pane *p, uint32_t key)
{
	switch (keymap_find_in_pane(&app->keymap, key)) {
	case ACT_IN_PANE_GO:
		if (p->ops->go && p->at < p->lines)
			p->ops->go(app, p, p->at);
		return true;
	case ACT_IN_PANE_SORT:
	case ACT_IN_PANE_SORT_BACK:
		if (p->ops->sort)
			p->ops->sort(app, p, keymap_find_in_pane(&app->keymap, key) == ACT_IN_PANE_SORT ? 1 : -1);
		else
			app_say(app, "this pane has one order");
		return true;
	case ACT_IN_PANE_FILTER:
		if (p->ops->arrange)
			app_prompt(app, PROMPT_PANE, p->filter);
		else
			app_say(app, "this pane has no filter");
		return true;
	case ACT_IN_PANE_EXPORT: export_prompt(app); return true;
	case ACT_IN_PANE_COPY:
		if (p->at < p->lines)
			copy_line(app, p);
		return true;
	case ACT_IN_PANE_GROW: p->grown += p->grown < app->h_cells; return true;
	case ACT_IN_PANE_SHRINK: p->grown -= p->grown > -app->h_cells; return true;
	case ACT_IN_PANE_CLOSE: close_step(app, p, key == KEY_CODE_ESC); return true;
	default: return false;
	}
}

bool pane_key(struct app *app, uint32_t key)
{
	struct pane *p = app->below;
	enum action action = keymap_find(&app->keymap, key);
	int64_t n = app->count ? app->count : 1, page = p->page > 1 ? (int64_t)p->page - 1 : 1, all = (int64_t)p->lines;
	if (do_in_pane(app, p, key))
		return true;
	switch (action) {
	case ACT_DOWN: pane_move(app, n); return true;
	case ACT_UP: pane_move(app, -n); return true;
	case ACT_PAGE_DOWN: pane_move(app, n * page); return true;
	case ACT_PAGE_UP: pane_move(app, -n * page); return true;
	case ACT_HALF_DOWN: pane_move(app, (n * page + 1) / 2); return true;
	case ACT_HALF_UP: pane_move(app, -(n * page + 1) / 2); return true;
	case ACT_FIRST: pane_move(app, -all); return true;
	case ACT_LAST: pane_move(app, all); return true;
	default: break;
	}
	/* Who looks for gaps is back at the rows; moving through time is the same everywhere. */
	bool gaps = strcmp(action_info[action].section, "Gaps and causes") == 0;
	if (p->ops->full && (gaps || strcmp(action_info[action].section, "Rows") == 0))
		pane_close(app);
	else if (gaps)
		app->focused = false;
	return false;
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------ */

struct style pane_style(const struct app *app, enum part part, bool selected)
{
	return app->look.palette.part[selected ? PART_SELECTED : part];
}

/* Why it is empty; "": it is not, or its title says it. */
static const char *none_text(const struct app *app, const struct pane *p, char *buf, size_t size)
{
	*buf = '\0';
	if (p->ops->none && p->valid && !p->asked && !p->lines && !p->filter[0])
		p->ops->none(app, p, buf, size);
	return buf;
}

/* Returns how many lines it takes on a screen of w, at most `height`; s NULL: they are not drawn. */
static int draw_none(const char *text, struct screen *s, int y, int w, int height, struct style style)
{
	int i = 0;
	for (; i < height && *text; i++) {
		size_t n = text_line(text, w - 2);
		n = n ? n : strlen(text);
		if (s)
			screen_printf(s, 1, y + i, w - 2, style, "%.*s", (int)n, text);
		text += n + strspn(text + n, " ");
	}
	return i;
}

int pane_height(const struct app *app, int room)
{
	const struct pane *p = app->below;
	char none[NONE_TEXT];
	if (!p || p->ops->full)
		return p ? room : 0;
	size_t lines = !p->valid ? p->room : p->lines == 0 && p->filter[0] ? 1 : p->lines;
	int want = (int)(lines < MOST_LINES ? lines : MOST_LINES) + 1 + p->ops->headings;
	const int least = 1 + p->ops->headings + (p->least > LEAST_LINES ? (int)p->least : LEAST_LINES);
	const int most = room / 2 > least ? room / 2 : least;
	want = want < most ? want : most;
	if (*none_text(app, p, none, sizeof none))
		want = 1 + draw_none(none, NULL, 0, app->w, room, pane_style(app, PART_NORMAL, false));
	want += p->grown;
	return want < 1 ? 1 : want > room - LEAST_ROWS ? room > LEAST_ROWS ? room - LEAST_ROWS : 0 : want;
}

/* What can be done with it, as far as there is room. */
static const char *hint_of(const struct app *app, const struct pane *p, int room)
{
	static const char *const hints[3][2] = { { " Tab goes into it  X export  q closes ", " Tab " },
		{ " e export  q closes ", " q closes " }, { " Enter goes there  e export  q closes ", " q closes " } };
	const int which = !app->focused ? 0 : !pane_leads(p) ? 1 : 2;
	for (int i = 0; i < 2 && !p->ops->full && !app->still; i++)
		if ((int)strlen(hints[which][i]) < room)
			return hints[which][i];
	return "";
}

/* What does not fit is left out whole, what is worth least first; who it is about stays. */
static void shorten_title(char *title, int room)
{
	static const char *const before[] = { ", ", ", ", ": ", " + ", " in ", " from " };
	text_squeeze(title, room);
	for (size_t i = 0; i < sizeof before / sizeof *before && text_width(title) > room; i++) {
		char *last = NULL;
		for (char *at = title; (at = strstr(at, before[i])); at++)
			last = at;
		if (last)
			snprintf(last, 2, " ");
	}
}

static void draw_title(struct app *app, struct pane *p, struct screen *s, int y)
{
	struct style style = app->look.palette.part[app->focused ? PART_SELECTED : PART_TITLE];
	char name[320], title[640];
	p->ops->name(app, p, name, sizeof name);
	if (p->asked)
		snprintf(title, sizeof title, " %s: reading %u %%, Esc cancels ", name, asker_progress(app->asker, p->ops->ask));
	else if (!p->valid)
		snprintf(title, sizeof title, " %s: none here ", name);
	else
		p->ops->title(app, p, s->w, title, sizeof title);
	shorten_title(title, s->w - 1);  /* its last space may go */
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
	if (p->first && p->page)
		p->at = p->first < p->page ? p->first : 0;
	p->first = p->page ? 0 : p->first;
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
	struct pane *p = app->below;
	char none[NONE_TEXT];
	if (*none_text(app, p, none, sizeof none)) {
		draw_title(app, p, s, y);
		draw_none(none, s, y + 1, s->w, height - 1, app->look.palette.part[PART_NORMAL]);
		return;
	}
	const int lines = p->lines < LEAST_LINES ? (int)p->lines : LEAST_LINES;
	int head = p->ops->headings && height > p->ops->headings + lines ? 1 + p->ops->headings : 1;
	draw_title(app, p, s, y);
	p->page = height > head ? (size_t)(height - head) : 0;
	p->y = y + head;
	scroll_to_cursor(p);
	if (head > 1)
		p->ops->heading(app, p, s, y + 1);
	if (p->valid && p->filter[0] && !p->lines && p->page)
		screen_printf(s, 1, p->y, s->w - 1, pane_style(app, PART_ERROR, false), "no line contains \"%s\"", p->filter);
	for (size_t i = 0; i < p->page && p->top + i < p->lines; i++) {
		bool selected = app->focused && p->top + i == p->at;
		screen_fill(s, 0, y + head + (int)i, s->w, ' ', pane_style(app, PART_NORMAL, selected));
		p->ops->line(app, p, s, y + head + (int)i, p->top + i, selected);
	}
}
