/* Facts about the running kernel that decide which probes are possible: symbols and configuration. */
#pragma once

#include "base/base.h"

/* Symbol of /proc/kallsyms, outside modules. */
struct kernel_symbol {
	const char *name;   /* set by the caller; the suffixes .isra.N and .constprop.N are ignored */
	bool found;
	char full[96];      /* name with its suffix */
	uint64_t address;   /* 0: hidden (kernel.kptr_restrict), or really 0 */
};
void kernel_find_symbols(const char *root, struct kernel_symbol *s, size_t n);

/* Returns the offset of a per-CPU variable in its section, from the kernel's BTF; -1: unknown. */
int64_t kernel_btf_percpu(const char *root, const char *name);

/* Returns the value of a configuration variable ("HZ", without CONFIG_), which the caller frees: "y", "250"; "n" if the
 * configuration is readable and the variable is not set; NULL: the configuration is not readable. */
char *kernel_config(const char *root, const char *name);
