/* ui_recordings(): the list of recordings in a directory, a verdict per line. Letters search as they are typed. */
#include "base/base.h"
#include "ui/input/keys.h"
#include "ui/input/prompt.h"
#include "ui/terminal/screen_loop.h"
#include "ui/ui.h"

enum sort { SORT_WHEN, SORT_NAME, SORT_LENGTH, SORT_SHARE, SORTS };
static const char *const sort_name[SORTS] = { "newest first", "name", "longest first", "largest share first" };

struct list_screen {
	const struct ui_recordings *list;
	struct screen_loop on;
	size_t *order, len;        /* rows that match the search, in the order of the screen */
	size_t cursor, scroll;     /* indices into order */
	ptrdiff_t marked[2];       /* rows; -1: none */
	enum sort sort;
	bool is_searching, help;
	bool has_moved;            /* the user chose a row */
	struct prompt prompt;
	int first_line, lines;     /* of the table in the last frame */
	char message[300];
};

void ui_recording_texts(const struct ui_recording *r, char when[TIME_TEXT], char length[TIME_TEXT], char share[16])
{
	time_date(when, r->when, 0);
	when[16] = '\0';  /* date, hours and minutes */
	length[0] = share[0] = '\0';
	if (r->length)
		time_duration(length, r->length);
	if (r->share >= 0)
		text_share(share, r->share);
}

/* ---- order */

static int compare_rows(const struct ui_recording *a, const struct ui_recording *b, enum sort sort)
{
	switch (sort) {
	case SORT_WHEN: return (a->when < b->when) - (a->when > b->when);
	case SORT_LENGTH: return (a->length < b->length) - (a->length > b->length);
	case SORT_SHARE: return (a->share < b->share) - (a->share > b->share);
	default: return strcmp(a->name, b->name);
	}
}

struct ordered { const struct ui_recording *row; size_t index; enum sort sort; };

static int compare_ordered(const void *x, const void *y)
{
	const struct ordered *a = x, *b = y;
	const int by_key = compare_rows(a->row, b->row, a->sort);
	return by_key ? by_key : (a->index > b->index) - (a->index < b->index);
}

static bool matches(const struct ui_recording *r, const char *text)
{
	return !*text || strcasestr(r->name, text) || strcasestr(r->verdict, text) || strcasestr(r->who, text);
}

/* Sorts the rows that match. The cursor stays on its row once the user moved it. */
static void make_order(struct list_screen *s)
{
	const struct ui_recordings *list = s->list;
	const size_t selected = s->cursor < s->len ? s->order[s->cursor] : 0;
	struct ordered *all = mem_new(list->rows + 1, sizeof *all);
	s->len = 0;
	for (size_t i = 0; i < list->rows; i++)
		if (matches(&list->row[i], s->prompt.text))
			all[s->len++] = (struct ordered){ &list->row[i], i, s->sort };
	ARRAY_SORT(all, s->len, compare_ordered);
	s->cursor = 0;
	for (size_t i = 0; i < s->len; i++) {
		s->order[i] = all[i].index;
		if (all[i].index == selected && s->has_moved)
			s->cursor = i;
	}
	free(all);
}

static ptrdiff_t selected_row(const struct list_screen *s)
{
	return s->cursor < s->len ? (ptrdiff_t)s->order[s->cursor] : -1;
}

/* ---- drawing */

static struct style part(const struct list_screen *s, enum part p)
{
	return s->on.palette.part[p];
}

static void draw_header(const struct list_screen *s, struct screen *out)
{
	char right[64], dir[300];
	size_t read = 0;
	for (size_t i = 0; i < s->list->rows; i++)
		read += s->list->row[i].read;
	text_escape(dir, sizeof dir, s->list->dir);
	snprintf(right, sizeof right, "sort: %s ", sort_name[s->sort]);
	screen_fill(out, 0, 0, out->w, ' ', part(s, PART_HEADER));
	const int width = out->w > 60 ? text_width(right) : 0;
	screen_text(out, out->w - width, 0, width, part(s, PART_HEADER), right);
	int at = screen_printf(out, 0, 0, out->w - width, part(s, PART_HEADER), "stealscope  %zu recordings", s->list->rows);
	if (read < s->list->rows)
		at += screen_printf(out, at, 0, out->w - width - at, part(s, PART_HEADER), ", %zu read", read);
	screen_clip(out, at + 2, 0, out->w - width - at - 3, part(s, PART_HEADER), dir);
}

/* Columns: name and verdict share the rest of the line; the others fall from the right on narrow screens. */
struct columns { int name, when, length, who, share; };

static struct columns fit_columns(const struct list_screen *s, int w)
{
	struct columns c = { 9, 16, 7, 8, 5 };
	for (size_t i = 0; i < s->len; i++) {
		const int width = text_width(s->list->row[s->order[i]].name);
		c.name = width > c.name ? width : c.name;
	}
	if (c.name > w / 3)
		c.name = w / 3;
	if (w < 100)
		c.when = 11;  /* without the year */
	if (w < 80)
		c.who = 0;
	if (w < 72)
		c.length = 0;
	return c;
}

