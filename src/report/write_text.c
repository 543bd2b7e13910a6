/* Writers of rows for people: text, in aligned columns, as wide as their content or as the terminal; and tables in memory,
 * which the viewer draws. */
#include "base/base.h"
#include "report/writer.h"

static void text_begin(struct report *r)
{
	if (r->origin)
		origin_write_head(r->origin, r->out);
	report_table_begin(&r->held, r->shape);
}

static void write_lane(struct report *r, const char *number, int width)
{
	char *lane = mem_new((size_t)width + 1, 1);
	if (r->draw && r->draw(r->draw_arg, strtoll(number, NULL, 10), (unsigned)width, lane) == 0)
		fputs(lane, r->out);
	free(lane);
}

static void write_line(struct report *r, size_t row)
{
	struct report_table *t = &r->held;
	size_t last = t->shape.columns;
	while (last && !report_table_shows(t, last - 1))
		last--;
	for (size_t c = 0; c < last; c++) {
		if (!report_table_shows(t, c))
			continue;
		if (t->shape.column[c].type == COL_LANE && row != TABLE_HEADING) {
			write_lane(r, report_table_text(t, row, c), t->width[c]);
			continue;
		}
		char *cell = report_table_cell(t, row, c);
		const int pad = t->width[c] - text_width(cell);
		place_link_print(r->out, row == TABLE_HEADING ? NULL : t->field[row * t->shape.columns + c].link, cell);
		/* a name at the line's end is not padded */
		fprintf(r->out, "%*s", c + 1 < last ? (pad > 0 ? pad : 0) + t->gap : 0, "");
		free(cell);
	}
	putc('\n', r->out);
}

/* Widens columns for the rows that are not held: shares and typical durations are no wider than this. */
static void reserve_widths(struct report_table *t)
{
	static const int widest = sizeof "100.00%" - 1;
	for (size_t c = 0; c < t->shape.columns; c++) {
		const enum column_type type = t->shape.column[c].type;
		if ((type == COL_SHARE || type == COL_DURATION) && t->widest[c] >= 0 && t->widest[c] < widest)
			t->widest[c] = widest;
	}
}

static void flush_held(struct report *r)
{
	if (!r->widths_known) {
		report_table_fit(&r->held, report_width(r->out));
		write_line(r, TABLE_HEADING);
	}
	r->widths_known = true;
	for (size_t row = 0; row < r->held.rows; row++)
		write_line(r, row);
	report_table_clear(&r->held);
}

static void text_row(struct report *r, const struct value *value)
{
	report_table_add(&r->held, value);
	if (!r->widths_known && r->rows >= REPORT_LOOKAHEAD)
		reserve_widths(&r->held);
	if (r->widths_known || r->rows >= REPORT_LOOKAHEAD)
		flush_held(r);
}

static void text_end(struct report *r)
{
	if (r->rows)
		flush_held(r);
	else
		fprintf(r->out, "none%s\n", r->has_invisible_loss ? " visible without a host trace" : "");
	if (r->held.fields_cut)
		fputs("~ fields cut to the width of the terminal: use | less -S or --format csv\n", r->out);
}

const struct report_writer write_text = { text_begin, text_row, NULL, text_end };

static void table_writer_begin(struct report *r)
{
	report_table_begin(r->table, r->shape);
}

static void table_writer_row(struct report *r, const struct value *value)
{
	report_table_add(r->table, value);
}

static void table_writer_end(struct report *r)
{
	(void)r;
}

const struct report_writer write_table = { table_writer_begin, table_writer_row, NULL, table_writer_end };
