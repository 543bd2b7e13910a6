/* Reads small files of /proc, /sys and /run. All functions take a root directory that replaces "/": "" for this machine;
 * tests and containers use a directory that contains proc, sys and run. Paths are printf formats relative to the root. */
#pragma once

#include "base/base.h"

#define PROC_MAX (1 << 20)  /* maximum bytes read of a file */

/* Reads a whole file, NUL-terminated; NULL if it cannot be read or is too long. len may be NULL. The caller frees. */
char *proc_text(const char *root, size_t *len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reads the first line without the line break. NULL if the file cannot be read or the line is empty. The caller frees. */
char *proc_line(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reads the number at a file's start. Returns false, with *n unchanged, if there is none. */
bool proc_number(const char *root, int64_t *n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns a symbolic link's target, which the caller frees; NULL: no such link. */
char *proc_link(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool proc_exists(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the value of a line "KEY: VALUE" or "KEY VALUE"; NULL: no such line. The caller frees. */
char *proc_field(const char *text, const char *key);
/* Returns a field of /proc/PID/task/TID/stat, counted from 0 (the state), the first field after the thread's name. NULL: no
 * such thread or field. The caller frees. */
char *proc_stat_word(const char *root, int32_t pid, int32_t tid, unsigned k);
/* Returns the start time of a process in ticks since boot; it identifies the process together with the PID. 0: no such
 * process, or a zombie. */
uint64_t proc_start_time(const char *root, int32_t pid);

/* Lists the names in a directory that start with the prefix, sorted (numbers by value). *n is 0 if the directory cannot be
 * read. Call proc_names_free(). */
char **proc_names(const char *root, const char *prefix, size_t *n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void proc_names_free(char **name, size_t n);

/* Parses a text that consists of one decimal number within [0, max]. Returns false, with *n unchanged, otherwise. */
bool proc_parse_number(const char *text, uint64_t max, uint64_t *n);
