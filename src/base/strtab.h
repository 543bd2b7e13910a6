/* String interning: equal strings get equal ids. Ids are 0, 1, 2, ...; id 0 is the empty string. Strings are copied, cut
 * at STRTAB_MAX bytes, and do not move until release. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define STRTAB_MAX 255

struct strtab {
	char **str;
	size_t len, cap;
	struct map by_hash;      /* FNV-1a of the string, with linear probing -> id */
};

void strtab_init(struct strtab *t);
void strtab_release(struct strtab *t);
uint32_t strtab_put(struct strtab *t, const char *s);       /* the string's id; NULL counts as "" */
const char *strtab_get(const struct strtab *t, uint32_t id);  /* the string; "" if the id is out of range */
