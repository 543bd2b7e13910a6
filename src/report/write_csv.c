/* Writer of csv: a line of column names and a line per row; fields are quoted where necessary (RFC 4180, but with "
 * "). */
#include "base/base.h"
#include "report/writer.h"

static bool is_in_csv(const struct column *c)
{
	return c->name && c->type != COL_ACTOR;
}

static void csv_begin(struct report *r)
{
	const char *separator = "";
	for (size_t i = 0; i < r->shape->columns; i++) {
		if (!is_in_csv(&r->shape->column[i]))
			continue;
		fprintf(r->out, "%s%s", separator, r->shape->column[i].name);
		separator = ",";
	}
	putc('\n', r->out);
}

static void write_field(FILE *out, const char *s)
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

/* Returns true if a spreadsheet would interpret the text as a formula. */
static bool is_formula(const struct column *c, const struct value *v, const char *text)
{
	return column_is_text(c) && v->form != VALUE_NUMBER && *text && strchr("=+-@", *text);
}

/* Writes a field with its first character escaped, like other special characters of names: "\x3d" for '='. */
static void write_escaped(FILE *out, const char *text)
{
	char *safe = mem_printf("\\x%02x%s", (unsigned)text[0], text + 1);
	write_field(out, safe);
	free(safe);
}

static void csv_row(struct report *r, const struct value *value)
{
	struct field_buffer field = { .longer = NULL };
	const char *separator = "";
	for (size_t i = 0; i < r->shape->columns; i++) {
		const struct column *c = &r->shape->column[i];
		if (!is_in_csv(c))
			continue;
		const char *text = field_format(c, &value[i], false, &field);
		fputs(separator, r->out);
		(is_formula(c, &value[i], text) ? write_escaped : write_field)(r->out, text);
		separator = ",";
	}
	putc('\n', r->out);
	field_release(&field);
}

static void csv_end(struct report *r)
{
	(void)r;
}

const struct report_writer write_csv = { csv_begin, csv_row, NULL, csv_end };
