/* Runs commands of this program in child processes and returns their output. */
#ifndef STEALSCOPE_CLI_CAPTURED_COMMAND_H
#define STEALSCOPE_CLI_CAPTURED_COMMAND_H

#include <stddef.h>

#include "base/error.h"

/* Reads a whole file from its start. Returns its bytes and a final NUL, allocated; NULL if it cannot be read. */
char *captured_file(int fd, size_t *length);

/* Runs a command for at most `seconds`. Fills *text with its output and *notes with its messages, both allocated. Returns
 * the exit status, or -1 with *err set. */
int captured_command(int (*run)(int, char **, struct error *), int argc, char **argv, unsigned seconds, char **text,
                     char **notes, struct error *err);

#endif
