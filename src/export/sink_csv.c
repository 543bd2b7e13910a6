/* Sink csv: writes DIR/TABLE/RUN.csv (RFC 4180, with line breaks "\n"). A text's first character is escaped (= as
 * \x3d) if a spreadsheet would evaluate the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "export/run_files.h"

#define MAX_FIELD (2 * CELL_TEXT_MAX + 8)  /* bytes of a field, in which every character may be a quote that is doubled */
#define MAX_ROW (TABLE_FIELDS_MAX * MAX_FIELD)

struct sink {
	char buf[4 * MAX_ROW];
	size_t used;
	const struct export_shape *table;
	struct run_files files;
};

static struct sink *open_csv(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	if (files_open(&s->files, target, "csv", run->id, err) == 0)
		return s;
	free(s);
	return NULL;
}

static int csv_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	if (files_begin(&s->files, t, err))
		return -1;
	s->table = t;
	for (size_t i = 0; i < t->fields; i++)
		fprintf(s->files.save.f, "%s%s", t->field[i].name, i + 1 < t->fields ? "," : "\n");
	return 0;
}

/* Appends a number to the row buffer, which is used because a stdio call for each field would dominate the cost. */
static char *put_int(char *to, int64_t v)
{
	char buf[24], *at = buf + sizeof buf;
	uint64_t mag = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	do
		*--at = (char)('0' + mag % 10);
	while (mag /= 10);
	if (v < 0)
		*--at = '-';
	size_t n = (size_t)(buf + sizeof buf - at);
	memcpy(to, at, n);
	return to + n;
}

static char *put_text(char *to, const char *text)
{
	const char *end = text + strnlen(text, CELL_TEXT_MAX - 1);
	bool quoted = text[strcspn(text, ",\"\n\r")];
	if (quoted)
		*to++ = '"';
	if (*text && strchr("=+-@", *text))
		to += snprintf(to, MAX_FIELD, "\\x%02x", (unsigned)*text++);
	for (; text < end; text++) {
		if (*text == '"')
			*to++ = '"';
		*to++ = *text;
	}
	if (quoted)
		*to++ = '"';
	return to;
}

static int csv_flush(struct sink *s, struct error *err)
{
	if (fwrite(s->buf, 1, s->used, s->files.save.f) != s->used)
		return error_system(err, "free disk space", "%s", s->files.path);
	s->used = 0;
	return 0;
}

static int csv_row(struct sink *s, const struct table_cell *cell, struct error *err)
{
	char *to = s->buf + s->used;
	for (size_t i = 0; i < s->table->fields; i++) {
		enum field_type type = s->table->field[i].type;
		if (i)
			*to++ = ',';
		if (cell[i].absent)
			continue;
		if (type == FIELD_TEXT)
			to = put_text(to, cell[i].text);
		else if (type == FIELD_REAL)
			to += snprintf(to, MAX_FIELD, "%.9f", cell[i].real);
		else
			to = put_int(to, cell[i].number);
	}
	*to++ = '\n';
	s->used = (size_t)(to - s->buf);
	return s->used + MAX_ROW > sizeof s->buf ? csv_flush(s, err) : 0;
}

static int csv_end(struct sink *s, struct error *err)
{
	return files_end(&s->files, csv_flush(s, err), err);
}

static int close_csv(struct sink *s, int status, struct error *err)
{
	(void)err;
	files_close(&s->files);
	free(s);
	return status;
}

const struct sink_ops sink_csv = { TABLE_ALL, open_csv, csv_begin, csv_row, csv_end, close_csv };
