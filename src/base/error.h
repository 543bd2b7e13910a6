/* Errors: a status, a chain of causes, and a remedy.
 *
 * A function that can fail returns 0 or -1 and fills a struct error. The function that detects the fault sets the text
 * "WHAT: WHY" and the remedy; each caller with more context prepends its own cause. main() prints one line: "stealscope:
 * WHAT: WHY (REMEDY)". Untrusted names are escaped when they are added to the text. */
#pragma once

#include <stdbool.h>

/* The program's exit statuses. */
enum status {
	STATUS_OK = 0,
	STATUS_USAGE = 1,
	STATUS_INPUT = 2,        /* invalid input */
	STATUS_ASSERTION = 3,    /* an assertion of the user does not hold */
	STATUS_SYSTEM = 4,       /* out of memory, or an I/O or terminal error */
	STATUS_INCOMPLETE = 5,   /* only a part was recorded; that part is complete */
	STATUS_CANCELLED = 130,  /* interrupted by the user */
};

struct error {
	enum status status;
	char text[1024];  /* "WHAT: WHY"; not empty once set */
	char remedy[256];        /* advice for the user; "": none */
};

#define ERROR_INIT { STATUS_OK, "", "" }

/* Sets *err (NULL is allowed); remedy may be NULL. Returns -1, so that callers write `return error_set(...)`. */
int error_set(struct error *err, enum status status, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Like error_set(), for a text that contains escaped text, for example that of another error: keeps backslashes. */
int error_repeat(struct error *err, enum status status, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Like error_set() with STATUS_SYSTEM; appends ": " and the text of errno. */
int error_system(struct error *err, const char *remedy, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like error_system(), for a file named by the user: the status is STATUS_INPUT if errno concerns the name (no such
 * file, no permission), otherwise STATUS_SYSTEM, because an I/O error does not mean that the input is bad. */
int error_read(struct error *err, const char *remedy, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool errno_is_system(int why);

/* Prepends "fmt: " to the text of *err: the caller's context. Returns -1. */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
