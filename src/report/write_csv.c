/* csv: a line of column names, a line for each row, fields quoted where they must be (RFC 4180, but with "\n"). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/writer.h"

static void begin(struct report *r)
{
	const size_t columns = report_raw_columns(r->shape);
	for (size_t i = 0; i < columns; i++)
		fprintf(r->out, "%s%s", r->shape->column[i].name, i + 1 < columns ? "," : "\n");
}

static void put_field(FILE *out, const char *s)
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

/* Would a spreadsheet take it for a formula? */
static bool is_formula(const struct column *c, const struct value *v, const char *text)
{
	return column_is_text(c) && v->form != VALUE_NUMBER && *text && strchr("=+-@", *text);
}

/* Such a text gets an escape in front: one more of those that names have. */
static void put_safe(FILE *out, const char *text)
{
	char *safe = mem_printf("\\x%02x%s", (unsigned)text[0], text + 1);
	put_field(out, safe);
	free(safe);
}

static void row(struct report *r, const struct value *value)
{
	struct field_text field = { .longer = NULL };
	const size_t columns = report_raw_columns(r->shape);
	for (size_t i = 0; i < columns; i++) {
		const struct column *c = &r->shape->column[i];
		const char *text = field_format(c, &value[i], false, &field);
		(is_formula(c, &value[i], text) ? put_safe : put_field)(r->out, text);
		putc(i + 1 < columns ? ',' : '\n', r->out);
	}
	field_release(&field);
}

static void end(struct report *r)
{
	(void)r;
}

const struct report_writer write_csv = { begin, row, NULL, end };
