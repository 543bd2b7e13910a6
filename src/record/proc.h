/* Small files of the kernel and of daemons, below a root: "" is the machine's own; tests and containers give a folder in
 * which /proc, /sys and /run are found.  Paths are made of fmt, behind the root; what is read is bounded. */
#ifndef STEALSCOPE_RECORD_PROC_H
#define STEALSCOPE_RECORD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_LONGEST (1 << 20)  /* bytes that are read of a file */

/* The whole file, with a NUL behind it; NULL when it cannot be read, or is longer.  len may be NULL.  The caller frees. */
char *proc_text(const char *root, size_t *len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Its first line without the line break; "" counts as none. */
char *proc_line(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The number that it begins with. */
bool proc_number(const char *root, int64_t *n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
char *proc_link(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool proc_exists(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What stands behind "KEY:" or "KEY" and blanks at the begin of a line; NULL: no such line.  The caller frees. */
char *proc_field(const char *text, const char *key);
/* The k-th word (from 0) of a thread's `stat` behind the name, which may hold anything: 0 is the state. */
char *proc_stat_word(const char *root, int32_t pid, int32_t tid, unsigned k);
/* When a process began, in ticks since boot: with its PID, it is told from a later one.  0: there is no such process. */
uint64_t proc_begun(const char *root, int32_t pid);

/* Names in a folder that begin with a prefix, sorted as numbers where they are; *n = 0 when it cannot be read. */
char **proc_names(const char *root, const char *prefix, size_t *n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void proc_names_free(char **name, size_t n);

/* A decimal number that is the whole text, within [0, most]. */
bool proc_is_number(const char *text, uint64_t most, uint64_t *n);

#endif
