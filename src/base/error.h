/* Errors: a status, a chain of causes, and what would mend it.
 *
 * A function that can fail returns 0 or -1 and fills a struct error.  The place that notices the fault says
 * "WHAT: WHY" and the mend; each caller that knows more prepends its own cause.  The top prints one line:
 * "stealscope: WHAT: WHY (MEND)".  Untrusted names are escaped when they are put into the text. */
#ifndef STEALSCOPE_BASE_ERROR_H
#define STEALSCOPE_BASE_ERROR_H

#include <stdbool.h>

/* The exit statuses of the program. */
enum status {
	STATUS_OK = 0,
	STATUS_USAGE = 1,
	STATUS_INPUT = 2,        /* input refused */
	STATUS_ASSERTION = 3,    /* an assertion that the user asked for does not hold */
	STATUS_SYSTEM = 4,       /* the system refused something: memory, disk, terminal */
	STATUS_INCOMPLETE = 5,   /* not all that was asked for was recorded; what was is there */
	STATUS_CANCELLED = 130,  /* the user interrupted the work */
};

struct error {
	enum status status;
	char text[1024];  /* "WHAT: WHY", never empty once set */
	char mend[256];   /* what would mend it, or empty */
};

#define ERROR_INIT { STATUS_OK, "", "" }

/* Sets *err (which may be NULL); mend may be NULL.  Returns -1, so that callers write `return error_set(...)`. */
int error_set(struct error *err, enum status status, const char *mend, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same with ": " and the text of errno appended; status is STATUS_SYSTEM. */
int error_system(struct error *err, const char *mend, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same of what the user named: where errno is about the name (no such file, not allowed), status is STATUS_INPUT.  All
 * else is the system's: what it could not read is not the input's fault, and tells nothing of what is in it. */
int error_read(struct error *err, const char *mend, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool errno_is_system(int why);

/* Prepends "fmt: " to the text of *err, as the next cause up the chain.  Returns -1. */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
