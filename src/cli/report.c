#include "cli/report.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define FIELD_TEXT 512  /* bytes of one formatted field */
#define CLOCK_DIGITS 4  /* after the second: as the viewer has them, and 80 columns hold the gaps of a vCPU */

const char *const report_formats[] = { "text", "csv", "json", NULL };

struct report {
	FILE *out;
	enum report_format format;
	const struct column *column;
	size_t columns;
	size_t rows;      /* so far */
	char **held;      /* text: fields waiting for the widths, row by row */
	size_t held_len, held_cap;
	int *width;       /* text: columns of the terminal */
	bool widths_known;
};

/* One field as csv and text print it. */
static char *format_field(const struct report *r, size_t col, const struct value *v, char buf[FIELD_TEXT])
{
	bool text = r->format == FORMAT_TEXT;
	buf[0] = '\0';
	if (v->absent)
		return buf;
	switch (r->column[col].type) {
	case COL_TEXT:
		return text_escape(buf, FIELD_TEXT, v->text ? v->text : "");
	case COL_DURATION:
	case COL_CLOCK:
		if (text)
			return r->column[col].type == COL_CLOCK ? time_clock(buf, v->integer, CLOCK_DIGITS)
			                                        : time_duration(buf, v->integer);
		/* fall through */
	case COL_INT:
		snprintf(buf, FIELD_TEXT, "%" PRId64, v->integer);
		return buf;
	case COL_SHARE:
		snprintf(buf, FIELD_TEXT, text ? "%.2f%%" : "%.9f", text ? 100 * v->real : v->real);
		return buf;
	case COL_REAL:
		snprintf(buf, FIELD_TEXT, text ? "%.3f" : "%.9f", v->real);
		return buf;
	}
	return buf;
}

struct report *report_begin(FILE *out, enum report_format format, const struct column *column, size_t columns)
{
	struct report *r = mem_new(1, sizeof *r);
	*r = (struct report){ .out = out, .format = format, .column = column, .columns = columns };
	r->width = mem_new(columns, sizeof *r->width);
	if (format == FORMAT_CSV)
		for (size_t i = 0; i < columns; i++)
			fprintf(out, "%s%s", column[i].name, i + 1 < columns ? "," : "\n");
	if (format == FORMAT_JSON)
		fputs("[", out);
	return r;
}

static void csv_field(FILE *out, const char *s)
{
	if (!s[strcspn(s, ",\"\n\r")]) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

static void csv_row(struct report *r, const struct value *value)
{
	char buf[FIELD_TEXT];
	for (size_t i = 0; i < r->columns; i++) {
		csv_field(r->out, format_field(r, i, &value[i], buf));
		putc(i + 1 < r->columns ? ',' : '\n', r->out);
	}
}

static void json_row(struct report *r, const struct value *value)
{
	struct json_object *row = json_object_new_object();
	for (size_t i = 0; i < r->columns; i++) {
		char buf[FIELD_TEXT];
		const char *text = format_field(r, i, &value[i], buf);
		struct json_object *item = NULL;
		if (value[i].absent)
			item = NULL;
		else if (r->column[i].type == COL_TEXT)
			item = json_object_new_string(text);
		else if (r->column[i].type == COL_SHARE || r->column[i].type == COL_REAL)
			item = json_object_new_double_s(value[i].real, text);
		else
			item = json_object_new_int64(value[i].integer);
		json_object_object_add(row, r->column[i].name, item);
	}
	fprintf(r->out, "%s\n  %s", r->rows > 1 ? "," : "", json_object_to_json_string_ext(row, JSON_C_TO_STRING_PLAIN));
	json_object_put(row);
}

/* Makes the table fit the screen at the cost of its widest texts. */
static void fit_widths(struct report *r)
{
	int total = -2;
	for (size_t i = 0; i < r->columns; i++)
		total += r->column[i].heading ? r->width[i] + 2 : 0;
	while (total > REPORT_WIDTH) {
		size_t widest = r->columns;
		for (size_t i = 0; i < r->columns; i++)
			if (r->column[i].heading && r->column[i].type == COL_TEXT && r->width[i] > REPORT_NARROWEST &&
			    (widest == r->columns || r->width[i] > r->width[widest]))
				widest = i;
		if (widest == r->columns)
			return;
		r->width[widest]--;
		total--;
	}
}

/* A text that is wider than its column has a '~' in its middle: both ends of names and paths tell something. */
static void put_text(struct report *r, const char *text, int width, bool pad)
{
	int w = text_width(text);
	if (w > width) {
		size_t head = text_fit(text, (width - 1) / 2);
		const char *tail = text + head;
		while (text_width(tail) > width - 1 - (width - 1) / 2) {
			uint32_t c;
			size_t len = text_decode(tail, &c);
			tail += len ? len : 1;
		}
		fprintf(r->out, "%.*s~%s", (int)head, text, tail);
		w = text_width(text) - text_width(text + head) + 1 + text_width(tail);
	} else {
		fputs(text, r->out);
	}
	if (pad)
		fprintf(r->out, "%*s", width - w + 2, "");
}

static void text_line(struct report *r, char *const *field)
{
	size_t last = r->columns;
	while (last && !r->column[last - 1].heading)
		last--;
	for (size_t i = 0; i < last; i++) {
		if (!r->column[i].heading)
			continue;
		if (r->column[i].type == COL_TEXT) {
			put_text(r, field[i], r->width[i], i + 1 < last);
			continue;
		}
		int pad = r->width[i] - text_width(field[i]);
		fprintf(r->out, "%*s%s%s", pad > 0 ? pad : 0, "", field[i], i + 1 < last ? "  " : "");
	}
	putc('\n', r->out);
}

static void text_flush(struct report *r)
{
	if (!r->widths_known) {
		r->widths_known = true;
		char **heading = mem_new(r->columns, sizeof *heading);
		for (size_t i = 0; i < r->columns; i++) {
			heading[i] = (char *)(uintptr_t)(r->column[i].heading ? r->column[i].heading : "");
			int w = text_width(heading[i]);
			r->width[i] = r->width[i] > w ? r->width[i] : w;
		}
		fit_widths(r);
		text_line(r, heading);
		free(heading);
	}
	for (size_t i = 0; i < r->held_len; i += r->columns)
		text_line(r, r->held + i);
	for (size_t i = 0; i < r->held_len; i++)
		free(r->held[i]);
	r->held_len = 0;
}

static void text_row(struct report *r, const struct value *value)
{
	for (size_t i = 0; i < r->columns; i++) {
		char buf[FIELD_TEXT];
		char *field = mem_dup(format_field(r, i, &value[i], buf));
		int w = text_width(field);
		if (!r->widths_known && w > r->width[i])
			r->width[i] = w;
		*ARRAY_PUSH(r->held, r->held_len, r->held_cap) = field;
	}
	if (r->widths_known || r->rows >= REPORT_LOOKAHEAD)
		text_flush(r);
}

void report_row(struct report *r, const struct value *value)
{
	r->rows++;
	if (r->format == FORMAT_CSV)
		csv_row(r, value);
	else if (r->format == FORMAT_JSON)
		json_row(r, value);
	else
		text_row(r, value);
}

void report_end(struct report *r)
{
	if (r->format == FORMAT_JSON)
		fputs(r->rows ? "\n]\n" : "]\n", r->out);
	if (r->format == FORMAT_TEXT && r->rows == 0)
		fputs("none\n", r->out);
	else if (r->format == FORMAT_TEXT)
		text_flush(r);
	free(r->held);
	free(r->width);
	free(r);
}
