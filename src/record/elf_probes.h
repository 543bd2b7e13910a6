/* Reads the places in a program where uprobes can be set: its functions, and its static probes (USDT).
 *
 * Reads 64-bit ELF files of this machine's byte order: program headers, the symbol tables, and notes of the type stapsdt.
 * The file is untrusted (it may belong to a container or a guest): every offset is checked. Sections that overlap, and
 * names that are used again and again, could multiply the work; it is limited to a small multiple of the file's size.
 * Outside of tests, elf_reader.h calls elf_places_parse() in a sandboxed child. */
#pragma once

#include "base/base.h"

/* A function, or one site of a static probe. */
struct elf_place {
	char *provider;          /* of a static probe; NULL: a function */
	char *name;
	uint64_t offset;         /* of the instruction in the file */
	uint64_t counter;        /* static probe: offset of its reference counter in the file; 0: none */
	char *args;              /* static probe: its arguments as in the note, "8@%rbx -4@8(%rax)"; NULL: a function */
};

struct elf_places {
	unsigned machine;        /* EM_X86_64, EM_AARCH64, ... */
	struct elf_place *place; /* static probes, then functions, each by name, then offset */
	size_t len, cap;
	size_t skipped;          /* static probes with an address outside the file */
};

/* Selects places: only these are stored. */
struct elf_filter {
	bool (*wants)(const void *arg, const char *provider, const char *name);  /* NULL: all */
	const void *arg;
};

/* Reads a file in memory; path: name in messages. Returns -1 with *err if it is not a program that can be probed. Always
 * call elf_places_release(). */
int elf_places_parse(struct elf_places *p, const void *data, size_t size, const char *path, const struct elf_filter *filter,
                     struct error *err);
void elf_places_release(struct elf_places *p);

/* Converts argument n (from 1) of a place to a fetch argument of tracefs ("%di", "+8(%ax):u32"); the caller frees. Returns
 * NULL with *err if there is none, or tracefs cannot fetch it. */
char *elf_place_arg(const struct elf_places *p, const struct elf_place *place, unsigned n, struct error *err);
