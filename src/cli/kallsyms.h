/* Reads kernel symbols from a copy of /proc/kallsyms. */
#pragma once

#include "base/base.h"

struct kallsyms {
	struct kallsym { uint64_t address; char *name; } *symbol;  /* functions, sorted by address */
	size_t symbols;
};

/* Reads the functions. Returns -1 with *err for other files, and for files without addresses (not read by root). Call
 * kallsyms_release(). */
int kallsyms_read(const char *path, struct kallsyms *out, struct error *err);
void kallsyms_release(struct kallsyms *k);
/* Returns the function that contains the address; NULL: none. */
const struct kallsym *kallsyms_at(const struct kallsyms *k, uint64_t address);
