/* Notes: what the user must hear about the input, kept in order: losses, outliers, guesses.  `index` prints them, the
 * history keeps them, and every report on that history repeats those that make its own answer doubtful. */
#ifndef STEALSCOPE_BASE_NOTES_H
#define STEALSCOPE_BASE_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(code, name in json) */
#define NOTE_KINDS(X) \
	X(NOTE_FACT, "fact")      /* how the input was read; no answer is worse for it */ \
	X(NOTE_CLOCK, "clock")    /* times may be wrong */ \
	X(NOTE_LOSS, "loss")      /* events are missing */ \
	X(NOTE_DAMAGE, "damage")  /* a part of the input could not be read */ \
	X(NOTE_DOUBT, "doubt")    /* answers may be wrong for another reason */
#define NOTE_CODE(code, name) code,
enum note_kind { NOTE_KINDS(NOTE_CODE) NOTE_KIND_COUNT };
#undef NOTE_CODE
extern const char *const note_kind_name[NOTE_KIND_COUNT];

struct note {
	enum note_kind kind;
	char *machine;       /* whose input it is about, unescaped; NULL: nobody's alone */
	int64_t from, to;    /* ns of the host's clock, closed: the answers that it is about; INT64_MIN, INT64_MAX: all */
	char *text;          /* without the machine, unescaped */
};

struct notes {
	struct note *item;
	size_t len, cap;
};

/* About all of a machine's time.  n may be NULL: nobody listens. */
void notes_add(struct notes *n, enum note_kind kind, const char *machine, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* About a part of it. */
void notes_add_at(struct notes *n, enum note_kind kind, const char *machine, int64_t from, int64_t to,
                  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* A copy of one, of that machine where it names none itself. */
void notes_copy(struct notes *n, const struct note *note, const char *machine);
/* What was about the machine `from` is about `to`. */
void notes_rename(struct notes *n, const char *from, const char *to);
void notes_release(struct notes *n);

/* Is it a reason to doubt what is said of [from, to]? */
bool note_is_doubt(const struct note *note, int64_t from, int64_t to);

/* "Debian: the tracer lost 12 of 3456 events"; escaped.  Returns buf. */
#define NOTE_TEXT 1024
char *note_text(const struct note *note, char buf[NOTE_TEXT]);
/* The text of note i of a list that is printed: "host, Debian (each): its trace has no wakeups" where later ones say the
 * same of other machines; NULL where an earlier one has said it. */
char *notes_text(const struct notes *n, size_t i, char buf[NOTE_TEXT]);

/* As bytes, for a history (stealscope-history(5)); the caller frees. */
char *notes_pack(const struct notes *n, size_t *size);
/* Adds those that the bytes hold.  false: the bytes are no notes; what was sound is added. */
bool notes_unpack(struct notes *n, const void *bytes, size_t size);

#endif
