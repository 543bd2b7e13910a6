/* Names of a kernel's functions, from a copy of its /proc/kallsyms. */
#ifndef STEALSCOPE_CLI_KALLSYMS_H
#define STEALSCOPE_CLI_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kallsyms {
	struct kallsym { uint64_t address; char *name; } *symbol;  /* functions, by address */
	size_t symbols;
};

/* Refuses what is no such file, or has no addresses.  Call kallsyms_release(). */
int kallsyms_read(const char *path, struct kallsyms *out, struct error *err);
void kallsyms_release(struct kallsyms *k);
/* The function that has this address; NULL: none near. */
const struct kallsym *kallsyms_at(const struct kallsyms *k, uint64_t address);

#endif