static int draw_cell(struct screen *out, int x, int y, int width, bool right, struct style style, const char *text)
{
	if (!width)
		return x;
	const int used = text_width(text) < width ? text_width(text) : width;
	screen_clip(out, right ? x + width - used : x, y, width, style, text);
	return x + width + 2;
}

static void draw_line(const struct list_screen *s, struct screen *out, int y, const struct columns *c, size_t row,
                      bool selected)
{
	const struct ui_recording *r = &s->list->row[row];
	const bool marked = s->marked[0] == (ptrdiff_t)row || s->marked[1] == (ptrdiff_t)row;
	const struct style normal = part(s, selected ? PART_SELECTED : PART_NORMAL);
	const struct style dim = selected ? normal : part(s, PART_DIM);
	char when[TIME_TEXT], length[TIME_TEXT], share[16], name[512];
	ui_recording_texts(r, when, length, share);
	snprintf(name, sizeof name, "%s", r->name);
	screen_fill(out, 0, y, out->w, ' ', normal);
	screen_put(out, 0, y, selected ? '>' : ' ', normal);
	screen_put(out, 1, y, marked ? '*' : ' ', normal);
	int x = draw_cell(out, 2, y, c->name, false, normal, text_shorten(name, c->name));
	x = draw_cell(out, x, y, c->when, false, dim, when + (c->when < 16 ? 5 : 0));
	x = draw_cell(out, x, y, c->length, true, normal, length);
	x = draw_cell(out, x, y, c->who, false, normal, r->who);
	x = draw_cell(out, x, y, c->share, true, r->share >= 0.05 && !selected ? part(s, PART_STEAL) : normal, share);
	screen_clip(out, x, y, out->w - x, r->failed && !selected ? part(s, PART_ERROR) : r->read ? normal : dim,
	            r->read ? r->verdict : "..");
}

static void draw_table(struct list_screen *s, struct screen *out, int y, int end)
{
	const struct columns c = fit_columns(s, out->w);
	const struct style label = part(s, PART_LABEL);
	int x = draw_cell(out, 2, y, c.name, false, label, "recording");
	x = draw_cell(out, x, y, c.when, false, label, "when");
	x = draw_cell(out, x, y, c.length, true, label, "long");
	x = draw_cell(out, x, y, c.who, false, label, "machines");
	x = draw_cell(out, x, y, c.share, true, label, "share");
	draw_cell(out, x, y++, out->w - x, false, label, "verdict");
	s->first_line = y;
	s->lines = end > y ? end - y : 0;
	if (s->cursor < s->scroll)
		s->scroll = s->cursor;
	if (s->lines && s->cursor >= s->scroll + (size_t)s->lines)
		s->scroll = s->cursor - (size_t)s->lines + 1;
	for (size_t i = s->scroll; i < s->len && y < end; i++, y++)
		draw_line(s, out, y, &c, s->order[i], i == s->cursor);
	if (!s->len)
		screen_clip(out, 2, y, out->w - 2, part(s, PART_DIM), "no recording matches (Esc clears the search)");
}

static const struct { const char *key, *text; } help[] = {
	{ "Enter", "open the recording; q there comes back" },
	{ "/", "search as you type: names, verdicts; Enter keeps it, Esc clears it" },
	{ "Space", "mark; D compares two marked recordings" },
	{ "t", "write a ticket: NAME.html in the current directory" },
	{ "s <  >", "sort: newest, name, length, share lost" },
	{ "j k arrows", "down, up; PgDn PgUp Home End" },
	{ "q Esc", "quit" },
};

static void draw(struct list_screen *s)
{
	struct screen *out = &s->on.screen;
	screen_clear(out, part(s, PART_NORMAL));
	out->cursor_x = out->cursor_y = -1;
	draw_header(s, out);
	if (s->help) {
		for (size_t i = 0; i < sizeof help / sizeof *help; i++) {
			screen_clip(out, 1, (int)i + 2, 11, part(s, PART_LABEL), help[i].key);
			screen_clip(out, 13, (int)i + 2, out->w - 13, part(s, PART_NORMAL), help[i].text);
		}
	} else {
		draw_table(s, out, 1, out->h - 2);
	}
	const int y = out->h - 1;
	const ptrdiff_t row = selected_row(s);
	if (row >= 0 && !s->help)  /* the whole verdict, which the table may cut */
		screen_clip(out, 1, y - 1, out->w - 1, part(s, PART_TITLE), s->list->row[row].verdict);
	screen_fill(out, 0, y, out->w, ' ', part(s, PART_STATUS));
	if (s->is_searching)
		prompt_draw(&s->prompt, out, y, part(s, PART_STATUS));
	else if (s->message[0])
		screen_clip(out, 0, y, out->w, part(s, PART_STATUS), s->message);
	else
		screen_phrases(out, 0, y, out->w, part(s, PART_STATUS),
		               "q quit  Enter open  / search  Space mark two  D compare  t ticket  s sort  ? help");
}

