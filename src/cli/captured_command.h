/* Runs commands of this program in child processes and returns their output. */
#pragma once

#include "base/base.h"

/* Reads a whole file from its start. Returns its bytes and a final NUL, allocated; NULL if it cannot be read. */
char *captured_file(int fd, size_t *length);

/* What a command may read in addition to the system's files (sandbox_limit_reads()). */
struct captured_limits {
	int fd[4];        /* open files and directories */
	size_t n;
	const char *tmp;  /* directory for its temporary files, one of these; NULL: the default */
};

/* Runs a command for at most `seconds`; limits NULL: it may read everything. Fills *text with its output and *notes with
 * its messages, both allocated. Returns the exit status, or -1 with *err set. */
int captured_command(int (*run)(int, char **, struct error *), int argc, char **argv, unsigned seconds,
                     const struct captured_limits *limits, char **text, char **notes, struct error *err);
