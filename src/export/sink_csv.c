/* Sink csv: writes DIR/TABLE/RUN.csv (RFC 4180, with line breaks "\n"). A text's first character is escaped (= as
 * \x3d) if a spreadsheet would evaluate the text. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "export/sink.h"

#define OPENED "/proc/self/fd/"
#define MAX_FIELD (2 * CELL_TEXT_MAX + 8)  /* bytes of a field, in which every character may be a quote that is doubled */
#define MAX_ROW (TABLE_FIELDS_MAX * MAX_FIELD)

struct sink {
	char buf[4 * MAX_ROW];
	size_t used;
	const struct export_shape *table;
	int64_t run;
	char *dir, *path;  /* path: DIR/TABLE/RUN.csv, for messages */
	int fd, table_fd;  /* of DIR, and of DIR/TABLE; -1: no table is open */
	struct save save;  /* file of the open table */
};

/* Creates a directory unless it exists, and opens it: what another user puts in its place from now on has no effect. A
 * link of another user is not followed. Returns -1 on failure. */
static int open_dir(int parent, const char *path, const char *shown, struct error *err)
{
	struct stat st;
	if (mkdirat(parent, path, 0777) != 0 && errno != EEXIST)
		return error_system(err, "choose another directory", "cannot create the directory %s", shown);
	const bool is_own_link = fstatat(parent, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
		(st.st_uid == geteuid() || st.st_uid == 0);
	const int fd = openat(parent, path, O_PATH | O_DIRECTORY | O_CLOEXEC | (is_own_link ? 0 : O_NOFOLLOW));
	return fd >= 0 ? fd : error_system(err, "choose another directory", "%s", shown);
}

static struct sink *open_csv(const char *target, const struct sink_run *run, struct error *err)
{
	const int fd = open_dir(AT_FDCWD, target, target, err);
	if (fd < 0)
		return NULL;
	struct sink *s = mem_new(1, sizeof *s);
	s->run = run->id;
	s->dir = mem_dup(target);
	s->fd = fd;
	s->table_fd = -1;
	return s;
}

/* Ends a table. rc: of its file, which a message names by its path. Returns rc. */
static int close_table(struct sink *s, int rc, struct error *err)
{
	if (rc && strncmp(err->text, OPENED, strlen(OPENED)) == 0) {
		const struct error of_opened = *err;
		const char *why = strstr(of_opened.text, ": ");
		error_repeat(err, of_opened.status, of_opened.remedy, "%s%s", s->path, why ? why : "");
	}
	close(s->table_fd);
	s->table_fd = -1;
	free(s->path);
	return rc;
}

static int csv_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	char *dir = mem_printf("%s/%s", s->dir, t->name);
	s->table_fd = open_dir(s->fd, t->name, dir, err);
	if (s->table_fd >= 0)
		s->path = mem_printf("%s/%" PRId64 ".csv", dir, s->run);
	free(dir);
	if (s->table_fd < 0)
		return -1;
	char *opened = mem_printf(OPENED "%d/%" PRId64 ".csv", s->table_fd, s->run);
	const int rc = atomic_file_begin(&s->save, opened, err);
	free(opened);
	if (rc)
		return close_table(s, rc, err);
	s->table = t;
	for (size_t i = 0; i < t->fields; i++)
		fprintf(s->save.f, "%s%s", t->field[i].name, i + 1 < t->fields ? "," : "\n");
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
	if (fwrite(s->buf, 1, s->used, s->save.f) != s->used)
		return error_system(err, "free disk space", "%s", s->path);
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
	const int rc = csv_flush(s, err);
	return close_table(s, atomic_file_end(&s->save, rc, err), err);
}

static int close_csv(struct sink *s, int status, struct error *err)
{
	struct error ignored = ERROR_INIT;
	(void)err;
	if (s->table_fd >= 0)
		close_table(s, atomic_file_end(&s->save, -1, &ignored), &ignored);
	close(s->fd);
	free(s->dir);
	free(s);
	return status;
}

const struct sink_ops sink_csv = { TABLE_ALL, open_csv, csv_begin, csv_row, csv_end, close_csv };
