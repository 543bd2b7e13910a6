/* Notes: statements about the input that the user must hear (losses, outliers, guesses), kept in order.
 * They are printed to stderr by the commands, stored in the history, and shown by `info` and the viewer. */
#ifndef STEALSCOPE_BASE_NOTES_H
#define STEALSCOPE_BASE_NOTES_H

#include <stddef.h>

struct notes {
	char **line;
	size_t len, cap;
};

void notes_add(struct notes *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));  /* n may be NULL */
void notes_release(struct notes *n);

#endif