/* ---- keys */

static void move(struct list_screen *s, int64_t by)
{
	s->has_moved = true;
	s->cursor = s->len ? (size_t)clamp64((int64_t)s->cursor + by, 0, (int64_t)s->len - 1) : 0;
}

static void mark(struct list_screen *s)
{
	const ptrdiff_t row = selected_row(s);
	if (s->marked[0] == row || s->marked[1] == row) {
		s->marked[0] = s->marked[0] == row ? s->marked[1] : s->marked[0];
		s->marked[1] = -1;
	} else if (s->marked[0] < 0) {
		s->marked[0] = row;
	} else {
		s->marked[1] = row;
	}
	move(s, 1);
}

static void run_outside(struct list_screen *s, uint32_t key)
{
	const struct ui_recordings *list = s->list;
	const ptrdiff_t row = selected_row(s);
	struct error err = ERROR_INIT;
	char file[200] = "";
	if (key == 'D' && s->marked[1] < 0) {
		snprintf(s->message, sizeof s->message, "mark two recordings with Space first");
		return;
	}
	if (row < 0)
		return;
	screen_loop_leave(&s->on);
	if (key == 'D')
		list->compare(list->arg, (size_t)s->marked[0], (size_t)s->marked[1], &err);
	else if (key == 't')
		list->ticket(list->arg, (size_t)row, file, sizeof file, &err);
	else
		list->open(list->arg, (size_t)row, &err);
	screen_loop_return(&s->on);
	if (err.text[0])
		snprintf(s->message, sizeof s->message, "%.*s", (int)sizeof s->message - 1, err.text);
	else if (*file)
		snprintf(s->message, sizeof s->message, "wrote %s", file);
}

static void handle_key(struct list_screen *s, uint32_t key)
{
	s->message[0] = '\0';
	if (s->is_searching) {
		const enum prompt_result result = prompt_key(&s->prompt, key);
		if (result == PROMPT_CANCELLED)
			s->prompt.text[0] = '\0';
		s->is_searching = result == PROMPT_EDITING || result == PROMPT_CHANGED;
		make_order(s);
		return;
	}
	if (s->help) {
		s->help = false;
		return;
	}
	switch (key) {
	case 'j': case KEY_CODE_DOWN: case KEY_CODE_WHEEL_DOWN: move(s, 1); break;
	case 'k': case KEY_CODE_UP: case KEY_CODE_WHEEL_UP: move(s, -1); break;
	case KEY_CODE_PGDN: move(s, s->lines); break;
	case KEY_CODE_PGUP: move(s, -s->lines); break;
	case 'g': case KEY_CODE_HOME: move(s, -(int64_t)s->len); break;
	case 'G': case KEY_CODE_END: move(s, (int64_t)s->len); break;
	case ' ': mark(s); break;
	case '/': case KEY_CODE_F1 + 2:
		s->is_searching = true;
		prompt_open(&s->prompt, PROMPT_SEARCH, "");
		break;
	case 's': case '>': case KEY_CODE_F1 + 5: s->sort = (s->sort + 1) % SORTS; make_order(s); break;
	case '<': s->sort = (s->sort + SORTS - 1) % SORTS; make_order(s); break;
	case '?': case KEY_CODE_F1: s->help = true; break;
	case KEY_CODE_ESC: case KEY_CODE_BACKSPACE:
		s->on.quit = !s->prompt.text[0];
		s->prompt.text[0] = '\0';
		make_order(s);
		break;
	case 'q': case 'c' & 31: case KEY_CODE_F1 + 9: s->on.quit = true; break;
	case KEY_CODE_ENTER: case '\n': case 'D': case 't': run_outside(s, key); break;
	}
}

static void handle_keys(struct list_screen *s)
{
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	for (uint32_t key; (key = screen_loop_key(&s->on, &m)) != 0;) {
		if (key != KEY_CODE_MOUSE)
			handle_key(s, key);
		else if (m.event == MOUSE_PRESS && m.y >= s->first_line && m.y < s->first_line + s->lines)
			move(s, (int64_t)s->scroll + m.y - s->first_line - (int64_t)s->cursor);
	}
}

int ui_recordings(const struct ui_recordings *list, const struct ui_options *options, struct error *err)
{
	struct list_screen s = { .list = list, .marked = { -1, -1 } };
	if (screen_loop_begin(&s.on, options, err))
		return -1;
	s.order = mem_new(list->rows + 1, sizeof *s.order);
	make_order(&s);
	draw(&s);
	while (!s.on.quit) {
		const size_t rest = s.len - s.scroll, visible = rest < (size_t)s.lines ? rest : (size_t)s.lines;
		const int fd = list->step(list->arg, s.order + s.scroll, visible);
		make_order(&s);
		draw(&s);
		if (screen_loop_wait(&s.on, fd, -1))
			handle_keys(&s);
	}
	screen_loop_end(&s.on);
	prompt_release(&s.prompt);
	free(s.order);
	return 0;
}
