/* Aliases of names, for histories that are given away: the same name has the same alias wherever it stands, and who lacks
 * the key cannot find a name by trying.  A keyed hash: SipHash-2-4 (Aumasson, Bernstein 2012), 56 bits of it. */
#ifndef STEALSCOPE_INDEX_NAME_ALIAS_H
#define STEALSCOPE_INDEX_NAME_ALIAS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ALIAS_TEXT 64  /* bytes, of the alias of a handler, too */

struct alias_key { uint64_t word[2]; };

/* A key that nobody knows (file NULL), or the one that the file's bytes make: the same file, the same aliases. */
int alias_key(struct alias_key *key, const char *file, struct error *err);

/* "n" and 14 hexadecimal digits.  Returns buf. */
char *alias_of(const struct alias_key *key, const char *name, char buf[ALIAS_TEXT]);
/* Of an interrupt handler: "irq/27-virtio0" keeps its number, softirqs and "thread" are the kernel's own words. */
char *alias_of_handler(const struct alias_key *key, const char *name, char buf[ALIAS_TEXT]);

uint64_t alias_siphash(const struct alias_key *key, const void *bytes, size_t n);

#endif
