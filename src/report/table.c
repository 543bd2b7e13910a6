#include "report/table.h"

#include <limits.h>

#include "base/base.h"
#include "report/writer.h"

#define DROPPED -1         /* width of a column that is not shown */
#define GAP 2              /* cells between columns; 1 on narrow screens */
#define LANE_MIN 10
#define LANE_UNLIMITED 24
#define FIELDS_MIN 24      /* cells of a COL_FIELDS column that stay useful */
#define MACHINE_CELLS 20   /* longer names of machines are shortened before columns of the same table are cut */

/* Smallest widths of names, cells, in this order. */
static const int name_cells[] = { 10, 4 };

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

void report_table_begin(struct report_table *t, const struct report_shape *shape)
{
	const size_t size = shape->columns * sizeof *shape->column;
	*t = (struct report_table){ .shape = *shape, .gap = GAP, .most = t->most, .clock = t->clock,
		.clock_arg = t->clock_arg };
	t->shape.column = memcpy(mem_new(shape->columns, sizeof *shape->column), shape->column, size);
	t->widest = mem_new(2 * shape->columns, sizeof *t->widest);
	t->width = t->widest + shape->columns;
	for (size_t c = 0; c < shape->columns; c++) {
		const struct column *column = &shape->column[c];
		t->widest[c] = !column->heading ? DROPPED : column->type == COL_LANE ? 0 : text_width(column->heading);
	}
}

void report_table_clear(struct report_table *t)
{
	for (size_t i = 0; i < t->fields; i++)
		free(t->field[i].text), free(t->field[i].link);
	t->fields = t->rows = 0;
}

void report_table_release(struct report_table *t)
{
	report_table_clear(t);
	free(t->field);
	free((void *)(uintptr_t)t->shape.column);
	free(t->widest);
	*t = (struct report_table){ .clock = t->clock, .clock_arg = t->clock_arg };
}

/* Returns the number of a value by which its column sorts. */
static int64_t sort_key(const struct column *column, const struct value *v)
{
	if (v->form == VALUE_ABSENT)
		return INT64_MIN;
	return column->type == COL_SHARE || column->type == COL_REAL ? (int64_t)(v->real * 1e9) : v->integer;
}

/* Returns the text of a value for people. Valid until the next call. */
static const char *shown_text(const struct report_table *t, const struct column *column, const struct value *v,
                              char clock[TIME_TEXT], struct field_buffer *buffer)
{
	const bool is_clock = column->type == COL_CLOCK || column->type == COL_CLOCK_NS;
	if (t->clock && is_clock && v->form != VALUE_ABSENT)
		return t->clock(t->clock_arg, clock, v->integer, column->type == COL_CLOCK_NS ? 1 : 100000);
	return field_format(column, v, true, buffer);
}

void report_table_add(struct report_table *t, const struct value *value)
{
	struct field_buffer buffer = { .longer = NULL };
	char clock[TIME_TEXT];
	for (size_t c = 0; c < t->shape.columns; c++) {
		const struct column *column = &t->shape.column[c];
		struct report_field *field = ARRAY_PUSH(t->field, t->fields, t->fields_cap);
		*field = (struct report_field){ NULL, sort_key(column, &value[c]), NULL };
		if (!column->heading || value[c].form == VALUE_ABSENT)
			continue;
		field->text = mem_dup(shown_text(t, column, &value[c], clock, &buffer));
		field->link = value[c].link ? mem_dup(value[c].link) : NULL;
		if (column->type != COL_LANE)
			t->widest[c] = max_int(t->widest[c], text_width(field->text));
	}
	field_release(&buffer);
	t->rows++;
}

const char *report_table_text(const struct report_table *t, size_t row, size_t column)
{
	const char *text = row == TABLE_HEADING ? t->shape.column[column].heading
	                                        : t->field[row * t->shape.columns + column].text;
	return text ? text : "";
}

size_t report_table_column(const struct report_table *t, const char *name)
{
	size_t c = 0;
	for (; c < t->shape.columns; c++) {
		const struct column *column = &t->shape.column[c];
		if (column->name ? strcmp(column->name, name) == 0 : column->heading && strcmp(column->heading, name) == 0)
			break;
	}
	return c;
}

/* ---- Layout */

bool report_table_shows(const struct report_table *t, size_t column)
{
	return t->width[column] != DROPPED && (t->shape.column[column].type != COL_LANE || t->width[column] > 0);
}

/* Returns true if the column may be cut. */
static bool is_name(const struct column *c)
{
	return c->type == COL_TEXT || c->type == COL_ACTOR;
}

