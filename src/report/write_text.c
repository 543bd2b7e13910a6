/* Writer of text for people: aligned columns, as wide as their content or as the terminal. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/writer.h"

static void text_begin(struct report *r)
{
	if (r->origin)
		origin_write_head(r->origin, r->out);
}

#define LANE_MIN 10
#define LANE_PIPED 24

#define DROPPED -1  /* width of a column that is not shown */
#define COLUMN_GAP 2    /* cells between columns; 1 on narrow terminals */

/* Minimum width of names, cells, tried in this order: no cut; readable names (wide terminals); NARROW (80 columns);
 * BARELY_READABLE (terminals narrower than any table). */
#define UNCUT INT_MAX
#define READABLE 20
#define READABLE_THREAD 30  /* "ins~2f/1234567 kworker/u16:3-e" */
#define NARROW 10
#define BARELY_READABLE 4

/* Returns true if the column is shown: it has a heading, is not dropped, and is not a lane without space. */
static bool is_shown(const struct report *r, size_t i)
{
	return r->shape->column[i].heading && r->width[i] != DROPPED &&
	       (r->shape->column[i].type != COL_LANE || r->width[i] > 0);
}

static int total_width(const struct report *r)
{
	int total = -r->column_gap;
	for (size_t i = 0; i < r->shape->columns; i++)
		total += is_shown(r, i) ? r->width[i] + r->column_gap : 0;
	return total;
}

/* ---- Narrow terminals */

static bool is_cut(enum column_type type)
{
	return type == COL_TEXT || type == COL_FIELDS;
}

/* Returns the number of cells by which the column can be cut if names keep `names` cells. A COL_FIELDS column stays
 * useful with NARROW cells. */
static int cuttable_width(const struct report *r, size_t i, int names)
{
	const enum column_type type = r->shape->column[i].type;
	const int min = type == COL_FIELDS && names > NARROW ? NARROW : names == READABLE ? r->readable_width[i] : names;
	return is_shown(r, i) && is_cut(type) && r->width[i] > min ? r->width[i] - min : 0;
}

/* Fits the table to the screen by cutting its widest texts. Returns false and changes nothing if that is not enough. */
static bool fit_by_cutting(struct report *r, int screen, int names)
{
	const size_t columns = r->shape->columns;
	int excess = total_width(r) - screen, cuttable = 0;
	for (size_t i = 0; i < columns; i++)
		cuttable += cuttable_width(r, i, names);
	for (; excess > 0 && excess <= cuttable; excess--, cuttable--) {
		size_t widest = columns;
		for (size_t i = 0; i < columns; i++)
			if (cuttable_width(r, i, names) && (widest == columns || r->width[i] > r->width[widest]))
				widest = i;
		r->width[widest]--;
	}
	return excess <= 0;
}

/* Drops the column at *droppable and advances. Returns false at the end of the list. */
static bool drop_column(struct report *r, const char **droppable)
{
	const char *sort_column = r->shape->sort_column;
	*droppable += strspn(*droppable, " ");
	size_t n = strcspn(*droppable, " ");
	for (size_t i = 0; n && i < r->shape->columns; i++) {
		const char *name = r->shape->column[i].name ? r->shape->column[i].name : r->shape->column[i].heading;
		if (name && strlen(name) == n && strncmp(name, *droppable, n) == 0 &&
		    !(sort_column && strcmp(name, sort_column) == 0))
			r->width[i] = DROPPED;
	}
	*droppable += n;
	return n > 0;
}

/* Drops one column after the other until the table fits with names of at least `names` cells. Returns false if it does
 * not fit. */
