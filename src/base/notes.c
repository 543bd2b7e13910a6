#include "base/notes.h"

#include <stdarg.h>

#include "base/base.h"

#define KIND_NAME(code, name) [NOTE_KIND_##code] = name,
const char *const note_kind_name[NOTE_KIND_COUNT] = { NOTE_KINDS(KIND_NAME) };

#define ROW(code, name, kind, format, advice) [NOTE_##code] = { name, NOTE_KIND_##kind, format, advice },
const struct note_row note_row[NOTE_CODE_COUNT] = { NOTE_TABLE(ROW) };

static void append_text(struct notes *n, enum note_code code, enum note_kind kind, const char *machine, int64_t from,
                        int64_t to, const char *format, va_list ap)
{
	if (!n)
		return;
	char text[512];
	vsnprintf(text, sizeof text, format, ap);
	*ARRAY_PUSH(n->item, n->len, n->cap) = (struct note){ code, kind, mem_dup(machine), from, to, mem_dup(text) };
}

void notes_append(struct notes *n, enum note_code code, int64_t from, int64_t to, const char *format,
                  const char *machine, ...)
{
	va_list ap;
	va_start(ap, machine);
	append_text(n, code, note_row[code].kind, machine, from, to, format, ap);
	va_end(ap);
}

void notes_add_at(struct notes *n, enum note_kind kind, const char *machine, int64_t from, int64_t to,
                  const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	append_text(n, NOTE_CODE_COUNT, kind, machine, from, to, fmt, ap);
	va_end(ap);
}

void notes_copy(struct notes *n, const struct note *note, const char *machine)
{
	*ARRAY_PUSH(n->item, n->len, n->cap) = (struct note){
		note->code, note->kind, mem_dup(note->machine ? note->machine : machine), note->from, note->to, mem_dup(note->text)
	};
}

void notes_rename(struct notes *n, const char *from, const char *to)
{
	for (size_t i = 0; i < n->len; i++) {
		struct note *note = &n->item[i];
		if (note->machine && strcmp(note->machine, from) == 0) {
			free(note->machine);
			note->machine = mem_dup(to);
		}
	}
}

void notes_remove(struct notes *n, enum note_code code, const char *machine)
{
	size_t kept = 0;
	if (!n)
		return;
	for (size_t i = 0; i < n->len; i++) {
		struct note *note = &n->item[i];
		if (note->code != code || !note->machine || strcmp(note->machine, machine) != 0) {
			n->item[kept++] = *note;
			continue;
		}
		free(note->machine);
		free(note->text);
	}
	n->len = kept;
}

void notes_release(struct notes *n)
{
	for (size_t i = 0; i < n->len; i++) {
		free(n->item[i].machine);
		free(n->item[i].text);
	}
	free(n->item);
	*n = (struct notes){ 0 };
}

bool note_is_warning(const struct note *note, int64_t from, int64_t to)
{
	return note->kind != NOTE_KIND_INFO && note->from <= to && from <= note->to;
}

const char *note_advice(const struct note *note)
{
	return note->code < NOTE_CODE_COUNT ? note_row[note->code].advice : "";
}

/* Writes the text and the advice, escaped. */
static void format_text(char *buf, size_t size, const struct note *note)
{
	const char *advice = note_advice(note);
	text_sanitize(buf, size, note->text);  /* it may contain an error's text */
	const size_t used = strlen(buf);
	if (*advice)
		snprintf(buf + used, size - used, "; %s", advice);
}

char *note_text(const struct note *note, char buf[NOTE_TEXT])
{
	size_t used = 0;
	if (note->machine) {
		text_escape(buf, NOTE_TEXT / 4, note->machine);
		used = strlen(buf);
		used += (size_t)snprintf(buf + used, NOTE_TEXT - used, ": ");
	}
	format_text(buf + used, NOTE_TEXT - used, note);
	return buf;
}

static bool same_text(const struct note *a, const struct note *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to && !a->machine == !b->machine &&
	       strcmp(a->text, b->text) == 0;
}

static bool machine_listed(const struct notes *n, size_t first, size_t i)
{
	for (size_t k = first; k < i; k++)
		if (same_text(&n->item[k], &n->item[i]) && strcmp(n->item[k].machine, n->item[i].machine) == 0)
			return true;
	return false;
}

