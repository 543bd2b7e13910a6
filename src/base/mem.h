/* Memory allocation that does not fail.
 *
 * mem_new, mem_dup and mem_resize exit with status 4 if memory runs out. Use them for objects with a number bounded by
 * the user's input or by the traced machine count. Structures that grow with the number of events must be bounded,
 * and report errors instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns p, the result of a library that allocates; NULL: ends the program with a message and STATUS_SYSTEM. */
void *mem_checked(void *p);
void *mem_new(size_t n, size_t size);                  /* zeroed */
void *mem_cache_lines(size_t bytes);                         /* zeroed, aligned to a cache line; freed with free() */
void *mem_resize(void *p, size_t n, size_t size);      /* realloc() with overflow check; the new bytes are not zeroed */
char *mem_dup(const char *s);                          /* copy of s; NULL if s is NULL */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Grows `array` (capacity *cap) if it has no space for an element after `len`. Returns the array, which may have moved. */
void *array_grow(void *array, size_t *cap, size_t len, size_t size);

/* ARRAY_PUSH(a, len, cap) appends an uninitialized element to a and returns a pointer to it; len grows by one. */
#define ARRAY_PUSH(a, len, cap) \
	((void)((len) < (cap) || ((a) = array_grow((a), &(cap), (len), sizeof *(a)), true)), &(a)[(len)++])
