/* Memory: small allocations die in one place; what grows with the trace reports instead.
 *
 * mem_new, mem_dup and mem_grow end the program with status 4 when memory is out: they are for things whose
 * number is bounded by what a person typed or by the machines traced.  What grows with the number of events
 * belongs in a bounded structure that returns an error. */
#ifndef STEALSCOPE_BASE_MEM_H
#define STEALSCOPE_BASE_MEM_H

#include <stddef.h>

void *mem_new(size_t n, size_t size);                  /* zeroed */
void *mem_lines(size_t bytes);                         /* zeroed, from the beginning of a cache line on; freed alike */
void *mem_resize(void *p, size_t n, size_t size);      /* realloc with overflow check; new part not zeroed */
char *mem_dup(const char *s);                          /* NULL gives NULL */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Room for one more element behind the `len` elements of `array`, which holds *cap: the array, perhaps moved. */
void *mem_room(void *array, size_t *cap, size_t len, size_t size);

/* ARRAY_PUSH(a, len, cap) is a pointer to a new, uninitialised last element of a; len grows by one. */
#define ARRAY_PUSH(a, len, cap) ((a) = mem_room((a), &(cap), (len), sizeof *(a)), &(a)[(len)++])

#endif
