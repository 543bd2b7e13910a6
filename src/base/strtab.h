/* String interning: equal strings get equal ids.  Id 0 is the empty string.  Ids are dense.
 * Strings are copied, cut at STRTAB_LONGEST bytes, and never move until release. */
#ifndef STEALSCOPE_BASE_STRTAB_H
#define STEALSCOPE_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define STRTAB_LONGEST 255

struct strtab {
	char **str;
	size_t len, cap;
	struct map by_hash;  /* FNV-1a of the string (probed upwards) -> id */
};

void strtab_init(struct strtab *t);
void strtab_release(struct strtab *t);
uint32_t strtab_put(struct strtab *t, const char *s);       /* NULL counts as "" */
const char *strtab_get(const struct strtab *t, uint32_t id);  /* "" for an id out of range */

#endif
