/* Hash functions: FNV-1a for bytes (file names depend on its values, so they never change), and a multiplicative hash
 * for numbers in tables. */
#pragma once

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

/* Mixes a number into a hash that starts with 0 or a number. The upper bits are mixed best: tables use h >> shift, or
 * hash_end() if they need the lower bits. */
static inline uint64_t hash_number(uint64_t h, uint64_t number)
{
	return (h ^ h >> 29 ^ number) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint64_t hash_end(uint64_t h)
{
	return h ^ h >> 32;
}
