/* csv: DIR/TABLE/RUN.csv, RFC 4180, but with "\n".  A text that a spreadsheet would compute begins with that character's
 * escape (\x3d). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "export/run_files.h"

#define FIELD_MOST (2 * CELL_TEXT_MOST + 8)  /* bytes: all of a text may be quotes */
#define ROW_MOST (TABLE_MOST_FIELDS * FIELD_MOST)

struct sink {
	char buf[4 * ROW_MOST];
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

static int begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	if (files_begin(&s->files, t, err))
		return -1;
	s->table = t;
	for (size_t i = 0; i < t->fields; i++)
		fprintf(s->files.save.f, "%s%s", t->field[i].name, i + 1 < t->fields ? "," : "\n");
	return 0;
}

/* Rows are put together here: a call of stdio for every field would cost more than all the rest. */
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
	const char *end = text + strnlen(text, CELL_TEXT_MOST - 1);
	bool quoted = text[strcspn(text, ",\"\n\r")];
	if (quoted)
		*to++ = '"';
	if (*text && strchr("=+-@", *text))
		to += snprintf(to, FIELD_MOST, "\\x%02x", (unsigned)*text++);
	for (; text < end; text++) {
		if (*text == '"')
			*to++ = '"';
		*to++ = *text;
	}
	if (quoted)
		*to++ = '"';
	return to;
}

static int flush(struct sink *s, struct error *err)
{
	if (fwrite(s->buf, 1, s->used, s->files.save.f) != s->used)
		return error_system(err, "make room there", "%s", s->files.save.path);
	s->used = 0;
	return 0;
}

static int row(struct sink *s, const struct table_cell *cell, struct error *err)
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
			to += snprintf(to, FIELD_MOST, "%.9f", cell[i].real);
		else
			to = put_int(to, cell[i].number);
	}
	*to++ = '\n';
	s->used = (size_t)(to - s->buf);
	return s->used + ROW_MOST > sizeof s->buf ? flush(s, err) : 0;
}

static int end(struct sink *s, struct error *err)
{
	return files_end(&s->files, flush(s, err), err);
}

static int close_csv(struct sink *s, int status, struct error *err)
{
	(void)err;
	files_close(&s->files);
	free(s);
	return status;
}

const struct sink_ops sink_csv = { TABLE_ALL, open_csv, begin, row, end, close_csv };
