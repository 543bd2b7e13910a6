/* Panes that show a report: its rows in memory (report/table.h), filtered and sorted; see pane.h. */
#include "base/base.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"

#define SCREENS 2  /* screens of rows that are laid out before the user scrolls to their end */

static const char *name_of(const struct column *c)
{
	return c->name ? c->name : c->heading;
}

static char *clock_text(const void *axis, char buf[TIME_TEXT], int64_t t, int64_t step)
{
	return ruler_time(buf, axis, t, step);
}

static struct table_pane *table_pane_state(struct pane *pane)
{
	return (struct table_pane *)pane;
}

size_t table_pane_row(const struct pane *pane, size_t i)
{
	const struct table_pane *p = (const struct table_pane *)pane;
	return p->line[i < p->texts ? 0 : i - p->texts];
}

size_t table_pane_find_name(const struct pane *pane)
{
	const struct table_pane *p = (const struct table_pane *)pane;
	for (size_t i = p->texts; i < pane->lines && *pane->filter; i++)
		if (filter_matches(report_table_text(&p->table, table_pane_row(pane, i), 0), pane->filter))
			return i;
	return 0;
}

static void drop_text(struct table_pane *p)
{
	for (size_t i = 0; i < p->texts; i++)
		free(p->text[i]);
	p->texts = 0;
}

void table_pane_drop(struct pane *pane)
{
	struct table_pane *p = table_pane_state(pane);
	report_table_release(&p->table);
	drop_text(p);
	free(p->text);
	free(p->line);
	free(p->around);
	p->text = NULL;
	p->texts_cap = 0;
	p->line = NULL;
	p->around = NULL;
	p->has_table = p->needs_all = false;
	pane->lines = 0;
}

/* Returns true if all rows must be laid out: to be sorted or filtered, or because the end of the first ones was reached. */
static bool needs_all(const struct table_pane *p)
{
	return p->needs_all || p->order || *p->pane.filter || !p->pane.ops->is_ordered;
}

/* Writes the report of the pane into its table, and the text around it into p->around. */
static void make_table(struct app *app, struct table_pane *p)
{
	struct report_how how = REPORT_WHOLE(FORMAT_TEXT);
	struct origin none = { .from = 1, .to = 0 };
	struct error err = ERROR_INIT;
	size_t size;
	free(p->around);
	p->around = NULL;
	FILE *f = open_memstream(&p->around, &size);
	report_table_release(&p->table);
	p->axis = app->axis;
	p->table.most = needs_all(p) ? 0 : (size_t)SCREENS * (size_t)app->h_cells;
	p->table.clock = clock_text;
	p->table.clock_arg = &p->axis;
	how.table = &p->table;
	p->has_table = f && p->pane.ops->report(app, &p->pane, f, how, &none, &err) == 0 && p->table.widest;
	if (f)
		fclose(f);
	origin_release(&none);
}

/* Returns true if a field of the row contains the filter. */
static bool passes_filter(const struct table_pane *p, size_t row)
{
	const size_t columns = p->table.shape.columns;
	for (size_t c = 0; c < columns && *p->pane.filter; c++)
		if (filter_matches(report_table_text(&p->table, row, c), p->pane.filter))
			return true;
	return !*p->pane.filter;
}

/* Returns the column by which the lines are sorted; shape.columns: the order of the report. */
static size_t sort_column(const struct table_pane *p)
{
	const char *at = p->order < 0 ? "" : p->pane.ops->orders ? p->pane.ops->orders : "";
	char name[64];
	for (int i = 0; i < p->order; i++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
	return report_table_column(&p->table, name);
}

/* Numbers: the largest first; times: the first first; texts: by their numbers, then by alphabet. */
static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct table_pane *p = arg;
	const size_t x = *(const size_t *)a, y = *(const size_t *)b, column = p->sort_column, columns = p->table.shape.columns;
	const struct report_field *v = &p->table.field[x * columns + column], *w = &p->table.field[y * columns + column];
	const enum column_type type = p->table.shape.column[column].type;
	const bool ascends = type == COL_CLOCK || type == COL_CLOCK_NS;
	int order = ascends ? (v->key > w->key) - (v->key < w->key) : (v->key < w->key) - (v->key > w->key);
	if (order == 0 && column_is_text(&p->table.shape.column[column]))
		order = strcmp(report_table_text(&p->table, x, column), report_table_text(&p->table, y, column));
	return order ? order : (x > y) - (x < y);
}

