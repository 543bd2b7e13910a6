/* Reads the places of a program (elf_probes.h) in a sandboxed child, since the file may belong to a guest or a container.
 *
 * The child has limits of memory and time, and sends only the places that the filter wants. The parent checks the sizes of
 * what it receives, and never waits longer than READER_TIMEOUT. */
#pragma once

#include <sys/types.h>

#include "record/elf_probes.h"

struct elf_source {
	const char *path;          /* name in messages, escaped */
	int fd;                    /* the file; -1: it is in memory */
	const void *data;          /* fd -1: the file */
	size_t size;               /* fd -1: its bytes */
	struct elf_filter filter;
};

struct elf_reader {
	struct elf_source source;  /* path is copied, all else borrowed */
	pid_t pid;                 /* 0: no child runs */
	int fd;                    /* becomes readable when elf_reader_poll() has something to do */
	int64_t deadline;          /* monotonic ns */
	char *data;                /* received bytes */
	size_t len, cap;
};

/* Starts a child. Returns -1 with *err on failure. Always call elf_reader_end(), which kills a child that runs. */
int elf_reader_start(struct elf_reader *r, const struct elf_source *source, struct error *err);
void elf_reader_end(struct elf_reader *r);
/* Reads what the child has sent; does not wait. Returns 1: call it again, 0: *p is complete, -1 with *err: failed. Call
 * elf_places_release(). */
int elf_reader_poll(struct elf_reader *r, struct elf_places *p, struct error *err);

/* Reads a file or memory and waits for the result; *stop (NULL is allowed): becomes non-zero to give up. */
int elf_places_read(struct elf_places *p, const struct elf_source *source, const volatile int *stop, struct error *err);