/* Returns the table's width with names of at most `most` cells. A COL_FIELDS column needs only FIELDS_MIN cells. */
static int width_with_names(const struct report_table *t, int most)
{
	int total = -t->gap;
	for (size_t c = 0; c < t->shape.columns; c++) {
		const struct column *column = &t->shape.column[c];
		if (report_table_shows(t, c))
			total += t->gap + (column->type == COL_FIELDS ? min_int(t->width[c], FIELDS_MIN)
			                   : is_name(column) ? min_int(t->width[c], most) : t->width[c]);
	}
	return total;
}

static int width_needed(const struct report_table *t)
{
	return width_with_names(t, INT_MAX);
}

/* Drops columns until the table fits with names of at most `most` cells: first those before the '|' of shape.droppable,
 * with cut names also the others. Returns false if it does not fit without all of them. */
static bool drop_columns(struct report_table *t, int screen, int most)
{
	char name[64];
	for (const char *at = t->shape.droppable; width_with_names(t, most) > screen; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		if (!*at || (*at == '|' && most == INT_MAX))
			return false;
		snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
		const size_t c = report_table_column(t, name);
		if (c < t->shape.columns && !(t->shape.sort_column && strcmp(name, t->shape.sort_column) == 0))
			t->width[c] = DROPPED;
	}
	return true;
}

/* Sets the widths of names to those with short names of machines. */
static void shorten_machines(struct report_table *t)
{
	memcpy(t->width, t->widest, t->shape.columns * sizeof *t->width);
	for (size_t c = 0; c < t->shape.columns; c++) {
		if (!is_name(&t->shape.column[c]) || t->width[c] <= MACHINE_CELLS)
			continue;
		t->width[c] = text_width(t->shape.column[c].heading);
		for (size_t row = 0; row < t->rows; row++) {
			char *name = text_shorten_machine(mem_dup(report_table_text(t, row, c)), MACHINE_CELLS);
			t->width[c] = max_int(t->width[c], text_width(name));
			free(name);
		}
	}
}

/* Cuts the widest names until the table fits, to at least `least` cells. */
static void cut_names(struct report_table *t, int screen, int least)
{
	for (int excess = width_needed(t) - screen; excess > 0; excess--) {
		size_t widest = t->shape.columns;
		for (size_t c = 0; c < t->shape.columns; c++)
			if (is_name(&t->shape.column[c]) && t->width[c] > least &&
			    (widest == t->shape.columns || t->width[c] > t->width[widest]))
				widest = c;
		if (widest == t->shape.columns)
			return;
		t->width[widest]--;
	}
}

/* Gives the rest of the screen to the last column, if it is a lane or COL_FIELDS. */
static void fit_last(struct report_table *t, int screen)
{
	const size_t last = t->shape.columns - 1;
	const enum column_type type = t->shape.column[last].type;
	const int natural = t->width[last];
	if ((type != COL_FIELDS && type != COL_LANE) || natural == DROPPED)
		return;
	t->width[last] = 0;
	const int rest = screen - width_needed(t) - (type == COL_LANE ? t->gap : 0);
	if (type == COL_FIELDS)
		t->width[last] = screen > 0 ? max_int(min_int(natural, rest), min_int(natural, FIELDS_MIN)) : natural;
	else
		t->width[last] = screen <= 0 ? LANE_UNLIMITED : rest < LANE_MIN ? 0 : rest;
}

void report_table_fit(struct report_table *t, int w)
{
	memcpy(t->width, t->widest, t->shape.columns * sizeof *t->width);
	t->gap = GAP;
	if (w > 0 && width_needed(t) > w) {
		t->gap = 1;
		bool fits = drop_columns(t, w, INT_MAX);
		if (!fits) {
			shorten_machines(t);
			fits = drop_columns(t, w, INT_MAX);
		}
		if (!fits)
			drop_columns(t, w, name_cells[0]);
		for (size_t i = 0; i < sizeof name_cells / sizeof *name_cells && !fits; i++)
			cut_names(t, w, name_cells[i]);
		t->gap = GAP;
		if (width_needed(t) > w)
			t->gap = 1;
	}
	fit_last(t, w);
}

/* ---- Cells */

/* Cuts the text at a field, and marks that with '~'. */
static char *cut_fields(const char *text, int width)
{
	size_t n = text_fit(text, width - 2);
	while (n && text[n] != ' ')
		n--;
	if (n)
		return mem_printf("%.*s ~", (int)n, text);
	return mem_printf("%.*s~", (int)text_fit(text, width - 1), text);
}

char *report_table_cell(struct report_table *t, size_t row, size_t column)
{
	const struct column *c = &t->shape.column[column];
	const char *text = report_table_text(t, row, column);
	const int width = t->width[column], pad = width - text_width(text);
	if (c->type == COL_FIELDS && pad < 0) {
		t->fields_cut = true;
		return cut_fields(text, width);
	}
	if (column_is_text(c) || c->type == COL_LANE)
		return text_shorten(mem_dup(text), width);
	return mem_printf("%*s%s", pad > 0 ? pad : 0, "", text);
}
