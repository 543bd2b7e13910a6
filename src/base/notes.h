/* Notes: limits of the trust in an answer, and facts about how the input was read. `index` prints them, the history
 * stores them, and each report repeats those that concern its target and window. The texts are in base/note_table.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/note_table.h"

/* X(code, name in json) */
#define NOTE_KINDS(X) \
	X(INFO, "info")      /* how the input was read; no limit of answers */ \
	X(CLOCK, "clock")    /* times may be wrong */ \
	X(LOSS, "loss")      /* events are missing */ \
	X(DAMAGE, "damage")  /* a part of the input could not be read */ \
	X(LIMIT, "limit")    /* answers may be wrong or missing for another reason */
#define NOTE_KIND_CODE(code, name) NOTE_KIND_##code,
enum note_kind { NOTE_KINDS(NOTE_KIND_CODE) NOTE_KIND_COUNT };
#undef NOTE_KIND_CODE
extern const char *const note_kind_name[NOTE_KIND_COUNT];

#define NOTE_CODE(code, name, kind, format, advice) NOTE_##code,
enum note_code { NOTE_TABLE(NOTE_CODE) NOTE_CODE_COUNT };
#undef NOTE_CODE

struct note_row {
	const char *name;        /* name in json; never changes */
	enum note_kind kind;
	const char *format;      /* printf format */
	const char *advice;      /* advice for the user; "": none */
};
extern const struct note_row note_row[NOTE_CODE_COUNT];

/* A constant array for each format: the compiler checks the arguments of note_add() with it. */
#define NOTE_FORMAT(code, name, kind, format, advice) static const char note_format_##code[] = format;
NOTE_TABLE(NOTE_FORMAT)
#undef NOTE_FORMAT

/* Returns true for the notes on a guest without any source of stolen time: they precede all others. */
static inline bool note_code_hides_steal(enum note_code code)
{
	return code == NOTE_MACHINE_KIND_UNKNOWN || code == NOTE_VM_BY_THREAD || code == NOTE_NO_STEAL_CLOCK ||
	       code == NOTE_NO_STEAL_SOURCE;
}

struct note {
	enum note_code code;     /* NOTE_CODE_COUNT: a code of a later version, or a text without a code */
	enum note_kind kind;
	char *machine;           /* name of the machine with the qualified input, unescaped; NULL: no single machine */
	int64_t from, to;        /* the qualified answers' window, ns of the host's clock, both ends included; INT64_MIN,
	                          * INT64_MAX: all times */
	char *text;              /* text without the machine; names in it may be unescaped or escaped */
};

struct notes {
	struct note *item;
	size_t len, cap;
};

/* note_add(n, CODE, machine, arguments of the format...): adds a note about all times of a machine. note_add_at(n, CODE,
 * from, to, machine, arguments...): about [from, to], ns. n may be NULL: nothing is added. */
#define note_add(n, code, ...) \
	notes_append(n, NOTE_##code, INT64_MIN, INT64_MAX, note_format_##code, __VA_ARGS__)
#define note_add_at(n, code, from, to, ...) notes_append(n, NOTE_##code, from, to, note_format_##code, __VA_ARGS__)
void notes_append(struct notes *n, enum note_code code, int64_t from, int64_t to, const char *format,
                  const char *machine, ...) __attribute__((format(printf, 5, 7)));
/* The same, with a text that is not in the table. */
void notes_add_at(struct notes *n, enum note_kind kind, const char *machine, int64_t from, int64_t to,
                  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Appends a copy; `machine` is used if the note has no machine. */
void notes_copy(struct notes *n, const struct note *note, const char *machine);
/* Removes the notes with this code about the machine: a later step has solved the problem. n may be NULL. */
void notes_remove(struct notes *n, enum note_code code, const char *machine);
/* Renames the machine `from` to `to` in all notes. */
void notes_rename(struct notes *n, const char *from, const char *to);
void notes_release(struct notes *n);

/* Returns true if the note limits answers about [from, to], ns. */
bool note_is_warning(const struct note *note, int64_t from, int64_t to);

/* Returns the advice for the user; "": none. */
const char *note_advice(const struct note *note);
/* Writes the note, escaped: "Debian: the tracer lost 12 of 3456 events; record with larger buffers". Returns buf. */
#define NOTE_TEXT 1024
char *note_text(const struct note *note, char buf[NOTE_TEXT]);
/* Writes note i of a printed list; notes with the same text for several machines become one line: "host, Debian (each):
 * no wakeups recorded". Returns NULL if an earlier note has the same text. */
char *notes_text(const struct notes *n, size_t i, char buf[NOTE_TEXT]);

/* Serializes the notes for a history (stealscope-history(5)). The caller frees the bytes. */
char *notes_pack(const struct notes *n, size_t *size);
/* Appends serialized notes. Returns false if the bytes are damaged; the notes before the damage are appended. */
bool notes_unpack(struct notes *n, const void *bytes, size_t size);