char *notes_text(const struct notes *n, size_t i, char buf[NOTE_TEXT])
{
	enum { NAMES = 4 };
	size_t machines = 0, used = 0;
	for (size_t k = 0; k < i; k++)
		if (same_text(&n->item[k], &n->item[i]))
			return NULL;
	for (size_t k = i; n->item[i].machine && k < n->len; k++) {
		if (!same_text(&n->item[k], &n->item[i]) || machine_listed(n, i, k) || machines++ >= NAMES)
			continue;
		used += (size_t)snprintf(buf + used, NOTE_TEXT - used, "%s", used ? ", " : "");
		text_escape(buf + used, NOTE_TEXT / (4 * NAMES), n->item[k].machine);
		used += strlen(buf + used);
	}
	if (machines < 2)
		return note_text(&n->item[i], buf);
	if (machines > NAMES)
		used += (size_t)snprintf(buf + used, NOTE_TEXT - used, " and %zu more", machines - NAMES);
	used += (size_t)snprintf(buf + used, NOTE_TEXT - used, " (each): ");
	format_text(buf + used, NOTE_TEXT - used, &n->item[i]);
	return buf;
}

/* ---- Serialization: six texts per note, each terminated by NUL: the code's name, kind, machine, from, to, text */

enum { FIELD_CODE, FIELD_KIND, FIELD_MACHINE, FIELD_FROM, FIELD_TO, FIELD_TEXT, FIELDS };

static void append_field(char **bytes, size_t *size, const char *text)
{
	size_t n = strlen(text) + 1;
	*bytes = mem_resize(*bytes, *size + n, 1);
	memcpy(*bytes + *size, text, n);
	*size += n;
}

char *notes_pack(const struct notes *n, size_t *size)
{
	char *bytes = mem_new(1, 1);
	*size = 0;
	for (size_t i = 0; i < n->len; i++) {
		const struct note *note = &n->item[i];
		char from[24], to[24];
		snprintf(from, sizeof from, "%" PRId64, note->from);
		snprintf(to, sizeof to, "%" PRId64, note->to);
		append_field(&bytes, size, note->code < NOTE_CODE_COUNT ? note_row[note->code].name : "");
		append_field(&bytes, size, note_kind_name[note->kind]);
		append_field(&bytes, size, note->machine ? note->machine : "");
		append_field(&bytes, size, from);
		append_field(&bytes, size, to);
		append_field(&bytes, size, note->text);
	}
	return bytes;
}

static bool parse_time(const char *text, int64_t *t)
{
	char *end;
	*t = strtoll(text, &end, 10);
	return end != text && !*end;
}

/* Parses a kind. Unknown kinds, from a later version, count as a limit of answers. */
static enum note_kind parse_kind(const char *text)
{
	for (int k = 0; k < NOTE_KIND_COUNT; k++)
		if (strcmp(note_kind_name[k], text) == 0)
			return (enum note_kind)k;
	return NOTE_KIND_LIMIT;
}

static enum note_code parse_code(const char *name)
{
	for (int i = 0; i < NOTE_CODE_COUNT; i++)
		if (strcmp(note_row[i].name, name) == 0)
			return (enum note_code)i;
	return NOTE_CODE_COUNT;
}

bool notes_unpack(struct notes *n, const void *bytes, size_t size)
{
	const char *at = bytes, *end = at + size;
	while (at < end) {
		const char *field[FIELDS];
		struct note note;
		for (int i = 0; i < FIELDS; i++) {
			const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
			if (!nul)
				return false;
			field[i] = at;
			at = nul + 1;
		}
		if (!parse_time(field[FIELD_FROM], &note.from) || !parse_time(field[FIELD_TO], &note.to))
			return false;
		note.code = parse_code(field[FIELD_CODE]);
		note.kind = parse_kind(field[FIELD_KIND]);
		note.machine = *field[FIELD_MACHINE] ? mem_dup(field[FIELD_MACHINE]) : NULL;
		note.text = mem_dup(field[FIELD_TEXT]);
		*ARRAY_PUSH(n->item, n->len, n->cap) = note;
	}
	return true;
}