static bool fit_by_dropping(struct report *r, int screen, int names)
{
	const char *droppable = r->shape->droppable;
	bool fits = fit_by_cutting(r, screen, names);
	while (!fits && drop_column(r, &droppable))
		fits = fit_by_cutting(r, screen, names);
	return fits;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Computes the widths for shortened machine names (width), and the widths that keep names readable (readable). */
static void squeeze_widths(struct report *r)
{
	const size_t columns = r->shape->columns;
	for (size_t i = 0; i < columns; i++) {
		if (r->shape->column[i].type != COL_TEXT || !r->shape->column[i].heading)
			continue;
		r->width[i] = r->readable_width[i] = text_width(r->shape->column[i].heading);
		for (size_t at = i; at < r->held_len; at += columns) {
			char *name = text_shorten_machine(mem_dup(r->held[at]), READABLE);
			const int w = text_width(name), readable = strchr(name, '/') ? READABLE_THREAD : READABLE;
			r->width[i] = max_int(r->width[i], w);
			r->readable_width[i] = max_int(r->readable_width[i], w < readable ? w : readable);
			free(name);
		}
	}
}

/* Fits the table to the screen: first with less space between columns, then with fewer columns; then names are cut, and
 * columns are dropped only if names would not be readable otherwise. */
static void fit_widths(struct report *r, int screen)
{
	const size_t size = r->shape->columns * sizeof *r->width;
	int *full = memcpy(mem_new(size, 1), r->width, size);
	bool fits = fit_by_cutting(r, screen, UNCUT);
	if (!fits) {
		r->column_gap = 1;
		fits = fit_by_dropping(r, screen, UNCUT);
	}
	if (!fits) {
		memcpy(r->width, full, size);
		squeeze_widths(r);
		fits = fit_by_dropping(r, screen, READABLE) || fit_by_cutting(r, screen, NARROW) ||
		    fit_by_cutting(r, screen, BARELY_READABLE);
	}
	r->column_gap = COLUMN_GAP;
	if (total_width(r) > screen)
		r->column_gap = 1;
	free(full);
}

/* Assigns the rest of the screen to the lane. */
static void fit_lane(struct report *r, int screen)
{
	const struct report_shape *shape = r->shape;
	size_t lane = shape->columns - 1;
	int rest = screen > 0 ? screen - total_width(r) - r->column_gap : LANE_PIPED;
	if (shape->column[lane].type == COL_LANE)
		r->width[lane] = rest < LANE_MIN ? 0 : rest;
}

static void write_lane(struct report *r, const char *number, int width)
{
	char *lane = mem_new((size_t)width + 1, 1);
	if (r->draw && r->draw(r->draw_arg, strtoll(number, NULL, 10), (unsigned)width, lane) == 0)
		fputs(lane, r->out);
	free(lane);
}

static void write_text_field(struct report *r, const char *text, int width, bool pad)
{
	char *cut = text_shorten(mem_dup(text), width);
	fputs(cut, r->out);
	if (pad)
		fprintf(r->out, "%*s", width - text_width(cut) + r->column_gap, "");
	free(cut);
}

/* Writes the fields that fit, and '~' for the rest. */
static void write_fields(struct report *r, const char *text, int width)
{
	size_t n = strlen(text);
	if (text_width(text) > width) {
		for (n = text_fit(text, width - 2); n && text[n] != ' ';)
			n--;
		if (!n)
			n = text_fit(text, width - 1);
	}
	fprintf(r->out, "%.*s%s", (int)n, text, !text[n] ? "" : text[n] == ' ' ? " ~" : "~");
	r->fields_cut |= text[n] != '\0';
}

static void write_line(struct report *r, char *const *field)
{
	const struct report_shape *shape = r->shape;
	size_t last = shape->columns;
	while (last && !is_shown(r, last - 1))
		last--;
	for (size_t i = 0; i < last; i++) {
		if (!is_shown(r, i))
			continue;
		if (shape->column[i].type == COL_LANE && field[i] != shape->column[i].heading) {
			write_lane(r, field[i], r->width[i]);
			continue;
		}
		if (shape->column[i].type == COL_FIELDS) {
			write_fields(r, field[i], r->width[i]);
			continue;
		}
		if (column_is_text(&shape->column[i]) || shape->column[i].type == COL_LANE) {
			write_text_field(r, field[i], r->width[i], i + 1 < last);
			continue;
		}
		int pad = r->width[i] - text_width(field[i]);
		fprintf(r->out, "%*s%s%*s", pad > 0 ? pad : 0, "", field[i], i + 1 < last ? r->column_gap : 0, "");
	}
	putc('\n', r->out);
}

static void write_heading(struct report *r)
{
	const struct report_shape *shape = r->shape;
	char **heading = mem_new(shape->columns, sizeof *heading);
	const int screen = report_width(r->out);
	for (size_t i = 0; i < shape->columns; i++) {
		heading[i] = (char *)(uintptr_t)(shape->column[i].heading ? shape->column[i].heading : "");
		int w = text_width(heading[i]);
		r->width[i] = shape->column[i].type == COL_LANE ? 0 : r->width[i] > w ? r->width[i] : w;
	}
	r->column_gap = COLUMN_GAP;
	if (screen > 0)
		fit_widths(r, screen);
	fit_lane(r, screen);
	write_line(r, heading);
	free(heading);
}

/* Widens columns for the rows that are not held: shares and typical durations are no wider than this. */
static void reserve_widths(struct report *r)
{
	static const int widest = sizeof "100.00%" - 1;
	for (size_t i = 0; i < r->shape->columns; i++) {
		const enum column_type type = r->shape->column[i].type;
		if ((type == COL_SHARE || type == COL_DURATION) && r->width[i] < widest)
			r->width[i] = widest;
	}
}

static void flush_held(struct report *r)
{
	if (!r->widths_known)
		write_heading(r);
	r->widths_known = true;
	for (size_t i = 0; i < r->held_len; i += r->shape->columns)
		write_line(r, r->held + i);
	for (size_t i = 0; i < r->held_len; i++)
		free(r->held[i]);
	r->held_len = 0;
}

static void text_row(struct report *r, const struct value *value)
{
	struct field_buffer text = { .longer = NULL };
	for (size_t i = 0; i < r->shape->columns; i++) {
		char *field = mem_dup(field_format(&r->shape->column[i], &value[i], true, &text));
		int w = text_width(field);
		if (!r->widths_known && w > r->width[i])
			r->width[i] = w;
		*ARRAY_PUSH(r->held, r->held_len, r->held_cap) = field;
	}
	field_release(&text);
	if (!r->widths_known && r->rows >= REPORT_LOOKAHEAD)
		reserve_widths(r);
	if (r->widths_known || r->rows >= REPORT_LOOKAHEAD)
		flush_held(r);
}

static void text_end(struct report *r)
{
	if (r->rows)
		flush_held(r);
	else
		fprintf(r->out, "none%s\n", r->has_invisible_loss ? " visible without a host trace" : "");
	if (r->fields_cut)
		fputs("~ fields cut to the width of the terminal: use | less -S or --format csv\n", r->out);
}

const struct report_writer write_text = { text_begin, text_row, NULL, text_end };
