/* Sandbox for child processes that parse untrusted input.
 *
 * - Always: limits of memory and file size; no core dump; the child is killed if its
 *   parent ends.
 * - With landlock (kernel and build): files can be written, created and removed in one directory only; nothing can be
 *   executed.
 * - With seccomp: no sockets, no other programs, no signals or other access to other processes, no changes of owners and
 *   permissions of files, of mounts, clocks or the kernel.
 *
 * A feature that the kernel or the build lacks is skipped without a message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sandbox {
	uint64_t bytes;   /* the input's size, bytes */
	const char *dir;  /* the only writable directory; NULL: none */
	bool network;     /* allows network access */
};

/* Checks that a child will have enough address space: the libraries crash, or report damage, where memory ends. Call it
 * before the child is started. Returns 0, or -1 with *err set; name: of the input, for the error. */
int sandbox_check_memory(const char *name, struct error *err);

/* Limits what the calling process may read, permanently: open files and directories with all that lies below them, and the
 * system's directories (/usr, /lib, /etc, /proc ...). Writing stays allowed. No effect without landlock. */
void sandbox_limit_reads(const int *fd, size_t n);

/* Restricts the calling process permanently. Redirects its standard streams to /dev/null. */
void sandbox_enter(const struct sandbox *c);