/* Makes the lines of the text before the table: none while a filter is set. */
static void make_text(const struct app *app, struct table_pane *p)
{
	drop_text(p);
	for (const char *at = p->pane.ops->shows_text && !p->pane.filter[0] && p->around ? p->around : ""; *at;) {
		size_t n = strcspn(at, "\n"), fits = text_line_bytes(at, app->w - 2);
		n = n <= fits || !fits ? n : fits;
		if (n)
			*ARRAY_PUSH(p->text, p->texts, p->texts_cap) = mem_printf("%.*s", (int)n, at);
		at += n + strspn(at + n, " \n");
	}
}

void table_pane_arrange(struct app *app, struct pane *pane)
{
	struct table_pane *p = table_pane_state(pane);
	const bool same_axis = p->axis.format == app->axis.format && p->axis.origin == app->axis.origin;
	if (!p->has_table || !same_axis || (p->table.has_more && needs_all(p)))
		make_table(app, p);
	free(p->line);
	p->line = mem_new(p->table.rows + 1, sizeof *p->line);
	pane->lines = 0;
	for (size_t row = 0; row < p->table.rows; row++)
		if (passes_filter(p, row))
			p->line[pane->lines++] = row;
	const size_t rows = pane->lines;
	make_text(app, p);
	if (p->texts)
		pane->lines += p->texts - (pane->lines == 0);
	if (!p->has_table)
		return;
	if (!pane->ops->orders && p->table.shape.sort_column) {
		p->sort_column = report_table_column(&p->table, p->table.shape.sort_column);
	} else {
		p->sort_column = sort_column(p);
		p->table.shape.sort_column = NULL;
		if (p->sort_column < p->table.shape.columns) {
			p->table.shape.sort_column = name_of(&p->table.shape.column[p->sort_column]);
			qsort_r(p->line, rows, sizeof *p->line, compare_lines, p);
		}
	}
	report_table_fit(&p->table, pane->ops->label_width ? pane->ops->label_width(pane, app->w) - 2 : app->w - 2);
	if (p->table.has_more && pane->at + pane->page >= pane->lines)
		table_pane_arrange_all(app, pane);
}

void table_pane_arrange_all(struct app *app, struct pane *pane)
{
	struct table_pane *p = table_pane_state(pane);
	p->needs_all = true;
	if (p->table.has_more)
		table_pane_arrange(app, pane);
}

