/* Aliases of names, for histories that are passed on to others. A name has the same alias everywhere. Without the key,
 * nobody can find the name by computing the aliases of likely names. Keyed hash: 56 bits of SipHash-2-4 (Aumasson,
 * Bernstein: SipHash, INDOCRYPT 2012). */
#pragma once

#include "base/base.h"

#define ALIAS_SIZE 64  /* size of a buffer for an alias, also of a handler, bytes */

struct alias_key { uint64_t word[2]; };

/* Makes a random key (file NULL), or derives the key from the bytes of a file. Returns 0 or -1. */
int alias_key(struct alias_key *key, const char *file, struct error *err);

/* Writes "n" and 14 hexadecimal digits. Returns buf. */
char *alias_make(const struct alias_key *key, const char *name, char buf[ALIAS_SIZE]);
/* Writes an interrupt handler's alias. "irq/27-virtio0" keeps its number; softirqs and "thread" are not replaced,
 * because the kernel defines these names. Returns buf. */
char *alias_make_handler(const struct alias_key *key, const char *name, char buf[ALIAS_SIZE]);

uint64_t alias_siphash(const struct alias_key *key, const void *bytes, size_t n);
