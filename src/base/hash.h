/* Hashes: of bytes, whose values may be kept (FNV-1a: names of files depend on it), and of numbers for tables. */
#ifndef STEALSCOPE_BASE_HASH_H
#define STEALSCOPE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xCBF29CE484222325)

static inline uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * UINT64_C(0x100000001B3);
	return h;
}

static inline uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
	return h;
}

/* Another number into a hash that begins with 0 or a number; good in its upper bits, so that a table takes h >> shift, or
 * hash_end() where it takes the lower ones. */
static inline uint64_t hash_number(uint64_t h, uint64_t number)
{
	return (h ^ h >> 29 ^ number) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint64_t hash_end(uint64_t h)
{
	return h ^ h >> 32;
}

#endif