void table_pane_sort(struct app *app, struct pane *pane, int by)
{
	struct table_pane *p = table_pane_state(pane);
	int orders = 1;
	for (const char *at = pane->ops->orders; at && (at = strchr(at, ' ')); at++)
		orders++;
	p->order = (p->order + by + orders) % orders;
	pane->at = pane->top = 0;
	table_pane_arrange(app, pane);
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------ */

/* Returns true if a list of names, "a b", contains the column's name. */
static bool is_listed(const struct column *c, const char *list)
{
	const size_t n = strlen(name_of(c));
	for (const char *at = list; at && (at = strstr(at, name_of(c))); at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* above: the line above's row, TABLE_HEADING: none. */
static void draw_row(const struct app *app, struct table_pane *p, struct screen *s, int y, size_t row, size_t above,
                     struct style style, bool selected)
{
	const struct report_table *t = &p->table;
	int x = 1;
	for (size_t c = 0; c < t->shape.columns; c++) {
		const struct column *column = &t->shape.column[c];
		struct style cell_style = style;
		if (!report_table_shows(t, c))
			continue;
		char *cell = report_table_cell(&p->table, row, c);
		if (row == TABLE_HEADING && c == p->sort_column)
			cell_style.attr |= ATTR_UNDERLINE | ATTR_BOLD;
		else if (row != TABLE_HEADING && is_listed(column, p->pane.ops->marked))
			cell_style = pane_style(app, PART_STEAL, selected);
		const bool repeats = above != TABLE_HEADING && is_listed(column, p->pane.ops->merged) &&
		                     strcmp(report_table_text(t, above, c), report_table_text(t, row, c)) == 0;
		if (!repeats)
			screen_text(s, x, y, s->w - x, cell_style, cell);
		free(cell);
		x += t->width[c] + t->gap;
	}
}

/* Draws line i of the text; below the text, the headings. Then the first row follows. */
static void draw_text(const struct app *app, struct table_pane *p, struct screen *s, int y, size_t i)
{
	const enum part part = i < p->texts ? PART_NORMAL : PART_RULER;
	screen_fill(s, 0, y, s->w, ' ', app->appearance.palette.part[part]);
	if (i < p->texts)
		screen_text(s, 1, y, s->w - 2, app->appearance.palette.part[part], p->text[i]);
	else if (p->has_table)
		draw_row(app, p, s, y, TABLE_HEADING, TABLE_HEADING, app->appearance.palette.part[part], false);
}

/* Draws the line before the first one shown, so that the headings stay above the rows when the text scrolls. */
void table_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	struct table_pane *p = table_pane_state((struct pane *)(uintptr_t)pane);  /* a cell that is cut sets a mark */
	draw_text(app, p, s, y, pane->top);
}

void table_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	struct table_pane *p = table_pane_state(pane);
	const enum part part = pane->ops->line_part ? pane->ops->line_part(pane, i) : PART_NORMAL;
	const struct style style = pane_style(app, part, selected);
	/* one style for the whole line: most bytes sent to the terminal are style changes */
	screen_fill(s, 0, y, pane->ops->label_width ? app->label_w : s->w, ' ', style);
	if (i < p->texts)
		draw_text(app, p, s, y, i + 1);
	else
		draw_row(app, p, s, y, table_pane_row(pane, i), i > pane->top && i > p->texts ? table_pane_row(pane, i - 1)
		         : TABLE_HEADING, style, selected);
}

/* Sorts by the column of a heading that was pressed, if the pane has this order. */
void table_pane_press_heading(struct app *app, struct pane *pane, int x)
{
	struct table_pane *p = table_pane_state(pane);
	const struct report_table *t = &p->table;
	const size_t before = p->sort_column;
	int left = 1;
	size_t pressed = t->shape.columns;
	for (size_t c = 0; c < t->shape.columns; c++) {
		if (!report_table_shows(t, c))
			continue;
		pressed = x >= left && x < left + t->width[c] ? c : pressed;
		left += t->width[c] + t->gap;
	}
	do
		pane->ops->sort(app, pane, 1);
	while (p->sort_column != pressed && p->sort_column != before);
}

/* Writes ", by length": the column by which the lines are sorted. */
void table_pane_get_order(const struct pane *pane, char *buf, size_t size)
{
	const struct table_pane *p = (const struct table_pane *)pane;
	const bool is_sorted = pane->ops->orders && pane->lines > 1 && p->sort_column < p->table.shape.columns;
	const struct column *c = &p->table.shape.column[is_sorted ? p->sort_column : 0];
	snprintf(buf, size, is_sorted ? ", by %s " : "%s", !is_sorted ? "" : c->type == COL_CLOCK ? "time" : c->heading);
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

/* Writes the fields of a line that the screen does not show, or cuts, with their headings. */
void table_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct table_pane *p = (const struct table_pane *)pane;
	const struct report_table *t = &p->table;
	size_t used = 0;
	(void)app;
	*buf = '\0';
	for (size_t c = 0; c < t->shape.columns && t->rows && used < size; c++) {
		const char *text = report_table_text(t, table_pane_row(pane, i), c);
		if (t->shape.column[c].heading && *text && (!report_table_shows(t, c) || text_width(text) > t->width[c]))
			used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "", t->shape.column[c].heading,
			                         text);
	}
}

static void add_row_title(const struct app *app, const struct pane *pane, const char *prefix, char *buf, size_t size)
{
	char title[512] = "";
	if (pane->ops->is_scoped)
		row_title(&app->rows, pane->scope.row, title, sizeof title);
	snprintf(buf, size, "%s%s", prefix, title);
}

void table_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->name_prefix, buf, size);
}

void table_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	char name[640], length[TIME_TEXT];
	(void)w;
	table_pane_get_name(app, pane, name, sizeof name);
	snprintf(buf, size, " %s in %s ", name, pane_window_text(app, pane->from, pane->to, length));
}

void table_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	add_row_title(app, pane, pane->ops->file_prefix, buf, size);
}

int table_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct target s;
	struct origin o;
	export_origin(app, pane, pane->ops->is_scoped ? pane_target(app, pane, &s) : NULL, &o);
	int rc = pane->ops->report(app, pane, f, REPORT_WHOLE(format), &o, err);
	origin_release(&o);
	return rc;
}
